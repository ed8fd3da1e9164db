/** Bytes of a request's body. */
export const MAX_REQUEST_BYTES = 8_388_608;
/** Bytes of an answer's body, decompressed. */
export const MAX_ANSWER_BYTES = 1_048_576;
/** Bytes of a stream of events, decompressed. */
export const MAX_STREAM_BYTES = 67_108_864;
/** Bytes of an answer's head. */
export const MAX_HEADER_BYTES = 16_384;
/** Redirects that are followed in a row. */
export const MAX_REDIRECTS = 3;
/** To resolve a name, connect and agree on TLS. */
const CONNECT_MS = 5_000;
/** From the call to the answer's last byte; of a stream of events to its head (A2A 1.0 §13.2 asks for 10 to 30 seconds). */
const DEADLINE_MS = 30_000;
/** A stream of events in which nothing comes, or nothing is read. Servers send a sign of life each 8 to 25 seconds. */
const IDLE_MS = 60_000;

/** The bounds of a request. */
export interface RequestLimits {
  readonly maxAnswerBytes: number;
  readonly maxStreamBytes: number;
  readonly maxHeaderBytes: number;
  readonly maxRedirects: number;
  readonly connectMs: number;
  readonly deadlineMs: number;
  readonly idleMs: number;
}

export const REQUEST_LIMITS: RequestLimits = {
  maxAnswerBytes: MAX_ANSWER_BYTES,
  maxStreamBytes: MAX_STREAM_BYTES,
  maxHeaderBytes: MAX_HEADER_BYTES,
  maxRedirects: MAX_REDIRECTS,
  connectMs: CONNECT_MS,
  deadlineMs: DEADLINE_MS,
  idleMs: IDLE_MS,
};
