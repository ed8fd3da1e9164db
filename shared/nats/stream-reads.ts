import type { JetStreamManager, StoredMsg } from "@nats-io/jetstream";

/** A message as its stream stores it. */
export interface StreamMessage {
  readonly subject: string;
  /** First value of each header, by its name as it was sent. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** When the stream stored it, in milliseconds since 1970. */
  readonly time: number;
}

/**
 * Reads a message by its sequence.
 *
 * @returns null when the sequence has left the stream (or never was in it)
 * @throws JetStreamApiError when the stream does not exist, or the client's errors when NATS does not answer
 */
export async function readBySeq(
  jsm: JetStreamManager,
  stream: string,
  seq: number,
): Promise<StreamMessage | null> {
  return plain(await jsm.streams.getMessage(stream, { seq }));
}

/**
 * Reads the last message on a subject.
 *
 * @returns null when the stream holds none
 */
export async function readLastOn(
  jsm: JetStreamManager,
  stream: string,
  subject: string,
): Promise<StreamMessage | null> {
  return plain(await jsm.streams.getMessage(stream, { last_by_subj: subject }));
}

/**
 * Counts the messages on a subject.
 *
 * @throws as {@link readBySeq}
 */
export async function countOn(jsm: JetStreamManager, stream: string, subject: string): Promise<number> {
  const { state } = await jsm.streams.info(stream, { subjects_filter: subject });
  return state.subjects?.[subject] ?? 0;
}

/** How far a durable has come: what it has handed out last, and up to where all of it is settled. */
export interface Heard {
  /** How many of its messages are on the stream that it has not handed out. */
  readonly waiting: number;
  /** How many are handed out and not settled. */
  readonly unsettled: number;
  /** The sequence that was handed out last. */
  readonly handedOut: number;
  /** Up to this sequence all are settled. */
  readonly settled: number;
}

/** @throws as {@link readBySeq}; also when there is no such durable */
export async function heardBy(jsm: JetStreamManager, stream: string, durable: string): Promise<Heard> {
  const info = await jsm.consumers.info(stream, durable);
  return {
    waiting: info.num_pending,
    unsettled: info.num_ack_pending,
    handedOut: info.delivered.stream_seq,
    settled: info.ack_floor.stream_seq,
  };
}

function plain(stored: StoredMsg | null): StreamMessage | null {
  if (stored === null) return null;
  const headers = Object.fromEntries(stored.header.keys().map((name) => [name, stored.header.get(name)]));
  return { subject: stored.subject, headers, body: stored.data, time: stored.time.getTime() };
}
