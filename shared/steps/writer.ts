import { type EventDraft, type Progress, storedEvents } from "../events/drafts.ts";
import { type At, type Draft, type Journal, TaskEnded } from "../events/journal.ts";
import { stateOf, type View } from "../tasks/fold.ts";
import type { Entry, OpenedStep, StoredStep } from "../tasks/items.ts";
import type { Values } from "../tasks/values.ts";
import type { TaskRef, TaskState } from "../wire/index.ts";
import type { StatusLine } from "./status.ts";

/** What belongs together and is put in one entry: a step's result, or that it waits, and the events that go with it. */
export interface Item {
  readonly step?: StoredStep;
  readonly open?: OpenedStep;
  /** Whether the step that is opened asks its requester, by the first of the events. */
  readonly asks?: boolean;
  readonly events?: readonly EventDraft[];
  /** Looked at when the entry's place is known: whether something found before it makes the item needless. */
  readonly unless?: () => boolean;
}

/** An item of DynamoDB takes 400 KB; what finishes meanwhile shares an entry up to about this much. */
const MAX_ENTRY_BYTES = 200 * 1024;
/** What an event's body and its description take at the most: larger bodies are kept by reference. */
const EVENT_BYTES = 34 * 1024;
/** What a step's name, an error's message and numbers take at the most, roughly. */
const STEP_BYTES = 300;
const ERROR_BYTES = 6_500;

function size({ step, open, events = [] }: Item): number {
  const value = step === undefined ? 0 : "text" in step.value ? step.value.text.length * 3 : 200;
  const error = (step ?? open)?.error === undefined ? 0 : ERROR_BYTES;
  return value + error + STEP_BYTES + events.length * EVENT_BYTES;
}

interface Waiting {
  readonly item: Item;
  readonly resolve: (at: number) => void;
  readonly reject: (error: unknown) => void;
}

/** Puts a task's entries: one append in flight at a time, and what finishes meanwhile shares the next. */
export class Writer {
  readonly #journal: Journal;
  readonly #view: View;
  readonly #values: Values;
  readonly #task: TaskRef;
  readonly #status: StatusLine;
  readonly #now: () => number;
  readonly #stored: () => void;
  readonly #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  /** The journal's use: appends and reads must not overlap. */
  #turn: Promise<unknown> = Promise.resolve();
  #failed: { error: unknown } | undefined;
  #ending: NonNullable<Entry["end"]> | undefined;

  /**
   * @param options.view what the journal says so far; the journal's owner folds what is put into it
   * @param options.stored called after each entry, for its events are to be published now
   */
  constructor(options: {
    journal: Journal;
    view: View;
    values: Values;
    task: TaskRef;
    status: StatusLine;
    now: () => number;
    stored: () => void;
  }) {
    this.#journal = options.journal;
    this.#view = options.view;
    this.#values = options.values;
    this.#task = options.task;
    this.#status = options.status;
    this.#now = options.now;
    this.#stored = options.stored;
  }

  /**
   * Resolves when the item is durable, or needless, with its entry's time.
   *
   * @throws TaskEnded once the end is being put: a step that nobody waited for comes too late
   */
  add(item: Item): Promise<number> {
    return new Promise((resolve, reject) => {
      if (this.#ending !== undefined) return reject(new TaskEnded(this.#ending));
      this.#waiting.push({ item, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Reads what others have put since. @throws TaskEnded, ClaimLost */
  refresh(): Promise<void> {
    return this.#alone(async () => {
      if (this.#failed !== undefined) throw this.#failed.error;
      await this.#journal.refresh();
    });
  }

  /** Waits for what is under way, then puts a progress text that is still waiting for its time. */
  async flush(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
    if (this.#failed !== undefined) throw this.#failed.error;
    await this.#put([], { anyway: true });
  }

  /** Waits for what is under way, then puts the last entry of all. */
  async end(end: NonNullable<Entry["end"]>, events: readonly EventDraft[]): Promise<void> {
    this.#ending = end;
    while (this.#running !== undefined) await this.#running;
    if (this.#failed !== undefined) throw this.#failed.error;
    await this.#put([{ events }], { end, anyway: true });
  }

  async #run(): Promise<void> {
    // Whatever is added in the same turn shares the entry.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#batch();
      try {
        if (this.#failed !== undefined) throw this.#failed.error;
        // A handler that begins to wait may have said its last for long, and this worker may die before it can flush.
        const anyway = batch.some(({ item }) => item.open !== undefined);
        const at = await this.#put(
          batch.map(({ item }) => item),
          { anyway },
        );
        for (const { resolve } of batch) resolve(at);
      } catch (error) {
        // After one failure nothing may follow: a later entry would hide the gap.
        this.#failed ??= { error };
        for (const { reject } of batch) reject(error);
      }
    }
    // In the same turn as the look at what waits: whoever adds something now starts anew.
    this.#running = undefined;
  }

  #batch(): Waiting[] {
    const batch: Waiting[] = [];
    for (let bytes = 0; this.#waiting[0] !== undefined; ) {
      bytes += size(this.#waiting[0].item);
      if (batch.length > 0 && bytes > MAX_ENTRY_BYTES) break;
      batch.push(this.#waiting[0]);
      this.#waiting.shift();
    }
    return batch;
  }

  #alone<T>(use: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(use);
    this.#turn = mine.catch(() => {});
    return mine;
  }

  /** @param options.anyway whether a progress text goes along though its time has not come */
  async #put(items: readonly Item[], options: { end?: Entry["end"]; anyway: boolean }): Promise<number> {
    const progress = this.#status.take(options.anyway);
    const entry = await this.#alone(() =>
      this.#journal.append((at): Promise<Draft | undefined> => this.#draft(items, progress, options.end, at)),
    );
    if (entry === undefined) return this.#now();
    this.#stored();
    return entry.at;
  }

  /** What the entry is to hold; nothing when all of it is needless. */
  async #draft(
    items: readonly Item[],
    progress: Progress | undefined,
    end: Entry["end"],
    at: At,
  ): Promise<Draft | undefined> {
    const drafts: EventDraft[] = [];
    const steps: StoredStep[] = [];
    const opens: OpenedStep[] = [];
    // While a question is open the task stays in its state, or nobody could answer it any more.
    const state = stateOf(this.#view);
    if (progress !== undefined) drafts.push(statusOf(progress, state));
    for (const { step, open, asks, events, unless } of items) {
      if (unless?.() === true) continue;
      if (step !== undefined) steps.push(step);
      if (open !== undefined)
        opens.push(asks === true ? { ...open, asked: at.revision + drafts.length + 1 } : open);
      for (const event of events ?? []) drafts.push(event.kind === "artifact" ? { ...event, state } : event);
    }
    if (drafts.length === 0 && steps.length === 0 && opens.length === 0 && end === undefined)
      return undefined;
    return { steps, opens, events: await storedEvents(this.#values, this.#task, drafts, at), end };
  }
}

function statusOf({ text, data }: Progress, state: TaskState): EventDraft {
  return { kind: "status", state, content: text, ...(data !== undefined && { data: JSON.parse(data) }) };
}
