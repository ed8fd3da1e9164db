import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Forwarded } from "../tasks/messages.ts";
import { ack, nak, term } from "./acks.ts";
import { readBySeq } from "./stream-reads.ts";

const READ_TIMEOUT_MS = 5_000;

/** A forwarded message with its body: null when it has left its stream. */
export interface Delivery extends Omit<Forwarded, "body"> {
  readonly body: Uint8Array | null;
}

/** What is to become of a JetStream message. */
export type Verdict = { readonly ack: true } | { readonly term: string } | { readonly nakMs: number };

/** Brings the body to a forwarded message, from the stream when it is not inline. */
export async function fetchDelivery(nc: NatsConnection, forwarded: Forwarded): Promise<Delivery> {
  if (forwarded.body !== undefined) return { ...forwarded, body: Buffer.from(forwarded.body) };
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: READ_TIMEOUT_MS });
  const stored = await readBySeq(jsm, forwarded.stream, forwarded.seq);
  return { ...forwarded, body: stored?.body ?? null };
}

/** Tells JetStream what becomes of a message. True when the server has confirmed it. */
export function settleDelivery(nc: NatsConnection, ackSubject: string, verdict: Verdict): Promise<boolean> {
  if ("term" in verdict) return term(nc, ackSubject, verdict.term);
  if ("nakMs" in verdict) return nak(nc, ackSubject, verdict.nakMs);
  return ack(nc, ackSubject);
}

/** The delay of a negative acknowledgement: it doubles with each delivery up to the longest. */
export function nakDelay(
  deliveries: number,
  timing: { readonly nakBaseMs: number; readonly nakMaxMs: number },
): number {
  return Math.min(timing.nakMaxMs, timing.nakBaseMs * 2 ** Math.min(deliveries - 1, 30));
}
