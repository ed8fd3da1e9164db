import { AckPolicy, type ConsumerInfo, JetStreamApiCodes, type JetStreamManager } from "@nats-io/jetstream";
import {
  CONTROLS_STREAM,
  consumerSettings,
  controlsConsumer,
  EVENTS_STREAM,
  eventsConsumer,
  type PulledRuntime,
  TASKS_STREAM,
  tasksConsumer,
} from "../../shared/nats/streams.ts";
import { countText } from "../text.ts";
import type { BridgeAdvice } from "./bridge.ts";
import { driftOf, unlessMissing } from "./drift.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";
import type { NatsExpected } from "./nats.ts";

/** A durable that a hosted agent is to have. */
interface Durable {
  readonly stream: string;
  readonly name: string;
  readonly filter: string;
}

/** What a look at a durable has shown. */
interface Looked {
  readonly finding: Finding;
  /** The trouble that all of them may be in together, for which there is one cause then. */
  readonly trouble?: "missing" | "unpulled";
  /** How many messages wait in it. */
  readonly pending?: number;
}

/** Whether the durables of the hosted agents are as configured, and somebody pulls. */
export async function checkDurables(
  jsm: JetStreamManager,
  { runtimes, timing, bridge }: NatsExpected,
  pause: (ms: number) => Promise<unknown>,
): Promise<Finding[]> {
  const durables = runtimes.flatMap(durablesOf);
  const look = (durable: Durable) => checkDurable(jsm, durable, { timing, bridge }, pause);
  const looked = await Promise.all(durables.map(look));
  const together = allInTrouble(looked, bridge);
  if (together !== undefined) return [together];
  const findings = looked.map(({ finding }) => finding);
  const fine = findings.filter(({ level }) => level === "ok");
  const rest = findings.filter(({ level }) => level !== "ok");
  if (fine.length === 0) return rest;
  return [...rest, ok("durables", `${fine.length} of ${durables.length} as configured, and pulled from`)];
}

/** One finding for a trouble that all durables are in: no task is taken at all. */
function allInTrouble(looked: readonly Looked[], bridge: BridgeAdvice): Finding | undefined {
  const [first] = looked;
  if (first?.trouble === undefined || looked.some(({ trouble }) => trouble !== first.trouble))
    return undefined;
  const all = `${looked.length} of ${looked.length} durables`;
  if (first.trouble === "missing") return wrong("durables", `${all}: do not exist`, bridge.renew);
  const waiting = looked.reduce((sum, { pending = 0 }) => sum + pending, 0);
  const wait = `, and ${countText(waiting, "message")} ${waiting === 1 ? "waits" : "wait"}`;
  return wrong("durables", `${all}: nobody pulls${waiting === 0 ? "" : wait}`, bridge.look);
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
  { timing, bridge }: Pick<NatsExpected, "timing" | "bridge">,
  pause: (ms: number) => Promise<unknown>,
): Promise<Looked> {
  const part = `durable ${name}`;
  const missing = [JetStreamApiCodes.ConsumerNotFound, JetStreamApiCodes.StreamNotFound];
  const look = () => unlessMissing(jsm.consumers.info(stream, name), ...missing);
  const info = await look();
  if (info === undefined)
    return { trouble: "missing", finding: wrong(part, `does not exist on ${stream}`, bridge.renew) };
  const amiss = amissWith(part, info, {
    ...consumerSettings(filter, timing),
    ack_policy: AckPolicy.Explicit,
  });
  if (amiss !== undefined) return { finding: amiss };
  if (isPulled(info)) return { finding: ok(part, "as configured") };
  await pause(BETWEEN_PULLS_MS);
  return pulled(part, (await look()) ?? info, bridge);
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

function pulled(part: string, info: ConsumerInfo, { look }: BridgeAdvice): Looked {
  const { num_pending: pending, num_ack_pending: unacknowledged } = info;
  if (isPulled(info)) return { finding: ok(part, "as configured") };
  if (info.config.max_ack_pending === unacknowledged)
    return {
      finding: warning(part, `${unacknowledged} messages are unacknowledged, as many as may be`, look),
    };
  const finding =
    pending > 0
      ? wrong(
          part,
          `${countText(pending, "message")} ${pending === 1 ? "waits" : "wait"}, and nobody pulls`,
          look,
        )
      : warning(part, "nobody pulls right now", look);
  return { finding, trouble: "unpulled", pending };
}
