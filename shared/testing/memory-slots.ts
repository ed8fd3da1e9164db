import type { Head } from "../tasks/items.ts";
import { afterSender, hasRoom, placeInLine, type Slots, type Waiter } from "../tasks/slots.ts";
import type { Store } from "../tasks/store.ts";
import { isTerminal } from "../wire/index.ts";

/** The slots of the agents, in memory. */
export interface MemorySlots {
  readonly store: Pick<Store, "claimSlot" | "queue" | "slots" | "allSlots" | "nextWaiter" | "dropWaiter">;
  /** Takes from a task what its head says it has; tells whether others wait for what has become free. */
  giveUp(there: Head): boolean;
  /** The tasks in the line of an agent, by their places. */
  line(runtime: string): Waiter[];
}

interface Counts {
  readonly live: Set<string>;
  queued: number;
  lastFrom?: string;
  /** In the order of their places. */
  readonly line: Waiter[];
}

/** @param heads the store's own */
export function memorySlots(heads: {
  headOf: (taskId: string) => Head | undefined;
  putHead: (head: Head) => void;
}): MemorySlots {
  const { headOf, putHead } = heads;
  const agents = new Map<string, Counts>();
  const of = (runtime: string): Counts => {
    const counts = agents.get(runtime) ?? { live: new Set(), queued: 0, line: [] };
    agents.set(runtime, counts);
    return counts;
  };
  const inLine = ({ line }: Counts, place: string) => line[firstFrom(line, place)]?.place === place;
  const leaveLine = (counts: Counts, place: string) => {
    if (inLine(counts, place)) counts.line.splice(firstFrom(counts.line, place), 1);
    counts.queued--;
  };
  /** The head that is there, if it is as it was read. */
  const unchanged = (head: Head): Head | undefined => {
    const there = headOf(head.taskId);
    if (there === undefined || isTerminal(there.state) || there.slot === true) return undefined;
    return there.epoch === head.epoch && there.beat === head.beat ? there : undefined;
  };
  const slotsOf = (runtime: string): Slots => {
    const { live, queued, lastFrom } = of(runtime);
    return { live: new Set(live), queued, ...(lastFrom === undefined ? {} : { lastFrom }) };
  };

  return {
    line: (runtime) => [...of(runtime).line],

    giveUp({ taskId, to, slot, queued }) {
      const counts = of(to);
      if (queued !== undefined) leaveLine(counts, queued);
      if (slot === true) counts.live.delete(taskId);
      return queued !== undefined || (slot === true && counts.queued > 0);
    },

    store: {
      async claimSlot(head, owner, dueAt, max) {
        const { taskId, to, from, epoch, queued } = head;
        const known = headOf(taskId);
        if (known !== undefined && known.owner === owner && known.epoch === epoch + 1) return known;
        const there = unchanged(head);
        if (there === undefined || there.queued !== queued) return "stale";
        const counts = of(to);
        if (!hasRoom(counts, max) || (queued === undefined && counts.queued > 0)) return "full";
        const limited = Number.isFinite(max);
        if (limited) counts.live.add(taskId);
        if (queued !== undefined) {
          leaveLine(counts, queued);
          counts.lastFrom = from;
        }
        const claimed = ({ queued: _queued, waiting: _waiting, ...rest }: Head): Head => ({
          ...rest,
          epoch: epoch + 1,
          owner,
          state: "TASK_STATE_WORKING",
          ...((epoch > 0 || queued !== undefined) && { dueAt }),
          ...(limited && { slot: true }),
        });
        putHead(claimed(there));
        return claimed(head);
      },

      async queue(head, max) {
        const there = unchanged(head);
        const place = placeInLine(head);
        if (there === undefined) return "stale";
        if (there.queued !== undefined) return there.queued === place ? "queued" : "stale";
        const counts = of(head.to);
        if (hasRoom(counts, max) && counts.queued <= 0) return "room";
        counts.queued++;
        const { to, taskId } = head;
        counts.line.splice(firstFrom(counts.line, place), 0, { to, taskId, place });
        putHead({ ...there, queued: place });
        return "queued";
      },

      slots: async (runtime) => slotsOf(runtime),
      allSlots: async (runtimes) => new Map(runtimes.map((runtime) => [runtime, slotsOf(runtime)])),

      async nextWaiter(runtime, lastFrom) {
        const { line } = of(runtime);
        return line[firstFrom(line, afterSender(lastFrom))] ?? line[0];
      },

      async dropWaiter({ to, taskId, place }) {
        const counts = of(to);
        if (inLine(counts, place) && headOf(taskId)?.queued !== place) leaveLine(counts, place);
      },
    },
  };
}

/** The position of the first in the line whose place is not before `place`. */
function firstFrom(line: readonly Waiter[], place: string): number {
  let [low, high] = [0, line.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((line[middle]?.place ?? "") < place) low = middle + 1;
    else high = middle;
  }
  return low;
}
