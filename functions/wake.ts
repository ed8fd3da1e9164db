import type { Timing } from "../shared/config/timing.ts";
import type { Entry } from "../shared/tasks/items.ts";
import { hintOf, type WorkHint } from "../shared/tasks/messages.ts";
import type { Store } from "../shared/tasks/store.ts";
import { isTerminal } from "../shared/wire/index.ts";

/** What it takes to let a worker know. */
export interface WakeDeps {
  readonly store: Store;
  readonly timing: Timing;
  readonly now: () => number;
  /** Tells a running worker that its journal has news; a worker that is not told finds out by itself. */
  readonly tell: (taskId: string) => Promise<void>;
  /** Puts a hint on the queue `work`. */
  readonly hint: (hint: WorkHint) => Promise<void>;
}

/** Whether a worker has put something after a place, and so knows what stands there. */
export function isSeen(entries: readonly Entry[], place: number): boolean {
  return entries.some(
    (entry) => entry.place > place && entry.control === undefined && entry.heard === undefined,
  );
}

/**
 * Lets a worker know what somebody else has put into a task's journal: the one that is there, or the next one when the
 * task waits.
 *
 * @param place of the entry
 */
export async function wake(
  { store, tell, hint, now, timing }: WakeDeps,
  taskId: string,
  place: number,
): Promise<void> {
  await tell(taskId);
  // A worker that does not know of it cannot leave any more, and one that has left shows that the task waits.
  const head = await store.news(taskId, place);
  if (head?.waiting !== true || isTerminal(head.state)) return;
  // Should the hint be lost, `sweep` finds the task; what it waited for may be far off.
  const { epoch, beat } = head;
  const soon = Math.min(head.dueAt ?? Number.POSITIVE_INFINITY, now() + timing.leaseMs);
  await store.postpone(head, soon, head.seen ?? { epoch, beat, times: 0 });
  await hint(hintOf(head));
}
