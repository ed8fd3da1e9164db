import type { WorkHint } from "../../shared/tasks/messages.ts";
import { hasTimedOut, isStale } from "./slot.ts";
import type { WorkDeps } from "./work.ts";

/**
 * Whether a hint comes to nothing since the task's agent is paused. The task is noted, so that it is offered again as
 * soon as its agent is resumed; if its deadline has passed it ends here.
 */
export async function isHeldBack(deps: WorkDeps, hint: WorkHint): Promise<boolean> {
  const { store, pauses, clock, telemetry } = deps;
  const runtime = hint.to ?? (await store.head(hint.taskId))?.to;
  if (runtime === undefined || (await pauses.of(runtime)) === undefined) return false;
  const head = await store.head(hint.taskId);
  if (head === undefined || isStale(head, hint)) return true;
  if (clock.now() >= head.deadline && (await hasTimedOut(deps, head))) return true;
  await pauses.hold(runtime, head.taskId, head.expiresAt);
  // Who resumes reads the notes afterwards: either this one is found, or it is seen here that the pause is over.
  if ((await pauses.look(runtime)) === undefined) {
    await pauses.release(runtime, head.taskId);
    return false;
  }
  telemetry.debug("a task is held back, for its agent is paused", { ...hint });
  return true;
}
