import {
  AckPolicy,
  type ConsumerConfig,
  type ConsumerInfo,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import type { Timing } from "../config/timing.ts";

const HOUR = 3_600_000;
const MIB = 1_048_576;

export const TASKS_STREAM = "A2A_TASKS";
export const CONTROLS_STREAM = "A2A_CONTROLS";
export const EVENTS_STREAM = "A2A_EVENTS";

type StreamSpec = Partial<StreamConfig> & { readonly name: string };

/** The streams of the wire with the numbers that all peers use (docs/wire.md, streams). */
export const STREAMS: readonly StreamSpec[] = [
  streamSpec(TASKS_STREAM, "a2a.v1.task.>", MIB, 24 * HOUR),
  streamSpec(CONTROLS_STREAM, "a2a.v1.control.>", MIB / 4, 24 * HOUR),
  streamSpec(EVENTS_STREAM, "a2a.v1.event.>", MIB, 72 * HOUR),
];

function streamSpec(name: string, subject: string, maxBytes: number, duplicateMs: number): StreamSpec {
  return {
    name,
    subjects: [subject],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_msg_size: maxBytes,
    duplicate_window: nanos(duplicateMs),
  };
}

/** Which of the API's errors say that another client was first; not among the client's named codes. */
const STREAM_NAME_IN_USE = 10058;
const CONSUMER_ALREADY_EXISTS = 10148;

/** A new durable starts this far back: what is older was meant for whoever served the agent before. */
const START_BACK_MS = 24 * HOUR;
const MAX_ACK_PENDING = 1_000;

/**
 * Creates those streams of the wire that do not exist. What exists is the operator's and is left as it is.
 *
 * @throws JetStreamApiError when a stream cannot be created (not allowed, or another stream has its subjects)
 */
export async function ensureStreams(jsm: JetStreamManager): Promise<void> {
  await Promise.all(STREAMS.map((spec) => ensureStream(jsm, spec)));
}

async function ensureStream(jsm: JetStreamManager, spec: StreamSpec): Promise<void> {
  const existing = await unlessMissing(jsm.streams.info(spec.name), JetStreamApiCodes.StreamNotFound);
  if (existing !== null) return;
  try {
    await jsm.streams.add(spec);
  } catch (error) {
    if (!isApiError(error, STREAM_NAME_IN_USE)) throw error;
  }
}

/** A runtime whose messages are pulled. */
export interface PulledRuntime {
  readonly runtime: string;
  /** Whether it may hand tasks on: then there are events for it. */
  readonly delegates: boolean;
}

/** The durables by which a runtime's messages are pulled. */
export interface RuntimeConsumers {
  readonly tasks: ConsumerInfo;
  readonly controls: ConsumerInfo;
  /** For a runtime that delegates only. */
  readonly events?: ConsumerInfo;
  /** Why that one cannot be had: what others ask of the runtime does not suffer for it. */
  readonly eventsError?: unknown;
}

/**
 * Creates the durable consumers of a hosted runtime, or brings them to our settings if they are there: unlike the
 * streams they are ours. A new one starts 24 hours back. One request each when all is as it should be. The durable for
 * events of a runtime that does not delegate is left alone: it may be somebody else's who acts as that runtime.
 */
export async function ensureConsumers(
  jsm: JetStreamManager,
  { runtime, delegates }: PulledRuntime,
  timing: Timing,
): Promise<RuntimeConsumers> {
  const ensure = (stream: string, name: string, kind: string) =>
    ensureConsumer(jsm, stream, name, `a2a.v1.${kind}.*.${runtime}.>`, timing);
  const [tasks, controls, events] = await Promise.all([
    ensure(TASKS_STREAM, tasksConsumer(runtime), "task"),
    ensure(CONTROLS_STREAM, controlsConsumer(runtime), "control"),
    delegates
      ? ensure(EVENTS_STREAM, eventsConsumer(runtime), "event").then(
          (info) => ({ events: info }),
          (eventsError: unknown) => ({ eventsError }),
        )
      : undefined,
  ]);
  return { tasks, controls, ...events };
}

/** The durable's name for tasks to a runtime (docs/wire.md, consumers). */
export function tasksConsumer(runtime: string): string {
  return `a2a_tasks_${runtime}`;
}

/** The durable's name for controls to a runtime. */
export function controlsConsumer(runtime: string): string {
  return `a2a_controls_${runtime}`;
}

/** The durable's name for events of the tasks that a runtime has handed on. */
export function eventsConsumer(runtime: string): string {
  return `a2a_events_${runtime}`;
}

async function ensureConsumer(
  jsm: JetStreamManager,
  stream: string,
  name: string,
  filter: string,
  timing: Timing,
): Promise<ConsumerInfo> {
  const wanted = consumerSettings(filter, timing);
  const existing = await unlessMissing(jsm.consumers.info(stream, name), JetStreamApiCodes.ConsumerNotFound);
  if (existing !== null)
    return agrees(existing.config, wanted) ? existing : jsm.consumers.update(stream, name, wanted);
  try {
    return await jsm.consumers.add(stream, {
      ...wanted,
      durable_name: name,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.StartTime,
      opt_start_time: new Date(Date.now() - START_BACK_MS).toISOString(),
    });
  } catch (error) {
    if (!isApiError(error, CONSUMER_ALREADY_EXISTS)) throw error;
    return jsm.consumers.info(stream, name);
  }
}

/**
 * No `backoff` list: the server adds the difference between its entry and the ack wait to the delay that a negative
 * acknowledgement asks for (measured with 2.10: 1.5 s for 0.5 s at the second delivery of [1 s, 2 s]). Delays that
 * grow are asked for by whoever gives a message back.
 */
export function consumerSettings(filter: string, timing: Timing) {
  return {
    filter_subject: filter,
    ack_wait: nanos(timing.ackWaitMs),
    backoff: [],
    max_deliver: -1,
    max_ack_pending: MAX_ACK_PENDING,
  } satisfies Partial<ConsumerConfig>;
}

function agrees(actual: ConsumerConfig, wanted: ReturnType<typeof consumerSettings>): boolean {
  return (
    actual.filter_subject === wanted.filter_subject &&
    actual.ack_wait === wanted.ack_wait &&
    actual.max_deliver === wanted.max_deliver &&
    actual.max_ack_pending === wanted.max_ack_pending &&
    (actual.backoff ?? []).length === 0
  );
}

async function unlessMissing<T>(request: Promise<T>, missing: number): Promise<T | null> {
  try {
    return await request;
  } catch (error) {
    if (isApiError(error, missing)) return null;
    throw error;
  }
}

function isApiError(error: unknown, code: number): boolean {
  return error instanceof JetStreamApiError && error.code === code;
}
