import type { TaskEvent } from "./read-event.ts";

/** The `data` of a `status` that asks for what only the operator may approve (docs/wire.md §7, §9). */
export const ASKS_OPERATOR = { by: "operator" } as const;

/** Whether an event asks the operator, and not its task's sender; it is the executor's word, and only tells whom to send there. */
export function asksOperator({ state, data }: Pick<TaskEvent, "state" | "data">): boolean {
  if (state !== "TASK_STATE_AUTH_REQUIRED" || typeof data !== "object" || data === null) return false;
  return "by" in data && data.by === ASKS_OPERATOR.by;
}
