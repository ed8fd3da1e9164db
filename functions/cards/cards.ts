import { errors, type NatsConnection } from "@nats-io/transport-node";
import { ensurePeersBucket, type PeersBucket } from "../../shared/cards/bucket.ts";
import { CARD_TTL_MS } from "../../shared/cards/bucket-facts.ts";
import type { CardNotes, Noted } from "../../shared/cards/dynamodb-notes.ts";
import { heartbeat } from "../../shared/cards/heartbeat.ts";
import { instanceOf, isOf } from "../../shared/cards/instance.ts";
import { type OwnCard, ownCards } from "../../shared/cards/own.ts";
import type { DeploymentConfig, HostedAgent } from "../../shared/config/deployment.ts";
import type { Timing } from "../../shared/config/timing.ts";
import { within } from "../../shared/nats/deadline.ts";
import { NatsError } from "../../shared/nats/errors.ts";
import { inForce } from "../../shared/policy/in-force.ts";
import { insist, isRefused } from "../../shared/tasks/insist.ts";
import { errorFields, type Telemetry } from "../../shared/telemetry/index.ts";

/** How long the server may take to have taken what was sent to it, in milliseconds. */
const FLUSH_MS = 5_000;

/** What a run needs. */
export interface CardsDeps {
  readonly connection: () => Promise<NatsConnection>;
  readonly notes: CardNotes;
  readonly deployment: DeploymentConfig;
  /** Where NATS is, as URLs. */
  readonly servers: readonly string[];
  /** The stack, as cards and heartbeats name it. */
  readonly instance: string;
  /** When this process has begun, in milliseconds since 1970. */
  readonly startedAt: number;
  readonly telemetry: Telemetry;
  readonly timing: Pick<Timing, "scale">;
  readonly now: () => number;
}

/** What a run has found. */
export interface Found {
  /** The agents whose policy is known, each with the one in force. */
  readonly agents: readonly HostedAgent[];
  /** What was signed before, as it stands in the table. */
  readonly signed: unknown;
}

/**
 * Shows the cards, again and again until it succeeds or the time is over: the next run may come too late, and a broker
 * that starts again is back within seconds.
 *
 * @param until when to begin no more, in milliseconds since 1970
 * @throws as {@link showCards}
 */
export function insistOnCards(deps: CardsDeps, until: number): Promise<Found> {
  const { now, telemetry } = deps;
  const attempt = () =>
    showCards(deps).catch((error: unknown) => {
      telemetry.warn("the cards could not be shown", errorFields(error));
      throw error;
    });
  return insist(attempt, { now, until: () => until }, (error) => isRefused(error) || isDenied(error));
}

/** Whether NATS knows us not, or not for this. */
function isDenied(error: unknown): boolean {
  if (error instanceof NatsError) return error.code !== "nats_unreachable";
  return (
    error instanceof errors.PermissionViolationError ||
    (error instanceof Error && error.cause instanceof errors.PermissionViolationError)
  );
}

/**
 * Shows the cards of the deployment's agents, each with a sign of life, and takes away those of agents that are no longer
 * to be found. What a run leaves undone the next one does: whose cards may lie in the bucket is known before they do, and
 * forgotten once they are seen gone.
 *
 * @throws when NATS or the table is out of reach, or not one card could be put
 */
export async function showCards(deps: CardsDeps): Promise<Found> {
  const { telemetry, notes, deployment, servers, instance } = deps;
  const noted = await notes.read(deployment.agents);
  const { published: known, signed } = noted;
  const { agents, unreadable } = inForce(await agentsNow(deployment, noted), noted.policies);
  const made = ownCards({ ...deployment, agents: [...agents] }, { servers, instance, now: deps.now() });
  const { cards } = made;
  const withheld = [...unreadable, ...made.withheld];
  for (const { runtime, faults } of withheld)
    telemetry.error("a card is withheld", { runtime, reason: faults.join("; ") });
  if (withheld.length > 0) telemetry.count("CardsWithheld", withheld.length);

  const nc = await deps.connection();
  const unknown = cards.map(({ runtime }) => runtime).filter((runtime) => !known.has(runtime));
  if (unknown.length > 0) await notes.add(unknown);

  const bucket = await ensurePeersBucket(nc);
  const ages = await Promise.allSettled(cards.map((card) => show(deps, bucket, card)));
  for (const card of cards) beat(nc, deps, card);
  await within(nc.flush(), FLUSH_MS);
  tell(deps, cards, ages, withheld.length);

  const runtimes = new Set(cards.map(({ runtime }) => runtime));
  await removeOthers(
    deps,
    bucket,
    [...known].filter((runtime) => !runtimes.has(runtime)),
  );
  return { agents, signed };
}

