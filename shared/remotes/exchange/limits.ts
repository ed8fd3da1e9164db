import type { ExchangeLimits } from "./types.ts";

/**
 * Bounds of what a remote agent may say (docs/limits.md). What is over one is refused as a whole, for half of a
 * task would be taken for all of it.
 */

/** Bytes of an answer that is no stream: a task with all of its artifacts. */
export const MAX_REMOTE_ANSWER_BYTES = 8_388_608;
/** Characters of one event of a stream; the SDK's own bound is 4 MiB. */
export const MAX_REMOTE_EVENT = 4_000_000;
/** Events of one stream. */
const MAX_REMOTE_EVENTS = 10_000;
/** How long one stream is read; then the task is asked for. */
const MAX_REMOTE_STREAM_MS = 10 * 60_000;
/** Nesting of what an agent says, its envelope included. */
export const MAX_REMOTE_DEPTH = 128;
/** Parts of one message, or of one artifact at a time. */
export const MAX_REMOTE_PARTS = 1_000;
/** Artifacts of one task, as many as a task of ours gives out. */
export const MAX_REMOTE_ARTIFACTS = 500;
/** Characters of an id that an agent gives. */
export const MAX_REMOTE_ID = 256;
/** Characters of the URL of a part. */
export const MAX_REMOTE_PART_URL = 8_192;
/** Characters of a name of an artifact or a file, and of a media type. */
export const MAX_REMOTE_LABEL = 255;
/** Characters of an artifact's description. */
export const MAX_REMOTE_DESCRIPTION = 8_192;
/** Characters of what an agent says about an error. */
export const MAX_REMOTE_SAYS = 500;
/** How long an agent may want to be left alone. */
export const MAX_RETRY_AFTER_MS = 3_600_000;
/** Pages of tasks that are looked through for a message. */
export const MAX_LOOKUP_PAGES = 10;
/** Messages of each of these tasks. */
export const MAX_LOOKUP_HISTORY = 1_000;

/** How long an answer to a message may take: there are agents that work before they answer, whatever is asked. */
const SEND_MS = 120_000;
/** How long any other answer may take (A2A 1.0 §13.2 asks for 10 to 30 seconds). */
const ASK_MS = 30_000;

/** The bounds that hold if no others are given. */
export const EXCHANGE_LIMITS: ExchangeLimits = {
  sendMs: SEND_MS,
  askMs: ASK_MS,
  streamEvents: MAX_REMOTE_EVENTS,
  streamMs: MAX_REMOTE_STREAM_MS,
};
