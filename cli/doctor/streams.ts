import {
  AckPolicy,
  type ConsumerInfo,
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import type { Timing } from "../../shared/config/timing.ts";
import {
  CONTROLS_STREAM,
  consumerSettings,
  controlsConsumer,
  EVENTS_STREAM,
  eventsConsumer,
  type PulledRuntime,
  STREAMS,
  TASKS_STREAM,
  tasksConsumer,
} from "../../shared/nats/streams.ts";
import { cleanLine, countText } from "../text.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";

/** What the wire's streams have besides: no limit (docs/wire.md §3). */
const UNLIMITED: Partial<StreamConfig> = {
  max_msgs: -1,
  max_bytes: -1,
  max_age: 0,
  max_msgs_per_subject: -1,
  max_consumers: -1,
};

/** Whether the streams are as documented. What an operator has set otherwise is told, and never changed. */
export async function checkStreams(jsm: JetStreamManager): Promise<Finding[]> {
  return Promise.all(STREAMS.map((spec) => checkStream(jsm, { ...UNLIMITED, ...spec })));
}

async function checkStream(
  jsm: JetStreamManager,
  wanted: Partial<StreamConfig> & { readonly name: string },
): Promise<Finding> {
  const { name, ...settings } = wanted;
  const part = `stream ${name}`;
  const info = await unlessMissing(jsm.streams.info(name), JetStreamApiCodes.StreamNotFound);
  if (info === undefined)
    return wrong(
      part,
      "does not exist",
      "start the bridge (`npm start`, or deploy): it creates what is missing",
    );
  const { config, state } = info;
  const lacking = (settings.subjects ?? []).filter((subject) => !config.subjects.includes(subject));
  if (lacking.length > 0)
    return wrong(part, `does not take ${lacking.join(", ")}`, `add the subject: nats stream edit ${name}`);
  const bound = fullAt(info);
  if (bound !== undefined)
    return wrong(
      part,
      `is full, and takes nothing more: ${bound}`,
      `raise the bound, or delete what nobody needs: nats stream edit ${name}, nats stream purge ${name}`,
    );
  const drift = driftOf({ ...config }, settings);
  if (drift !== undefined)
    return warning(part, `differs: ${drift}`, "set it back (nats stream edit), if it was not meant");
  return ok(part, `as documented, ${countText(state.messages, "message")}`);
}

/** A stream that has this share of its bytes may refuse the next message, which may be large. */
const NEARLY_FULL = 0.99;

/** The bound at which a stream refuses messages (wire.md §3: `discard: new`); nothing when it has room. */
function fullAt({ config, state }: StreamInfo): string | undefined {
  if (config.discard !== DiscardPolicy.New) return undefined;
  if (config.max_msgs >= 0 && state.messages >= config.max_msgs)
    return `it has ${state.messages} of max_msgs ${config.max_msgs}`;
  if (config.max_bytes >= 0 && state.bytes >= config.max_bytes * NEARLY_FULL)
    return `it has ${state.bytes} of max_bytes ${config.max_bytes}`;
  return undefined;
}

/** Which settings differ; nothing when none does. */
function driftOf(
  actual: Readonly<Record<string, unknown>>,
  wanted: Readonly<Record<string, unknown>>,
): string | undefined {
  const differ = Object.entries(wanted).filter(
    ([key, value]) => value !== undefined && JSON.stringify(actual[key] ?? null) !== JSON.stringify(value),
  );
  if (differ.length === 0) return undefined;
  return differ
    .map(
      ([key, value]) =>
        `${key} is ${cleanLine(JSON.stringify(actual[key] ?? null))} instead of ${JSON.stringify(value)}`,
    )
    .join(", ");
}

/** A durable that a hosted agent is to have. */
interface Durable {
  readonly stream: string;
  readonly name: string;
  readonly filter: string;
}

/** Whether the durables of the hosted agents are as configured, and somebody pulls. */
export async function checkDurables(
  jsm: JetStreamManager,
  runtimes: readonly PulledRuntime[],
  timing: Timing,
  pause: (ms: number) => Promise<unknown>,
): Promise<Finding[]> {
  const durables = runtimes.flatMap(durablesOf);
  const findings = await Promise.all(durables.map((durable) => checkDurable(jsm, durable, timing, pause)));
  const fine = findings.filter(({ level }) => level === "ok");
  const rest = findings.filter(({ level }) => level !== "ok");
  if (fine.length === 0) return rest;
  return [...rest, ok("durables", `${fine.length} of ${durables.length} as configured, and pulled from`)];
}

function durablesOf({ runtime, delegates }: PulledRuntime): Durable[] {
  const of = (stream: string, name: string, kind: string) => ({
    stream,
    name,
    filter: `a2a.v1.${kind}.*.${runtime}.>`,
  });
  return [
    of(TASKS_STREAM, tasksConsumer(runtime), "task"),
    of(CONTROLS_STREAM, controlsConsumer(runtime), "control"),
    ...(delegates ? [of(EVENTS_STREAM, eventsConsumer(runtime), "event")] : []),
  ];
}

/** How long is waited before nobody is believed to pull: a pull that has ended is followed by the next. */
const BETWEEN_PULLS_MS = 1_500;

async function checkDurable(
  jsm: JetStreamManager,
  { stream, name, filter }: Durable,
  timing: Timing,
  pause: (ms: number) => Promise<unknown>,
): Promise<Finding> {
  const part = `durable ${name}`;
  const missing = [JetStreamApiCodes.ConsumerNotFound, JetStreamApiCodes.StreamNotFound];
  const look = () => unlessMissing(jsm.consumers.info(stream, name), ...missing);
  const info = await look();
  if (info === undefined)
    return wrong(
      part,
      `does not exist on ${stream}`,
      "start the bridge: it creates its durables, 24 hours back",
    );
  const amiss = amissWith(part, info, {
    ...consumerSettings(filter, timing),
    ack_policy: AckPolicy.Explicit,
  });
  if (amiss !== undefined) return amiss;
  if (isPulled(info)) return ok(part, "as configured");
  await pause(BETWEEN_PULLS_MS);
  return notPulled(part, (await look()) ?? info);
}

/** What is amiss with a durable's settings; nothing when they are as wanted. */
export function amissWith(
  part: string,
  { config, paused, stream_name, name }: Pick<ConsumerInfo, "config" | "paused" | "stream_name" | "name">,
  wanted: Readonly<Record<string, unknown>>,
): Finding | undefined {
  if (paused === true)
    return wrong(
      part,
      "is paused: nothing is delivered",
      `let it go on: nats consumer resume ${stream_name} ${name}`,
    );
  // The server leaves out a list that is empty.
  const drift = driftOf({ ...config, backoff: config.backoff ?? [] }, wanted);
  if (drift === undefined) return undefined;
  return warning(
    part,
    `differs: ${drift}`,
    "leave it: the bridge sets its durables right when it next starts",
  );
}

function isPulled({ num_waiting }: ConsumerInfo): boolean {
  return num_waiting > 0;
}

function notPulled(part: string, info: ConsumerInfo): Finding {
  const { num_pending: pending, num_ack_pending: unacknowledged } = info;
  const todo = "see that the bridge runs (./sluice doctor shows its schedule), and what it logs";
  if (isPulled(info)) return ok(part, "as configured");
  if (info.config.max_ack_pending === unacknowledged)
    return warning(part, `${unacknowledged} messages are unacknowledged, as many as may be`, todo);
  if (pending > 0)
    return wrong(
      part,
      `${countText(pending, "message")} ${pending === 1 ? "waits" : "wait"}, and nobody pulls`,
      todo,
    );
  return warning(part, "nobody pulls right now", todo);
}

async function unlessMissing<T>(request: Promise<T>, ...codes: readonly number[]): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof JetStreamApiError && codes.includes(error.code)) return undefined;
    throw error;
  }
}