/** The agents with the skills that they have now; what that takes is loaded by deployments alone that host a remote one. */
async function agentsNow(
  deployment: DeploymentConfig,
  { remotes }: Pick<Noted, "remotes">,
): Promise<readonly HostedAgent[]> {
  const { agents } = deployment;
  if (agents.every(({ remote }) => remote === undefined)) return agents;
  return (await import("./remote-skills.ts")).withRemoteSkills(agents, deployment, remotes);
}

/** Puts a card; gives how old the one was that lay there, in milliseconds of the deployment's own time. */
async function show(deps: CardsDeps, bucket: PeersBucket, { runtime, bytes }: OwnCard): Promise<number> {
  const before = await bucket.get(runtime);
  // Whoever else publishes under this id, it is ours: of two stages with one name on one NATS each thinks so.
  if (before !== undefined && instanceOf(before.bytes) !== deps.instance) {
    deps.telemetry.warn("a card under our agent's id was another's", { runtime });
    deps.telemetry.count("CardsForeign");
  }
  await bucket.put(runtime, bytes);
  const age = before === undefined ? CARD_TTL_MS : (deps.now() - before.at) * deps.timing.scale;
  return Math.min(CARD_TTL_MS, Math.max(0, age));
}

function beat(nc: NatsConnection, { instance, startedAt }: CardsDeps, { runtime, version }: OwnCard): void {
  const { subject, body } = heartbeat({ runtime, instance, version, startedAt });
  nc.publish(subject, body);
}

/** Says how it went, and fails when nothing went well. */
function tell(
  { telemetry }: CardsDeps,
  cards: readonly OwnCard[],
  ages: readonly PromiseSettledResult<number>[],
  withheld: number,
): void {
  const failed = ages.flatMap((age, i) =>
    age.status === "rejected" ? [{ runtime: cards[i]?.runtime, reason: age.reason as unknown }] : [],
  );
  for (const { runtime, reason } of failed)
    telemetry.error("a card could not be put", { runtime, ...errorFields(reason) });
  if (failed.length > 0) telemetry.count("CardsFailed", failed.length);
  if (failed.length > 0 && failed.length === cards.length) throw failed[0]?.reason;
  const known = ages.flatMap((age) => (age.status === "fulfilled" ? [age.value] : []));
  // One that is not there counts as old as the bucket lets a card become.
  const missing = withheld + failed.length > 0 ? CARD_TTL_MS : 0;
  telemetry.measure("CardAge", Math.max(missing, ...known));
}

/**
 * Takes away the cards of agents that are gone, if they are still ours; each is forgotten when it is seen gone, by a later
 * run: a bridge that is about to end may renew it once more.
 */
async function removeOthers(
  deps: CardsDeps,
  bucket: PeersBucket,
  runtimes: readonly string[],
): Promise<void> {
  const { instance, notes, telemetry } = deps;
  const gone: string[] = [];
  for (const runtime of runtimes)
    try {
      const stored = await bucket.get(runtime);
      if (!isOf(stored, instance)) gone.push(runtime);
      else {
        await bucket.remove(runtime, stored);
        telemetry.info("a card is taken away", { runtime });
      }
    } catch (error) {
      telemetry.warn("a card could not be taken away", { runtime, ...errorFields(error) });
      // Who may not do so any more need not try again: without us it goes when its time is over.
      if (isDenied(error)) gone.push(runtime);
    }
  if (gone.length > 0) await notes.forget(gone);
}
