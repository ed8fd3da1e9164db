import type { DeploymentConfig } from "../config/deployment.ts";
import type { Timing } from "../config/timing.ts";
import { mayBeOpen } from "../remotes/front/open.ts";
import type { View } from "../tasks/fold.ts";
import type { Head } from "../tasks/items.ts";
import type { WorkHint } from "../tasks/messages.ts";
import type { Store } from "../tasks/store.ts";

/** Tells the remote agent of a task that it is over here. @returns whether the task can be left at that */
export type TellRemote = (head: Head, view: View, endedAt: number) => Promise<boolean>;

/** What it takes that a remote agent hears of a task's end. */
export interface FarewellDeps {
  readonly store: Pick<Store, "head" | "postpone">;
  readonly deployment: Pick<DeploymentConfig, "agents">;
  readonly timing: Pick<Timing, "leaseMs">;
  /** Puts a hint on the agent's work queue. */
  readonly hint: (hint: WorkHint, delaySeconds: number) => Promise<void>;
  /** Of functions that can reach remote agents; the others ask one of these. */
  readonly tellRemote?: TellRemote | undefined;
}

/**
 * Sees to it that a remote agent which works on a task hears that the task is over (docs/tasks.md, Remote agents). To be
 * done before the head is settled: nobody looks after a task that is.
 *
 * @param endedAt when the end was put, in milliseconds since 1970
 * @returns whether the head may be settled: not before the remote was told, or is given up
 * @throws when the table, the bucket or the queue cannot be reached; it may be repeated
 */
export async function bidFarewell(
  deps: FarewellDeps,
  head: Head,
  view: View,
  endedAt: number,
): Promise<boolean> {
  const isFront = deps.deployment.agents.some((of) => of.runtime === head.to && of.remote !== undefined);
  if (!isFront || !mayBeOpen(view)) return true;
  if (deps.tellRemote !== undefined) return await deps.tellRemote(head, view, endedAt);
  const { taskId, epoch, beat, to } = head;
  // A task that waited may be due far off: should the hint be lost, `sweep` must find it.
  const now = await deps.store.head(taskId);
  if (now?.dueAt !== undefined) {
    const soon = Math.min(now.dueAt, endedAt + deps.timing.leaseMs);
    await deps.store.postpone(now, soon, now.seen ?? { epoch: now.epoch, beat: now.beat, times: 0 });
  }
  await deps.hint({ taskId, epoch, beat, to, over: true }, 0);
  return false;
}
