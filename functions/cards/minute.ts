import { within } from "../../shared/nats/deadline.ts";
import type { TableAccess } from "../../shared/tasks/dynamodb-transaction.ts";
import { errorFields } from "../../shared/telemetry/index.ts";
import { type CardsDeps, insistOnCards } from "./cards.ts";
import type { RemotesDeps } from "./remotes.ts";

/** What the function does each minute needs. */
export interface MinuteDeps extends Omit<CardsDeps, "timing"> {
  readonly access: Pick<TableAccess, "client" | "table">;
  readonly timing: CardsDeps["timing"] & { readonly marginMs: number };
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Which run it is, and when it is to be over. */
export interface Run {
  /** Its name. */
  readonly id: string;
  /** When to begin nothing more, in milliseconds since 1970. */
  readonly until: number;
}

/**
 * Shows our cards, looks for other peers, and goes round the remote agents. None of these waits for another that fails:
 * while NATS is away the remote agents are asked all the same, and whatever they do, our cards are shown.
 *
 * @throws as {@link insistOnCards}, once everything else is done as well
 */
export async function everyMinute(deps: MinuteDeps, run: Run): Promise<void> {
  const shown = insistOnCards(deps, run.until);
  const looked = shown.catch(() => undefined).then(() => look(deps, run));
  await Promise.all([looked, rounds(deps, run)]);
  await shown;
}

/** Looks for peers, by the connection that the cards went over. */
async function look(deps: MinuteDeps, { until }: Run): Promise<void> {
  const leftMs = until - deps.now();
  // NATS was away all the time.
  if (leftMs <= 0) return;
  try {
    const [{ lookForPeers }, { dynamoPeers }] = await Promise.all([
      import("./look.ts"),
      import("../../shared/cards/dynamodb-peers.ts"),
    ]);
    await inTime(lookForPeers({ ...deps, store: dynamoPeers(deps.access) }), leftMs);
  } catch (error) {
    deps.telemetry.warn("who else is on NATS could not be seen", errorFields(error));
    deps.telemetry.count("PeerRoundsFailed", 1, { round: "look" });
  }
}

/** A deployment that names no remote agents loads nothing of it. */
async function rounds(deps: MinuteDeps, run: Run): Promise<void> {
  if ((deps.deployment.remotes ?? []).length === 0) return;
  try {
    const [{ goRound }, remotes] = await Promise.all([import("./remotes.ts"), remotesDeps(deps, run)]);
    // Time to write down what came until then.
    await inTime(goRound(remotes), run.until - deps.now() + deps.timing.marginMs / 4);
  } catch (error) {
    deps.telemetry.error("a round through the remote agents has failed", errorFields(error));
    deps.telemetry.count("PeerRoundsFailed", 1, { round: "all" });
  }
}

/** What is needed to ask remote agents. */
export async function remotesDeps(deps: MinuteDeps, { id, until }: Run): Promise<RemotesDeps> {
  const [{ dynamoPeers }, { credentialSources }] = await Promise.all([
    import("../../shared/cards/dynamodb-peers.ts"),
    import("../../shared/remotes/credentials.ts"),
  ]);
  const { remotes = [], outbound } = deps.deployment;
  return {
    ...{ remotes, outbound, telemetry: deps.telemetry, timing: deps.timing, now: deps.now },
    store: dynamoPeers(deps.access),
    sources: credentialSources(deps.env),
    correlationId: id,
    signal: AbortSignal.timeout(Math.max(0, until - deps.now())),
  };
}

/** @throws Error when it is not done in time */
async function inTime(work: Promise<void>, ms: number): Promise<void> {
  const done = await within(
    work.then(() => true),
    ms,
  );
  if (done === undefined) throw new Error(`it was not over within ${Math.round(ms)} ms`);
}
