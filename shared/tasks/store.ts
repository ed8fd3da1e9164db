import type { Entry, Head } from "./items.ts";
import type { WorkHint } from "./messages.ts";
import type { Held, Slots, Waiter } from "./slots.ts";

/** What a worker shows while it lives. */
export interface Beat {
  readonly beat: number;
  /** The step that it is about to run, where that is worth a write. */
  readonly running?: string;
}

/** How a worker leaves a task in good order. */
export interface Suspension {
  readonly epoch: number;
  /** Higher than any that was shown: hints from before are stale. */
  readonly beat: number;
  readonly published: number;
  /** The last place of the journal that is known: the task is not left when there is news after it. */
  readonly place: number;
  /** The state that the task waits in. */
  readonly state: Head["state"];
  /** When it is to be woken at the latest, in milliseconds since 1970. */
  readonly dueAt: number;
}

/** A task at its executor that one of our agents has asked for. */
export interface ChildKey {
  /** Our runtime. */
  readonly delegator: string;
  readonly executor: string;
  /** The task's id at its executor. */
  readonly childTaskId: string;
}

/** Which task has delegated, and in which of its steps. */
export interface Parent {
  readonly taskId: string;
  readonly step: string;
}

/** The outcome of an attempt to put an entry at its place. */
export type Append = { readonly stored: true } | { readonly stored: false; readonly found: Entry };

/** How it came out that a task was left. */
export interface Left {
  /** False when the claim is no longer in force, there is news, or the task is over. */
  readonly left: boolean;
  /** Whether others wait for the slot that has become free: the caller hands it on (shared/tasks/hand-on.ts). */
  readonly waited: boolean;
}

/**
 * What the functions do with the table. Each write has a condition; whoever fails it gets what is there instead, in
 * the same round trip.
 */
export interface Store {
  /** Puts a head if there is none for this task; otherwise gives the one that is there. */
  admit(head: Head): Promise<{ readonly admitted: true } | { readonly admitted: false; readonly head: Head }>;
  /** Puts a payload that is too large for the head and small enough for an item. */
  putInput(taskId: string, digest: string, payload: string, expiresAt: number): Promise<void>;
  input(taskId: string, digest: string): Promise<string | undefined>;
  head(taskId: string): Promise<Head | undefined>;
  /**
   * Claims a task that needs no slot, or holds one: raises its epoch if its head still shows what the hint saw, it is
   * not over, and not in the line for a slot.
   *
   * @param owner a nonce by which one's own retried write is known again
   * @param dueAt when somebody must look whether the worker lives, in milliseconds since 1970; of the first claim the
   *   admission has said so already
   * @returns the head under the new claim, or nothing when the hint is stale
   */
  claim(hint: WorkHint, owner: string, dueAt: number): Promise<Head | undefined>;
  /** Shows that the claim's worker lives. False when the claim is no longer in force or the task is over. */
  beat(taskId: string, epoch: number, beat: Beat): Promise<boolean>;
  /**
   * Leaves a task that waits: nobody works on it, it holds no slot, and its last worker has not died.
   *
   * @param held what is believed of its slot; what is there counts
   */
  suspend(held: Held, of: Suspension): Promise<Left>;
  /**
   * Notes that there is something at a place of the journal that a worker should know. Whoever notes it and whoever
   * leaves write the same item: so either it is known before the task is left, or the head that this gives waits.
   *
   * @returns the head as it is then; nothing when there is none
   */
  news(taskId: string, place: number): Promise<Head | undefined>;
  /** Puts an entry at its place if that is free, or taken by the same nonce. */
  append(taskId: string, entry: Entry, expiresAt: number): Promise<Append>;
  /** The entries from a place on, in order. */
  entries(taskId: string, from: number): Promise<Entry[]>;
  /** The last entry. */
  last(taskId: string): Promise<Entry | undefined>;
  /**
   * Records what is published, and with a terminal state that nobody need look at the task again: it holds no slot and
   * no place in the line any more. Does nothing when more is known to be published already.
   *
   * @param held what is believed of its slot; what is there counts
   * @returns whether others wait for the slot that has become free: the caller hands it on (shared/tasks/hand-on.ts)
   */
  settle(held: Held, published: number, end?: Head["state"]): Promise<boolean>;
  /**
   * Notes whose child a task is: of its events only the first and the last tell that themselves. The first note of a
   * child stays.
   */
  bindChild(child: ChildKey, parent: Parent, expiresAt: number): Promise<void>;
  parentOf(child: ChildKey): Promise<Parent | undefined>;
  /** The tasks of one partition of the index that are due until then, the longest due first. */
  due(shard: string, until: number): AsyncIterable<string>;
  /**
   * Says when the task is to be looked at again, if it is still due when it was.
   *
   * @returns false when somebody else was faster
   */
  postpone(head: Head, dueAt: number, seen: NonNullable<Head["seen"]>): Promise<boolean>;
  /**
   * Claims a task as {@link Store.claim} does and gives it one of its agent's slots: if there is room, and nobody waits
   * unless the task does so itself; it then leaves the line.
   *
   * @param head as it was read
   * @param max how many slots there are; without a limit (infinite) the task leaves the line and gets no slot
   * @returns the head under the new claim; `full` when there is no slot for it; `stale` when the head is another by now
   */
  claimSlot(head: Head, owner: string, dueAt: number, max: number): Promise<Head | "full" | "stale">;
  /**
   * Puts a task into the line for a slot, if there is none for it.
   *
   * @param head as it was read
   * @returns `room` when it need not wait; `stale` when the head is another by now
   */
  queue(head: Head, max: number): Promise<"queued" | "room" | "stale">;
  slots(runtime: string): Promise<Slots>;
  /** The slots of many agents, in a request for each hundred. */
  allSlots(runtimes: readonly string[]): Promise<ReadonlyMap<string, Slots>>;
  /** Who is next: the first in arrival of the sender whose turn it is after the one that was served last. */
  nextWaiter(runtime: string, lastFrom: string | undefined): Promise<Waiter | undefined>;
  /** Takes out of the line whose head does not say that it is there. */
  dropWaiter(waiter: Waiter): Promise<void>;
}
