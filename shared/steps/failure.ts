import { type EventDraft, errorMessage } from "../events/drafts.ts";
import type { Entry, Head } from "../tasks/items.ts";
import type { ErrorCode } from "../wire/index.ts";
import type { Halt } from "./engine.ts";

/** How a run of a handler came out: an end to be put, or a reason to leave the task as it is. */
export type Run =
  | { readonly end: NonNullable<Entry["end"]>; readonly events: readonly EventDraft[] }
  | { readonly halt: Halt };

/** Since the task was accepted, in milliseconds. */
export function elapsed(head: Head, now: number): number {
  return Math.max(0, Math.round(now - head.decidedAt));
}

/** Numbers that an error may bring for the result of the task that it ends: an event has room for them. */
const MAX_ERROR_METRICS = 100;
/** The longest name of one, in characters. */
const MAX_METRIC_NAME = 128;

/**
 * The end of a task that failed: one result event with the reason.
 *
 * @param metrics numbers of the error's own, for the result
 */
export function failure(
  head: Head,
  code: ErrorCode,
  message: string,
  now: number,
  metrics: Readonly<Record<string, number>> = {},
): Run {
  const error = { code, message: errorMessage(message) };
  const own = Object.entries(metrics).filter(([name]) => name.length <= MAX_METRIC_NAME);
  const told = { ...Object.fromEntries(own.slice(0, MAX_ERROR_METRICS)), elapsed_ms: elapsed(head, now) };
  return {
    end: { state: "TASK_STATE_FAILED", ...error },
    events: [{ kind: "result", state: "TASK_STATE_FAILED", error, metrics: told }],
  };
}

/** What the task's deadline brings (docs/tasks.md, deadlines). */
export function timedOut(head: Head, now: number): Run {
  const seconds = (head.deadline - head.decidedAt) / 1_000;
  return failure(head, "timeout", `the task was not done within ${seconds} s`, now);
}
