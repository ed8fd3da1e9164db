import type { Skill } from "../agents/define.ts";
import type { Task } from "../agents/types.ts";
import { type EventDraft, errorMessage } from "../events/drafts.ts";
import type { Entry, Head } from "../tasks/items.ts";
import type { Values } from "../tasks/values.ts";
import type { ErrorCode } from "../wire/index.ts";
import type { Engine, Halt } from "./engine.ts";
import { StoreError } from "./errors.ts";
import { contentOf } from "./outcome.ts";

/** How a run of a handler came out: an end to be put, or a reason to leave the task as it is. */
export type Run =
  | { readonly end: NonNullable<Entry["end"]>; readonly events: readonly EventDraft[] }
  | { readonly halt: Halt };

/** setTimeout takes no more (Node.js: timers, setTimeout). */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The end of a task that failed: one result event with the reason. */
export function failure(head: Head, code: ErrorCode, message: string, now: number): Run {
  const error = { code, message: errorMessage(message) };
  return {
    end: { state: "TASK_STATE_FAILED", ...error },
    events: [
      {
        kind: "result",
        state: "TASK_STATE_FAILED",
        error,
        metrics: { elapsed_ms: Math.max(0, Math.round(now - head.decidedAt)) },
      },
    ],
  };
}

/** What was thrown, in words; whatever it is, this does not throw. */
function thrown(error: unknown): string {
  try {
    if (error instanceof Error) return `${String(error.name)}: ${String(error.message)}`;
    if (typeof error === "string") return `the handler threw ${error}`;
    if (error === null || error === undefined) return `the handler threw ${error}`;
    if (typeof error === "object" && "message" in error) return `the handler threw ${String(error.message)}`;
  } catch {
    return "the handler threw an error that does not say what it is";
  }
  return `the handler threw a value of type ${typeof error}`;
}

/** What handlers throw may be a proxy, which throws when it is asked what it is. */
function isStoreError(error: unknown): error is StoreError {
  try {
    return error instanceof StoreError;
  } catch {
    return false;
  }
}

/** What the task's deadline brings (docs/wire.md, deadlines). */
export function timedOut(head: Head, now: number): Run {
  const seconds = (head.deadline - head.decidedAt) / 1_000;
  return failure(head, "timeout", `the task was not done within ${seconds} s`, now);
}

/** Runs a handler until it returns, throws, or is halted: by a cancel, a lost claim, the deadline. */
export async function runHandler(options: {
  skill: Skill;
  task: Task;
  head: Head;
  engine: Engine;
  values: Values;
  now: () => number;
}): Promise<Run> {
  const { skill, task, head, engine, values, now } = options;
  const deadline = setTimeout(
    () => engine.halt({ kind: "deadline" }),
    Math.min(Math.max(0, head.deadline - now()), MAX_TIMER_MS),
  );
  const finished = (async (): Promise<Run> => {
    try {
      // The handler starts in a turn of its own, so that what it throws at once is caught like the rest.
      const outcome = await (async () => skill.run(task, engine))();
      const { content, artifacts, metrics } = await contentOf(outcome, { engine, values, task: head });
      engine.close();
      const elapsed = Math.max(0, Math.round(now() - head.decidedAt));
      const result: EventDraft = {
        kind: "result",
        state: "TASK_STATE_COMPLETED",
        content,
        artifacts,
        metrics: { ...metrics, elapsed_ms: elapsed },
      };
      return { end: { state: "TASK_STATE_COMPLETED" }, events: [result] };
    } catch (error) {
      engine.close();
      if (isStoreError(error)) return { halt: { kind: "broken", error: error.cause } };
      return failure(head, "internal", thrown(error), now());
    }
  })();
  const halted = engine.halted.then((halt): Run => {
    if (halt.kind === "deadline") return timedOut(head, now());
    return halt.kind === "threw" ? failure(head, "internal", thrown(halt.error), now()) : { halt };
  });
  try {
    return await Promise.race([finished, halted]);
  } finally {
    clearTimeout(deadline);
    engine.close();
  }
}
