import type { SQSClient } from "@aws-sdk/client-sqs";
import { type ConsumerInfo, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Timing } from "../../shared/config/timing.ts";
import { within } from "../../shared/nats/deadline.ts";
import {
  ensureConsumers,
  ensureStreams,
  NatsError,
  type NatsLink,
  type PulledRuntime,
  type RuntimeConsumers,
} from "../../shared/nats/index.ts";
import { refusalOf, unmadeStream } from "../../shared/nats/refusal.ts";
import { errorFields, type Telemetry } from "../../shared/telemetry/index.ts";
import { offerCards } from "./cards.ts";
import { watchLag } from "./lag.ts";
import { Lane } from "./lane.ts";

/** What of a queue's bound one run may use: two runs overlap at each change. */
const SHARE = 2;
/** The longest that the server may take to answer a question about streams and consumers, in milliseconds. */
const API_TIMEOUT_MS = 5_000;

export interface BridgeSettings {
  /** The hosted agents' runtimes. */
  readonly runtimes: readonly PulledRuntime[];
  readonly tasksQueueUrl: string;
  readonly controlsQueueUrl: string;
  readonly eventsQueueUrl: string;
  /** How many messages each of the queues may hold while two runs overlap. */
  readonly bound: number;
}

export interface BridgeDeps {
  readonly link: Pick<NatsLink, "get" | "connected" | "closed" | "onDisconnect">;
  readonly sqs: SQSClient;
  readonly telemetry: Telemetry;
  readonly timing: Timing;
  readonly settings: BridgeSettings;
  /** The stack, as cards name it. */
  readonly instance: string;
  /** Milliseconds that the invocation has left. */
  readonly remainingMs: () => number;
  /** Aborted when that has become less. */
  readonly stop?: AbortSignal;
}

/** What a run did. */
export interface BridgeRun {
  /** Messages that are in the queues now. */
  readonly forwarded: number;
  /** Messages that could not be put there, and come again. */
  readonly givenBack: number;
  /** Of those forwarded, messages that had been delivered before. */
  readonly redelivered: number;
}

/**
 * Carries messages for the hosted agents from JetStream to the queues until the invocation is nearly over. It
 * acknowledges none: whoever decides a message does, so a run may end anywhere and lose nothing.
 *
 * @throws NatsError when NATS cannot be reached at the start, or is out of reach at the end
 */
export async function runBridge(deps: BridgeDeps): Promise<BridgeRun> {
  const { link, sqs, telemetry, timing, settings } = deps;
  const nc = await link.get();
  const left = () => deps.remainingMs() - timing.marginMs;
  const consumers = await prepare(nc, deps, Math.max(100, Math.min(API_TIMEOUT_MS, left())));
  const lane = (queueUrl: string, of: readonly ConsumerInfo[]) =>
    new Lane({
      link,
      sqs,
      queueUrl,
      telemetry,
      timing,
      consumers: of,
      limit: Math.floor(settings.bound / SHARE),
    });
  const lanes = [
    lane(
      settings.tasksQueueUrl,
      consumers.map(({ tasks }) => tasks),
    ),
    lane(
      settings.controlsQueueUrl,
      consumers.map(({ controls }) => controls),
    ),
    lane(
      settings.eventsQueueUrl,
      consumers.flatMap(({ events }) => events ?? []),
    ),
  ];
  using _lag = watchLag(nc, deps, consumers);
  using _cards = offerCards(nc, {
    runtimes: settings.runtimes.map(({ runtime }) => runtime),
    instance: deps.instance,
    telemetry,
    timing,
    now: Date.now,
  });
  const pulling = Promise.all(lanes.map((each) => each.pull(left)));
  const over = () => within(pulling, Math.max(0, left()));
  await unless(deps.stop, over());
  await over();
  await Promise.all(lanes.map((each) => each.end(deps.remainingMs() * 0.8)));
  await pulling;
  if (consumers.length > 0 && !link.connected)
    throw new NatsError(
      "nats_lost",
      "the connection to NATS was lost and could not be restored by the run's end",
    );
  return lanes.reduce(
    (sum, { run }) => ({
      forwarded: sum.forwarded + run.forwarded,
      givenBack: sum.givenBack + run.givenBack,
      redelivered: sum.redelivered + run.redelivered,
    }),
    { forwarded: 0, givenBack: 0, redelivered: 0 },
  );
}

/** Waits for something, unless the signal comes first. */
async function unless(signal: AbortSignal | undefined, something: Promise<unknown>): Promise<void> {
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  const abort = () => resolve();
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort);
  await Promise.race([something, aborted]);
  signal?.removeEventListener("abort", abort);
}

/**
 * Makes the streams and the hosted agents' consumers, where they are missing. An agent whose consumers cannot be had
 * is left out; the others do not suffer for it, nor its tasks where only its events cannot be had.
 */
async function prepare(
  nc: NatsConnection,
  { settings, timing, telemetry }: BridgeDeps,
  timeout: number,
): Promise<RuntimeConsumers[]> {
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout });
  await ensureStreams(jsm).catch(unprepared);
  const made = await Promise.allSettled(
    settings.runtimes.map((runtime) => ensureConsumers(jsm, runtime, timing)),
  );
  for (const [i, result] of made.entries()) {
    const { runtime } = settings.runtimes[i] ?? {};
    if (result.status === "rejected") {
      telemetry.error("a runtime has no consumers", { runtime, ...errorFields(result.reason) });
      telemetry.count("RuntimesWithoutConsumers");
    } else if (result.value.eventsError !== undefined) {
      const { eventsError } = result.value;
      telemetry.error("a runtime does not hear of what it hands on", {
        runtime,
        ...errorFields(eventsError),
      });
      telemetry.count("RuntimesWithoutConsumers");
    }
  }
  const ready = made.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const failed = made.find((result) => result.status === "rejected");
  return ready.length === 0 && failed !== undefined ? unprepared(failed.reason) : ready;
}

function unprepared(cause: unknown): never {
  throw new NatsError("nats_jetstream", whyUnprepared(cause), { cause });
}

/** Before a stream is made it has been looked for: who may not make it is told that it is not there. */
function whyUnprepared(cause: unknown): string {
  const refusal = refusalOf(cause);
  const [, stream] = /^\$JS\.API\.STREAM\.CREATE\.([^.]+)$/.exec(refusal?.subject ?? "") ?? [];
  if (stream !== undefined) return unmadeStream(stream);
  if (refusal !== undefined)
    return `${refusal.says}; give it what ./sluice nats-permissions prints (docs/nats.md)`;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return `the streams and consumers cannot be had (${reason}); check that JetStream is enabled and that the account may use $JS.API`;
}
