import type { Head } from "./items.ts";

/**
 * The slots of an agent with a limit (docs/tasks.md, slots): which of its tasks hold one, and how many wait. A live
 * claim holds a slot; both change in one transaction, so no slot is lost, whoever dies.
 */
export interface Slots {
  /** The tasks that hold a slot. */
  readonly live: ReadonlySet<string>;
  /** How many tasks wait for one. */
  readonly queued: number;
  /** The sender of the task that was last let in from the line. */
  readonly lastFrom?: string | undefined;
}

/** A task in the line for a slot of an agent. */
export interface Waiter {
  /** The agent's runtime id. */
  readonly to: string;
  readonly taskId: string;
  /** Its place: the sort key of its item. */
  readonly place: string;
}

/** What of a head tells whether its task holds a slot or waits for one. */
export type Held = Pick<Head, "taskId" | "to" | "slot" | "queued">;

/** The partition of an agent's slots and its line. */
export function slotsPartition(runtime: string): string {
  return `slots#${runtime}`;
}

/** The sort key of the item that counts an agent's slots. */
export const SLOTS_KEY = "slots";
/** What the sort keys of the line begin with. */
export const LINE = "wait#";
/** Sorts after every place of the line: senders' ids are ASCII (docs/wire.md, ids). */
export const LINE_END = `${LINE}~`;

/** Milliseconds since 1970 have no more until the year 33658. */
const TIME_DIGITS = 15;

/** A task's place in the line: by sender, and of one sender by arrival. */
export function placeInLine({
  from,
  decidedAt,
  taskId,
}: Pick<Head, "from" | "decidedAt" | "taskId">): string {
  return `${LINE}${from}#${String(Math.round(decidedAt)).padStart(TIME_DIGITS, "0")}#${taskId}`;
}

/** Where the line goes on after all places of a sender: the next sender's turn. */
export function afterSender(from: string | undefined): string {
  return from === undefined ? LINE : `${LINE}${from}#~`;
}

/** Whether another task may have a slot. */
export function hasRoom({ live }: Pick<Slots, "live">, max: number): boolean {
  return live.size < max;
}
