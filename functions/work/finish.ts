import { catchUp } from "../../shared/events/catch-up.ts";
import type { WorkHint } from "../../shared/tasks/messages.ts";
import { errorFields } from "../../shared/telemetry/index.ts";
import { isTerminal } from "../../shared/wire/index.ts";
import type { WorkDeps } from "./work.ts";

/**
 * Does what is left of a task that is over, and whose remote agent only a work function can tell so. It takes no claim:
 * several may do it at once. What fails is repeated by `sweep`, for the task stays due.
 */
export async function finish(deps: WorkDeps, { taskId }: WorkHint): Promise<void> {
  try {
    const head = await deps.store.head(taskId);
    if (head === undefined || isTerminal(head.state)) return;
    const entries = await deps.store.entries(taskId, 1);
    if (entries.at(-1)?.end !== undefined) await catchUp(deps, head, entries);
  } catch (error) {
    deps.telemetry.warn("a task that has ended is not finished yet", { taskId, ...errorFields(error) });
  }
}
