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
 */
export async function wake({ store, tell, hint, now, timing }: WakeDeps, taskId: string): Promise<void> {
  await tell(taskId);
  // Read after the entry is put: a worker that leaves meanwhile looks at the journal once more after it has left.
  const head = await store.head(taskId);
  if (head?.waiting !== true || isTerminal(head.state)) return;
  // Should the hint be lost, `sweep` finds the task; what it waited for may be far off.
  const { epoch, beat } = head;
  const soon = Math.min(head.dueAt ?? Number.POSITIVE_INFINITY, now() + timing.leaseMs);
  await store.postpone(head, soon, head.seen ?? { epoch, beat, times: 0 });
  await hint(hintOf(head));
}
