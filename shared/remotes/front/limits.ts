/** How long a stream is followed within an invocation, in milliseconds; then the task is asked for from time to time. */
export const STREAM_MS = 60_000;
/** A stream in which nothing came for so long, in milliseconds, is not worth waiting at. */
export const SILENCE_MS = 10_000;
/** How long an artifact that grows, or may, is kept back, in milliseconds. */
export const GROWING_MS = 3_000;
/** The first pause between two looks, in milliseconds; it doubles while nothing is new. */
export const FIRST_PAUSE_MS = 1_000;
/** The longest pause between two looks, in milliseconds. */
export const LONGEST_PAUSE_MS = 60_000;
/** How often a message is tried to be sent that has certainly not arrived, or is looked for. */
export const MAX_SENDS = 10;
/** How many looks may fail in a row. */
export const MAX_FAILED_LOOKS = 20;
/** How often the same question is taken for one whose answer the remote has not read yet. */
export const MAX_STALE_QUESTIONS = 4;
/** Characters of a question that is passed on. */
export const MAX_QUESTION = 20_000;
/** Characters of what a remote says of its task's end, where that was no good one. */
export const MAX_LAST_WORDS = 1_000;
/** How long the end of a task is told to the remote again and again, in milliseconds; then it is given up. */
export const TELL_END_MS = 900_000;
/** How long a message may be under way that nobody knows the fate of, in milliseconds: so long it is looked for. */
export const UNDER_WAY_MS = 60_000;
