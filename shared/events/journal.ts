import { randomUUID } from "node:crypto";
import type { Clock } from "../tasks/clock.ts";
import { insist, isRefused } from "../tasks/insist.ts";
import type { Answer, Entry, Head, Heard, OpenedStep, StoredEvent, StoredStep } from "../tasks/items.ts";
import type { Append, Store } from "../tasks/store.ts";

/** The task has ended; whatever comes later finds it so. */
export class TaskEnded extends Error {
  override readonly name = "TaskEnded";
  readonly end: NonNullable<Entry["end"]>;
  constructor(end: NonNullable<Entry["end"]>) {
    super(`the task has ended as ${end.state}`);
    this.end = end;
  }
}

/** Another worker has claimed the task. */
export class ClaimLost extends Error {
  override readonly name = "ClaimLost";
  constructor(epoch: number, by: number) {
    super(`the claim of epoch ${epoch} is lost to epoch ${by}`);
  }
}

/** What an entry is to hold, once its place is known. */
export interface Draft {
  readonly claim?: true;
  readonly steps?: readonly StoredStep[];
  readonly opens?: readonly OpenedStep[];
  readonly answer?: Answer;
  readonly heard?: Heard;
  readonly events?: readonly StoredEvent[];
  readonly control?: Entry["control"];
  readonly end?: Entry["end"];
}

/** Where an entry would stand: its events get the revisions after `revision`, and `at` as their time. */
export interface At {
  readonly revision: number;
  readonly at: number;
}

/** Makes a draft for a place. */
export type MakeDraft = (at: At) => Draft | Promise<Draft>;

/**
 * One process's view of a task's journal. It appends at the place after the last that it knows; when that is taken
 * it reads on, takes over what it finds, and tries the next, or stops if the task has ended or been claimed by
 * another. Appends must not overlap.
 */
export class Journal {
  readonly #store: Store;
  readonly #head: Head;
  readonly #now: () => number;
  /** Until when to repeat a write that the table does not answer, in milliseconds since 1970. */
  readonly #until: () => number;
  readonly #timer: Clock["timer"] | undefined;
  /** Called with each entry that somebody else has put, in order. */
  readonly #found: (entry: Entry) => void;
  /** Called with each entry, one's own included, in order. */
  readonly #took: (entry: Entry) => void;
  #place = 0;
  /** `accepted` is the first event, and no entry holds it. */
  #revision = 1;
  #unpublished: StoredEvent[] = [];
  #end: Entry["end"];
  #lost: ClaimLost | undefined;

  constructor(options: {
    store: Store;
    head: Head;
    now: () => number;
    until?: () => number;
    timer?: Clock["timer"];
    found?: (entry: Entry) => void;
    took?: (entry: Entry) => void;
  }) {
    this.#store = options.store;
    this.#until = options.until ?? (() => 0);
    this.#timer = options.timer;
    this.#head = options.head;
    this.#now = options.now;
    this.#found = options.found ?? (() => {});
    this.#took = options.took ?? (() => {});
  }

  /** The last place that is known to be taken. */
  get place(): number {
    return this.#place;
  }

  /** The revision of the last event. */
  get revision(): number {
    return this.#revision;
  }

  /** Events of the journal that are not known to be published, the lowest first. */
  get unpublished(): readonly StoredEvent[] {
    return this.#unpublished;
  }

  /** Notes that everything up to a revision is published. */
  markPublished(revision: number): void {
    this.#unpublished = this.#unpublished.filter((event) => event.revision > revision);
  }

  /**
   * Reads what others have put since.
   *
   * @throws TaskEnded, ClaimLost
   */
  async refresh(): Promise<void> {
    for (const entry of await this.#store.entries(this.#head.taskId, this.#place + 1)) this.#adopt(entry);
  }

  /**
   * Appends an entry.
   *
   * @param make called for each place that is tried, after everything before it has been found; where it makes no
   *   draft, nothing is put
   * @throws TaskEnded, ClaimLost
   */
  append(make: MakeDraft): Promise<Entry>;
  append(make: (at: At) => Promise<Draft | undefined>): Promise<Entry | undefined>;
  async append(make: (at: At) => Draft | Promise<Draft | undefined>): Promise<Entry | undefined> {
    const nonce = randomUUID();
    for (;;) {
      if (this.#end !== undefined) throw new TaskEnded(this.#end);
      if (this.#lost !== undefined) throw this.#lost;
      const at = this.#now();
      const made = await make({ revision: this.#revision, at });
      if (made === undefined) return undefined;
      const { steps, opens, events, ...draft } = made;
      const entry: Entry = {
        ...draft,
        place: this.#place + 1,
        nonce,
        epoch: this.#head.epoch,
        at,
        revision: events?.at(-1)?.revision ?? this.#revision,
        ...(steps === undefined || steps.length === 0 ? {} : { steps: [...steps] }),
        ...(opens === undefined || opens.length === 0 ? {} : { opens: [...opens] }),
        ...(events === undefined || events.length === 0 ? {} : { events: [...events] }),
      };
      const outcome = await this.#put(entry);
      if (outcome.stored) {
        this.#take(entry);
        return entry;
      }
      this.#adopt(outcome.found);
    }
  }

  /** Repeats the very same entry: its nonce tells a write that landed unanswered from another's. */
  #put(entry: Entry): Promise<Append> {
    const { taskId, expiresAt } = this.#head;
    const patience = {
      now: this.#now,
      until: this.#until,
      ...(this.#timer && { timer: this.#timer }),
    };
    return insist(() => this.#store.append(taskId, entry, expiresAt), patience, isRefused);
  }

  #take(entry: Entry): void {
    this.#place = entry.place;
    this.#revision = entry.revision;
    this.#unpublished.push(...(entry.events ?? []));
    this.#end ??= entry.end;
    this.#took(entry);
  }

  #adopt(entry: Entry): void {
    this.#take(entry);
    this.#found(entry);
    if (entry.end !== undefined) throw new TaskEnded(entry.end);
    if (entry.claim === true && entry.epoch > this.#head.epoch) {
      this.#lost = new ClaimLost(this.#head.epoch, entry.epoch);
      throw this.#lost;
    }
  }
}
