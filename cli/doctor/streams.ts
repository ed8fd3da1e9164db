import {
  DiscardPolicy,
  JetStreamApiCodes,
  type JetStreamManager,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import { STREAMS } from "../../shared/nats/streams.ts";
import { countText } from "../text.ts";
import type { BridgeAdvice } from "./bridge.ts";
import { driftOf, unlessMissing } from "./drift.ts";
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
export async function checkStreams(
  jsm: JetStreamManager,
  bridge: Pick<BridgeAdvice, "begin">,
): Promise<Finding[]> {
  return Promise.all(STREAMS.map((spec) => checkStream(jsm, { ...UNLIMITED, ...spec }, bridge)));
}

async function checkStream(
  jsm: JetStreamManager,
  wanted: Partial<StreamConfig> & { readonly name: string },
  { begin }: Pick<BridgeAdvice, "begin">,
): Promise<Finding> {
  const { name, ...settings } = wanted;
  const part = `stream ${name}`;
  const info = await unlessMissing(jsm.streams.info(name), JetStreamApiCodes.StreamNotFound);
  if (info === undefined) return wrong(part, "does not exist", `${begin}: it creates what is missing`);
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
