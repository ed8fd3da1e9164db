import type { JsMsg } from "@nats-io/jetstream";
import { Match, type MsgHdrs } from "@nats-io/transport-node";
import { ackSubjectOf } from "../../shared/nats/index.ts";
import { type Outgoing, queueJson } from "../../shared/queues/index.ts";
import type { Forwarded } from "../../shared/tasks/messages.ts";

/** The largest body that travels inline: ten of them, mostly JSON, fit into one request to SQS. */
export const MAX_INLINE_BYTES = 49_152;
/** The headers that anybody reads; a longer value is none of ours (docs/wire.md, message ids). */
const HEADERS = ["Nats-Msg-Id", "traceparent"];
const MAX_HEADER_LENGTH = 1_024;
/** W3C Trace Context, version 00. */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The message as it goes through SQS. */
export function forwardedOf(message: JsMsg): Forwarded {
  const body = inlineBody(message.data);
  return {
    stream: message.info.stream,
    consumer: message.info.consumer,
    seq: message.seq,
    ackSubject: ackSubjectOf(message),
    subject: message.subject,
    headers: neededHeaders(message.headers),
    deliveries: message.info.deliveryCount,
    storedAt: message.time.getTime(),
    ...(body === undefined ? {} : { body }),
  };
}

/** The queue's message for it. */
export function outgoing(forwarded: Forwarded): Outgoing {
  const { traceparent } = forwarded.headers;
  return {
    body: queueJson(forwarded),
    ...(traceparent === undefined ? {} : { attributes: { traceparent } }),
  };
}

/** The body as text that encodes to the very same bytes, or undefined: then it is read from the stream later. */
function inlineBody(data: Uint8Array): string | undefined {
  if (data.length > MAX_INLINE_BYTES) return undefined;
  try {
    return utf8.decode(data);
  } catch {
    return undefined;
  }
}

function neededHeaders(headers: MsgHdrs | undefined): Record<string, string> {
  const needed: Record<string, string> = {};
  for (const name of HEADERS) {
    const value = headers?.get(name, Match.IgnoreCase) ?? "";
    if (value === "" || value.length > MAX_HEADER_LENGTH) continue;
    if (name !== "traceparent" || TRACEPARENT.test(value)) needed[name] = value;
  }
  return needed;
}
