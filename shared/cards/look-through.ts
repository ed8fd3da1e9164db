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
 * By which consumer the bucket is read: by one of this name, so that NATS can allow its user this one and nobody else's
 * (docs/nats.md), one look at a time; or for some keys by one that the server names, of whom may pull from any.
 */
export type LookBy = { readonly reader: string } | { readonly keys: readonly string[] };

/** How a look goes. */
export interface LookOptions {
  /** How long the server may take to send all of it, in milliseconds. */
  readonly patienceMs?: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** What a look has found. */
export interface LookedThrough extends Pick<Look, "at" | "entries"> {
  /** Whether there are more keys than one look reads: then these are of those alone that were put lately. */
  readonly lately: boolean;
}

/**
 * Looks through the bucket of cards: each key as it is now, taken away or not.
 *
 * @returns nothing seen when there is no bucket
 * @throws when the server does not answer, does not let us read the bucket, or does not send all of it in time: half a look
 *   would make the other half silent
 */
export async function lookThrough(
  js: JetStreamClient,
  jsm: JetStreamManager,
  { now, patienceMs = TIMEOUT_MS, ...by }: LookBy & LookOptions,
): Promise<LookedThrough> {
  const at = now();
  try {
    return { at, ...(await readAll(js, { jsm, by, patienceMs }, at)) };
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound)
      return { at, entries: [], lately: false };
    throw error;
  }
}

/** Who makes consumers, and which. */
interface Making {
  readonly jsm: JetStreamManager;
  readonly by: LookBy;
  readonly patienceMs: number;
}

/** By a consumer of this look alone, which the server forgets should we not come to remove it. */
async function readAll(
  js: JetStreamClient,
  making: Making,
  at: number,
): Promise<Pick<LookedThrough, "entries" | "lately">> {
  const { jsm, patienceMs } = making;
  const all = await readerAnew(making, { deliver_policy: DeliverPolicy.LastPerSubject });
  const made = new Set([all.name]);
  const entries: LookedAt[] = [];
  // What was put once must not hide those who renew their records.
  const lately = all.num_pending > MAX_LOOKED_AT;
  try {
    const info = lately ? await readerAnew(making, putLately(at)) : all;
    made.add(info.name);
    const expected = Math.min(info.num_pending, MAX_LOOKED_AT);
    if (expected === 0) return { entries, lately };
    const consumer = js.consumers.getConsumerFromInfo(info);
    const found = await consumer.fetch({ max_messages: expected, expires: patienceMs });
    for await (const message of found) {
      entries.push(entryOf(message));
      // What was put over meanwhile or has expired is no more to come.
      if (message.info.pending === 0) return { entries, lately };
    }
    if (entries.length < expected)
      throw new Error(`bucket of cards: got ${entries.length} of ${expected} within ${patienceMs} ms`);
  } finally {
    for (const name of made) await jsm.consumers.delete(STREAM, name).catch(() => undefined);
  }
  return { entries, lately };
}

/** From when on a record makes its agent live (peer-status.ts). */
function putLately(at: number): Pick<ConsumerConfig, "deliver_policy" | "opt_start_time"> {
  const opt_start_time = new Date(at - STALE_AFTER_MS).toISOString();
  return { deliver_policy: DeliverPolicy.StartTime, opt_start_time };
}

/**
 * Makes the consumer, in place of one that a look has left which was ended. Each is described otherwise: of the same
 * kind the server would give us the one that is there, which has told already what there is.
 */
async function readerAnew(
  { jsm, by, patienceMs }: Making,
  from: Partial<ConsumerConfig>,
): Promise<ConsumerInfo> {
  const of =
    "reader" in by
      ? { name: by.reader, filter_subject: `${SUBJECTS}>` }
      : // A list, even of one: the subject of the request has neither name nor filter then (docs/nats.md).
        { filter_subjects: by.keys.map((key) => `${SUBJECTS}${key}`) };
  const make = () =>
    jsm.consumers.add(STREAM, {
      ...of,
      description: randomBytes(8).toString("hex"),
      ...from,
      ack_policy: AckPolicy.None,
      inactive_threshold: nanos(2 * patienceMs),
      mem_storage: true,
      num_replicas: 1,
    });
  try {
    return await make();
  } catch (error) {
    if (!("reader" in by) || !isTaken(error)) throw error;
    await jsm.consumers.delete(STREAM, by.reader);
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
