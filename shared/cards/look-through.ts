import { randomBytes } from "node:crypto";
import {
  AckPolicy,
  DeliverPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  type JsMsg,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { PEERS_STREAM as STREAM, PEERS_SUBJECTS as SUBJECTS } from "./bucket-facts.ts";
import type { Look, LookedAt } from "./peer-look.ts";

/** Keys of the bucket that one look reads; of more, those that were put last are not seen. */
export const MAX_LOOKED_AT = 1_000;
/** How long the server may take to send all of them, in milliseconds. */
const TIMEOUT_MS = 5_000;

/**
 * Looks through the bucket of cards: each key as it is now, taken away or not.
 *
 * @param now milliseconds since 1970
 * @returns nothing seen when there is no bucket
 * @throws when the server does not answer, does not let us read the bucket, or does not send all of it in time: half a look
 *   would make the other half silent
 */
export async function lookThrough(
  js: JetStreamClient,
  jsm: JetStreamManager,
  now: () => number,
): Promise<Pick<Look, "at" | "entries">> {
  const at = now();
  try {
    return { at, entries: await readAll(js, jsm) };
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound)
      return { at, entries: [] };
    throw error;
  }
}

/** By a consumer of this look alone, which the server forgets should we not come to remove it. */
async function readAll(js: JetStreamClient, jsm: JetStreamManager): Promise<LookedAt[]> {
  const name = `sluice_look_${randomBytes(8).toString("hex")}`;
  const { num_pending } = await jsm.consumers.add(STREAM, {
    name,
    deliver_policy: DeliverPolicy.LastPerSubject,
    filter_subject: `${SUBJECTS}>`,
    ack_policy: AckPolicy.None,
    inactive_threshold: nanos(2 * TIMEOUT_MS),
    mem_storage: true,
    num_replicas: 1,
  });
  const expected = Math.min(num_pending, MAX_LOOKED_AT);
  const entries: LookedAt[] = [];
  try {
    if (expected === 0) return entries;
    const consumer = await js.consumers.get(STREAM, name);
    const found = await consumer.fetch({ max_messages: expected, expires: TIMEOUT_MS });
    for await (const message of found) {
      entries.push(entryOf(message));
      // What was put over meanwhile or has expired is no more to come.
      if (message.info.pending === 0) return entries;
    }
    if (entries.length < expected)
      throw new Error(`bucket of cards: got ${entries.length} of ${expected} within ${TIMEOUT_MS} ms`);
  } finally {
    await jsm.consumers.delete(STREAM, name).catch(() => undefined);
  }
  return entries;
}

/** A message of the bucket's stream as the key that it stands for: as it was put, or that it was taken away. */
export function entryOf(message: Pick<JsMsg, "subject" | "headers" | "data" | "time">): LookedAt {
  const { headers } = message;
  // A marker of ours or of another's deletion, or of the server's (NATS ADR-8; ADR-43, Nats-Marker-Reason).
  const isGone = ["KV-Operation", "Nats-Marker-Reason"].some(
    (name) => headers?.has(name) && headers.get(name) !== "PUT",
  );
  return {
    key: message.subject.slice(SUBJECTS.length),
    at: message.time.getTime(),
    ...(!isGone && { bytes: message.data }),
  };
}
