import { jetstream } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/transport-node";

/** How long the server may take to confirm that a stream holds a message, in milliseconds. */
const PUBLISH_TIMEOUT_MS = 5_000;

/** A message for one of the wire's streams. */
export interface StreamBound {
  readonly subject: string;
  /** By which the stream knows a second copy (docs/wire.md §4). */
  readonly msgId: string;
  readonly body: string;
}

/**
 * Sends a message and waits until its stream holds it. That the stream has it already is success.
 *
 * @param traceparent the header of that name (W3C Trace Context), if the message has one
 * @throws when no stream confirms it in time: nobody is there, the message is too large, or it may not be sent
 */
export async function publishOnStream(
  nc: NatsConnection,
  { subject, msgId, body }: StreamBound,
  traceparent?: string,
): Promise<void> {
  const traced = headers();
  if (traceparent !== undefined) traced.set("traceparent", traceparent);
  await jetstream(nc, { timeout: PUBLISH_TIMEOUT_MS }).publish(subject, body, {
    msgID: msgId,
    timeout: PUBLISH_TIMEOUT_MS,
    ...(traceparent === undefined ? {} : { headers: traced }),
  });
}
