import { JetStreamApiCodes, JetStreamApiError, jetstream } from "@nats-io/jetstream";
import { type KV, type KvEntry, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/transport-node";
import { CARD_TTL_MS, MAX_RECORD_BYTES, PEERS_BUCKET } from "./bucket-facts.ts";

/** How long the server may take to answer, in milliseconds. */
const TIMEOUT_MS = 5_000;
/** By which the server says that a key is in another state than was expected. */
const MOVED: readonly number[] = [
  JetStreamApiCodes.StreamWrongLastSequence,
  JetStreamApiCodes.StreamWrongLastSequenceUnknown,
];

/** A card as it lies in the bucket. */
export interface StoredCard {
  readonly bytes: Uint8Array;
  /** When it was put, in milliseconds since 1970 by the server's clock. */
  readonly at: number;
  /** By which the bucket tells this state of the key from others. */
  readonly revision: number;
}

/** The bucket of cards. */
export interface PeersBucket {
  /** The card under a key; nothing where there is none, or it was taken away. */
  get(key: string): Promise<StoredCard | undefined>;
  /** Puts a card, in place of any that is there. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /**
   * Puts a card in place of the one that was seen.
   *
   * @returns false if it is there no more: another was put meanwhile, or it was taken away
   */
  replace(key: string, bytes: Uint8Array, seen: StoredCard): Promise<boolean>;
  /**
   * Takes a card away, if it is still the one that was seen.
   *
   * @throws when another was put meanwhile
   */
  remove(key: string, seen: StoredCard): Promise<void>;
}

/**
 * Opens the bucket, and makes it where there is none, with the numbers that all peers use. One that is there is left as
 * its operator has set it.
 *
 * @throws when the server does not answer, or neither knows the bucket nor lets us make it
 */
export async function ensurePeersBucket(nc: NatsConnection): Promise<PeersBucket> {
  const kv = await managerOf(nc).create(PEERS_BUCKET, {
    ttl: CARD_TTL_MS,
    history: 1,
    maxValueSize: MAX_RECORD_BYTES,
  });
  return over(kv);
}

/** The bucket as it is, which may not be there: each call then fails. */
export async function openPeersBucket(nc: NatsConnection): Promise<PeersBucket> {
  return over(await managerOf(nc).open(PEERS_BUCKET));
}

function managerOf(nc: NatsConnection): Kvm {
  return new Kvm(jetstream(nc, { timeout: TIMEOUT_MS, checkAPI: false }));
}

function over(kv: KV): PeersBucket {
  return {
    async get(key) {
      const entry = await kv.get(key);
      return entry === null || entry.operation !== "PUT" ? undefined : stored(entry);
    },
    put: async (key, bytes) => void (await kv.put(key, bytes, { timeout: TIMEOUT_MS })),
    async replace(key, bytes, { revision }) {
      try {
        await kv.update(key, bytes, revision, TIMEOUT_MS);
        return true;
      } catch (error) {
        if (error instanceof JetStreamApiError && MOVED.includes(error.code)) return false;
        throw error;
      }
    },
    remove: (key, { revision }) => kv.delete(key, { previousSeq: revision }),
  };
}

function stored({ value, created, revision }: KvEntry): StoredCard {
  return { bytes: value, at: created.getTime(), revision };
}
