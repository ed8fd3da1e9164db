import { childKey, dueShard, type Entry, entry, type Head, head } from "../tasks/items.ts";
import type { Left, Parent, Store } from "../tasks/store.ts";
import { isTerminal } from "../wire/index.ts";
import { type MemorySlots, memorySlots } from "./memory-slots.ts";

/** DynamoDB takes no larger item, keys and names included (Amazon DynamoDB, Quotas: items). */
export const MAX_ITEM_BYTES = 400 * 1024;

/** What the store keeps of a task: items as JSON text, for nobody may change what is stored by holding it. */
interface Items {
  head?: string;
  readonly inputs: Map<string, string>;
  readonly entries: Map<number, string>;
  /** The taken places in order. */
  readonly places: number[];
}

/** A store in memory, for tests: it holds the same conditions as the one over DynamoDB (docs/table.md). */
export interface MemoryStore extends Store, Pick<MemorySlots, "line"> {
  /** When the next task is due, in milliseconds since 1970. */
  nextDue(): number | undefined;
}

export function memoryStore(): MemoryStore {
  const tasks = new Map<string, Items>();
  /** The sparse index: only heads with a `dueAt` are in it. */
  const index = new Map<string, { readonly shard: string; readonly dueAt: number }>();

  const children = new Map<string, Parent>();

  const of = (taskId: string): Items => {
    const items = tasks.get(taskId) ?? { inputs: new Map(), entries: new Map(), places: [] };
    tasks.set(taskId, items);
    return items;
  };
  const headOf = (taskId: string): Head | undefined => {
    const text = tasks.get(taskId)?.head;
    return text === undefined ? undefined : head().parse(JSON.parse(text));
  };
  const putHead = (of_: Head): void => {
    of(of_.taskId).head = itemText(of_);
    if (of_.dueAt === undefined) index.delete(of_.taskId);
    else index.set(of_.taskId, { shard: dueShard(of_.taskId), dueAt: of_.dueAt });
  };
  const entryAt = (items: Items | undefined, place: number | undefined): Entry | undefined => {
    const text = place === undefined ? undefined : items?.entries.get(place);
    return text === undefined ? undefined : entry().parse(JSON.parse(text));
  };

  const slots = memorySlots({ headOf, putHead });
  /** A head's update by which its task gives up its slot, or its place in the line. */
  const leave = (taskId: string, allowed: (there: Head) => boolean, change: (there: Head) => Head): Left => {
    const there = headOf(taskId);
    if (there === undefined || !allowed(there)) return { left: false, waited: false };
    const waited = slots.giveUp(there);
    const { slot: _slot, queued: _queued, ...rest } = there;
    putHead(change(rest));
    return { left: true, waited };
  };

  return {
    ...slots.store,
    line: slots.line,

    async admit(of) {
      const there = headOf(of.taskId);
      if (there !== undefined) return { admitted: false, head: there };
      putHead(of);
      return { admitted: true };
    },

    async putInput(taskId, digest, payload, expiresAt) {
      itemText({ payload, expiresAt });
      of(taskId).inputs.set(digest, payload);
    },

    input: async (taskId, digest) => tasks.get(taskId)?.inputs.get(digest),

    head: async (taskId) => headOf(taskId),

    async claim(hint, owner, dueAt) {
      const there = headOf(hint.taskId);
      if (there === undefined) return undefined;
      const free = there.queued === undefined && !isTerminal(there.state);
      if (!free || there.epoch !== hint.epoch || there.beat !== hint.beat)
        return there.owner === owner && there.epoch === hint.epoch + 1 ? there : undefined;
      const { waiting: _, ...rest } = there;
      const claim = { epoch: hint.epoch + 1, owner, state: "TASK_STATE_WORKING" as const };
      putHead(hint.epoch > 0 ? { ...rest, ...claim, dueAt } : { ...there, ...claim });
      return headOf(hint.taskId);
    },

    async beat(taskId, epoch, { beat, running }) {
      const there = headOf(taskId);
      if (there === undefined || there.epoch !== epoch || isTerminal(there.state)) return false;
      putHead({ ...there, beat, ...(running !== undefined && { running }) });
      return true;
    },

    async news(taskId, place) {
      const there = headOf(taskId);
      if (there !== undefined && (there.news ?? 0) < place) putHead({ ...there, news: place });
      return headOf(taskId);
    },

    suspend: async ({ taskId }, { epoch, beat, published, place, state, dueAt }) =>
      leave(
        taskId,
        (there) => there.epoch === epoch && !isTerminal(there.state) && (there.news ?? 0) <= place,
        ({ running: _running, seen: _seen, ...rest }) => ({
          ...rest,
          ...{ beat, published, state, dueAt, waiting: true, calm: epoch },
        }),
      ),

    async append(taskId, put, expiresAt) {
      const text = itemText({ ...put, expiresAt });
      const items = of(taskId);
      const there = entryAt(items, put.place);
      if (there !== undefined)
        return there.nonce === put.nonce ? { stored: true } : { stored: false, found: there };
      items.entries.set(put.place, text);
      items.places.splice(firstFrom(items.places, put.place), 0, put.place);
      return { stored: true };
    },

    async entries(taskId, from) {
      const items = tasks.get(taskId);
      const places = items?.places.slice(firstFrom(items.places, from)) ?? [];
      return places.flatMap((place) => entryAt(items, place) ?? []);
    },

    async last(taskId) {
      const items = tasks.get(taskId);
      return entryAt(items, items?.places.at(-1));
    },

    async settle({ taskId }, published, end) {
      const allowed = (there: Head) => there.published <= published;
      if (end !== undefined)
        return leave(taskId, allowed, ({ dueAt: _due, waiting: _waiting, ...rest }) => ({
          ...rest,
          published,
          state: end,
        })).waited;
      const there = headOf(taskId);
      if (there !== undefined && allowed(there)) putHead({ ...there, published });
      return false;
    },

    async bindChild(child, { taskId, step }) {
      const key = childKey(child);
      if (!children.has(key)) children.set(key, { taskId, step });
    },

    parentOf: async (child) => children.get(childKey(child)),

    async *due(shard, until) {
      const due = [...index].filter(([, of]) => of.shard === shard && of.dueAt <= until);
      for (const [taskId] of due.sort(([, a], [, b]) => a.dueAt - b.dueAt)) yield taskId;
    },

    async postpone(of, dueAt, seen) {
      const there = headOf(of.taskId);
      if (there === undefined || there.dueAt !== of.dueAt || there.dueAt === undefined) return false;
      putHead({ ...there, dueAt, seen });
      return true;
    },

    nextDue() {
      let next: number | undefined;
      for (const { dueAt } of index.values()) if (next === undefined || dueAt < next) next = dueAt;
      return next;
    },
  };
}

/** The position of the first place that is not before `from`; places are in order. */
function firstFrom(places: readonly number[], from: number): number {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle] ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** @throws RangeError for what DynamoDB or its client would refuse: a number that it cannot hold, a large item */
function itemText(item: object): string {
  const text = JSON.stringify(item, (key, value: unknown) => {
    if (typeof value === "number" && !(Math.abs(value) <= Number.MAX_SAFE_INTEGER))
      throw new RangeError(`an item's ${key}: expected a number that DynamoDB takes, got ${value}`);
    return value;
  });
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_ITEM_BYTES)
    throw new RangeError(`an item: expected at most ${MAX_ITEM_BYTES} bytes, got ${bytes}`);
  return text;
}
