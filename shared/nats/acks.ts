import type { JsMsg } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";

/** How long the server may take to confirm an acknowledgement, in milliseconds. */
const CONFIRM_MS = 5_000;
/** The longest reason that is sent along; more would only fill the server's advisory. */
const MAX_REASON = 256;

/**
 * The subject on which a delivered message is acknowledged, by whom ever. The client keeps it in the message but not in
 * the message's type.
 */
export function ackSubjectOf(message: JsMsg): string {
  if ("reply" in message && typeof message.reply === "string" && message.reply !== "") return message.reply;
  throw new Error(`message ${message.seq} of ${message.info.stream} carries no ack subject`);
}

/**
 * Acknowledges a JetStream message by the subject it was delivered with, wherever it was delivered to.
 *
 * The server's protocol is that of a request: the reply confirms that the acknowledgement was processed
 * (NATS docs: "JetStream wire API", acknowledging messages).
 *
 * @param timeoutMs how long to wait for the confirmation
 * @returns whether the server confirmed in time; without a confirmation the message may come again
 */
export function ack(nc: NatsConnection, ackSubject: string, timeoutMs = CONFIRM_MS): Promise<boolean> {
  return settle(nc, ackSubject, "+ACK", timeoutMs);
}

/**
 * Gives a message back, to be delivered again after `delayMs` milliseconds.
 *
 * @returns whether the server confirmed in time; if not, it comes again after the consumer's ack wait at the latest
 */
export function nak(
  nc: NatsConnection,
  ackSubject: string,
  delayMs: number,
  timeoutMs = CONFIRM_MS,
): Promise<boolean> {
  const delay = Math.max(1, Math.round(delayMs)) * 1_000_000;
  return settle(nc, ackSubject, `-NAK ${JSON.stringify({ delay })}`, timeoutMs);
}

/**
 * Ends a message for good: it never comes again, and the server publishes an advisory with the reason.
 *
 * @returns whether the server confirmed in time
 */
export function term(
  nc: NatsConnection,
  ackSubject: string,
  reason: string,
  timeoutMs = CONFIRM_MS,
): Promise<boolean> {
  const line = reason.replaceAll(/\s+/g, " ").trim().slice(0, MAX_REASON);
  return settle(nc, ackSubject, `+TERM ${line}`.trim(), timeoutMs);
}

async function settle(
  nc: NatsConnection,
  ackSubject: string,
  payload: string,
  timeout: number,
): Promise<boolean> {
  try {
    await nc.request(ackSubject, payload, { timeout });
    return true;
  } catch {
    return false;
  }
}
