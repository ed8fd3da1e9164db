import type { Entry, Head } from "../../shared/tasks/items.ts";
import { isTerminal } from "../../shared/wire/index.ts";
import type { Invariant } from "./invariants.ts";
import { MINUTE } from "./time.ts";

/** What is told of a broken invariant. */
export type Break = (invariant: Invariant, text: string) => void;

/** What admission decides, and nobody changes any more. */
const DECIDED = [
  "messageId",
  "from",
  "to",
  "digest",
  "decidedAt",
  "deadline",
  "expiresAt",
  "skill",
  "input",
] as const;

/** A task that waits goes on with what it is brought as soon as it has a slot, which others may hold for a while. */
const SLUGGISH_MS = 30 * MINUTE;

/** Watches the items of one task as they are written. */
export class JournalWatch {
  readonly #taskId: string;
  readonly #break: Break;
  readonly entries: Entry[] = [];
  head: Head | undefined;
  /** Under which epoch each step was stored. */
  readonly stored = new Map<string, number>();
  /** The controls that have taken effect. */
  readonly #controls = new Set<string>();
  /** The epoch of the last takeover. */
  #taken = 0;
  /** The epoch of the last entry that a worker put. */
  #worker = 0;
  /** When the task was brought what it waited for, if nothing had gone wrong for whoever brought it. */
  #brought: number | undefined;

  constructor(taskId: string, broken: Break) {
    this.#taskId = taskId;
    this.#break = broken;
  }

  get revision(): number {
    return this.entries.at(-1)?.revision ?? 1;
  }

  get end(): Entry["end"] {
    return this.entries.at(-1)?.end;
  }

  /** The body of an event, where it is stored: as text, or as a reference. */
  event(revision: number): NonNullable<Entry["events"]>[number] | undefined {
    for (const { events = [] } of this.entries)
      for (const event of events) if (event.revision === revision) return event;
    return undefined;
  }

  /**
   * @param by the epoch of the worker that has written it, if it was one
   */
  headWritten(before: Head | undefined, after: Head | undefined, by: number | undefined): void {
    this.head = after;
    const of = `the head of ${this.#taskId}`;
    if (after === undefined) {
      this.#break("no-loss", `${of} is gone`);
      return;
    }
    if (before === undefined) return;
    for (const field of DECIDED)
      if (before[field] !== after[field] && JSON.stringify(before[field]) !== JSON.stringify(after[field]))
        this.#break("same-answer", `${of}: ${field} has changed`);
    if (after.epoch < before.epoch || after.epoch > before.epoch + 1)
      this.#break("fence", `${of}: its epoch goes from ${before.epoch} to ${after.epoch}`);
    if (after.epoch === before.epoch && after.owner !== before.owner)
      this.#break("fence", `${of}: two workers hold the claim of epoch ${after.epoch}`);
    if (isTerminal(before.state) && !isTerminal(after.state))
      this.#break("one-end", `${of}: goes from ${before.state} to ${after.state}`);
    const shown =
      before.beat !== after.beat || before.waiting !== after.waiting || before.calm !== after.calm;
    if (by !== undefined && shown && after.epoch === before.epoch && by < after.epoch)
      this.#break("fence", `${of}: the worker of epoch ${by} changes it under epoch ${after.epoch}`);
  }

  /**
   * An entry is put, or changed.
   *
   * @param calm whether nothing goes wrong any more, and nothing has for whoever has put it
   */
  entryWritten(before: unknown, entry: Entry, now: number, calm: boolean): void {
    const of = `the entry ${entry.place} of ${this.#taskId}`;
    if (before !== undefined) {
      this.#break("fence", `${of} is put where another one is`);
      return;
    }
    if (entry.place !== this.entries.length + 1)
      this.#break("revisions", `${of} follows ${this.entries.length}: a gap in the journal`);
    if (this.end !== undefined) this.#break("one-end", `${of} follows the end`);
    this.#epochOf(entry, of);
    this.#controlOf(entry, of);
    this.#revisionsOf(entry, of);
    this.#promptnessOf(entry, of, now, calm);
    for (const { name } of entry.steps ?? []) {
      if (this.stored.has(name)) this.#break("once", `${of}: the step ${name} is stored a second time`);
      this.stored.set(name, entry.epoch);
    }
    this.entries.push(entry);
  }

  #epochOf({ epoch, claim, control, heard, end }: Entry, of: string): void {
    if (epoch < this.#taken)
      this.#break("fence", `${of} has epoch ${epoch}, and epoch ${this.#taken} has taken over`);
    // Whoever finds that a task's time is over while nobody works on it ends it without a claim.
    const outside = control !== undefined || heard !== undefined || end?.code === "timeout";
    if (outside) return;
    if (epoch < this.#worker)
      this.#break("fence", `${of} has epoch ${epoch}, after one of epoch ${this.#worker}`);
    if (epoch > 1 && claim !== true && epoch > this.#taken)
      this.#break("fence", `${of} has epoch ${epoch}, which has not kept out the claim before it`);
    if (claim === true) this.#taken = Math.max(this.#taken, epoch);
    this.#worker = Math.max(this.#worker, epoch);
  }

  /** An end is late, too: a task that sleeps on until its time is over would else seem to have come to its end. */
  #promptnessOf({ control, heard, answer }: Entry, of: string, now: number, calm: boolean): void {
    if (control === undefined && heard === undefined) {
      const minutes = Math.round((now - (this.#brought ?? now)) / MINUTE);
      if (now > (this.#brought ?? now) + SLUGGISH_MS)
        this.#break(
          "no-loss",
          `${of} is a worker's first ${minutes} min after it was brought what it waits for`,
        );
      this.#brought = undefined;
    } else if (calm && this.head?.waiting === true && (answer ?? heard?.outcome) !== undefined)
      this.#brought ??= now;
  }

  #controlOf({ control }: Entry, of: string): void {
    if (control === undefined) return;
    const { kind, messageId, revision } = control;
    const id = `${kind} ${messageId} ${revision}`;
    if (this.#controls.has(id)) this.#break("same-answer", `${of}: the control ${id} takes effect twice`);
    this.#controls.add(id);
  }

  #revisionsOf({ revision, events = [] }: Entry, of: string): void {
    let last = this.revision;
    for (const event of events)
      if (event.revision !== ++last)
        this.#break("revisions", `${of}: expected revision ${last}, got ${event.revision}`);
    if (revision !== last)
      this.#break("revisions", `${of}: says revision ${revision}, and its events ${last}`);
  }
}
