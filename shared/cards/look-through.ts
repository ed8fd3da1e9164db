import { randomBytes } from "node:crypto";
import {
  AckPolicy,
  type ConsumerConfig,
  type ConsumerInfo,
  DeliverPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  type JsMsg,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { STALE_AFTER_MS, PEERS_STREAM as STREAM, PEERS_SUBJECTS as SUBJECTS } from "./bucket-facts.ts";
import type { Look, LookedAt } from "./peer-look.ts";

/** Keys of the bucket that one look reads; of more, only those that were put lately enough to be live. */
export const MAX_LOOKED_AT = 1_000;
/** How long the server may take to send all of them, in milliseconds. */
const TIMEOUT_MS = 5_000;

/**
 * Looks through the bucket of cards: each key as it is now, taken away or not.
 *
 * @param reader the name of the consumer by which it is read, so that NATS can allow its user this one and nobody
 *   else's (docs/nats.md); one look at a time goes by a name
 * @param now milliseconds since 1970
 * @returns nothing seen when there is no bucket
 * @throws when the server does not answer, does not let us read the bucket, or does not send all of it in time: half a look
 *   would make the other half silent
 */
export async function lookThrough(
  js: JetStreamClient,
  jsm: JetStreamManager,
  { reader, now }: { readonly reader: string; readonly now: () => number },
): Promise<Pick<Look, "at" | "entries">> {
  const at = now();
  try {
    return { at, entries: await readAll(js, jsm, reader, at) };
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound)
      return { at, entries: [] };
    throw error;
  }
}

/** By a consumer of this look alone, which the server forgets should we not come to remove it. */
async function readAll(
  js: JetStreamClient,
  jsm: JetStreamManager,
  name: string,
  at: number,
): Promise<LookedAt[]> {
  const all = await readerAnew(jsm, name, { deliver_policy: DeliverPolicy.LastPerSubject });
  // What was put once must not hide those who renew their records.
  const info = all.num_pending > MAX_LOOKED_AT ? await readerAnew(jsm, name, lately(at)) : all;
  const expected = Math.min(info.num_pending, MAX_LOOKED_AT);
  const entries: LookedAt[] = [];
  try {
    if (expected === 0) return entries;
    const consumer = js.consumers.getConsumerFromInfo(info);
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

/** From when on a record makes its agent live (peer-status.ts). */
function lately(at: number): Pick<ConsumerConfig, "deliver_policy" | "opt_start_time"> {
  const opt_start_time = new Date(at - STALE_AFTER_MS).toISOString();
  return { deliver_policy: DeliverPolicy.StartTime, opt_start_time };
}

/**
 * Makes the consumer, in place of one that a look has left which was ended. Each is described otherwise: of the same
 * kind the server would give us the one that is there, which has told already what there is.
 */
async function readerAnew(
  jsm: JetStreamManager,
  name: string,
  from: Partial<ConsumerConfig>,
): Promise<ConsumerInfo> {
  const make = () =>
    jsm.consumers.add(STREAM, {
      name,
      description: randomBytes(8).toString("hex"),
      ...from,
      filter_subject: `${SUBJECTS}>`,
      ack_policy: AckPolicy.None,
      inactive_threshold: nanos(2 * TIMEOUT_MS),
      mem_storage: true,
      num_replicas: 1,
    });
  try {
    return await make();
  } catch (error) {
    if (!isTaken(error)) throw error;
    await jsm.consumers.delete(STREAM, name);
    return await make();
  }
}

/** The name is another consumer's (nats-server, errors.json: JSConsumerAlreadyExists, JSConsumerNameExistErr). */
function isTaken(error: unknown): boolean {
  return error instanceof JetStreamApiError && [10_148, 10_013].includes(error.code);
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
