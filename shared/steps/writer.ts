import { type EventDraft, storedEvents } from "../events/drafts.ts";
import { type Journal, TaskEnded } from "../events/journal.ts";
import type { Entry, StoredStep } from "../tasks/items.ts";
import type { Values } from "../tasks/values.ts";
import type { TaskRef } from "../wire/index.ts";
import type { StatusLine } from "./status.ts";

/** What belongs together and is put in one entry: a step's result and the events that it causes. */
export interface Item {
  readonly step?: StoredStep;
  readonly events?: readonly EventDraft[];
}

/** An item of DynamoDB takes 400 KB; what finishes meanwhile shares an entry up to about this much. */
const MAX_ENTRY_BYTES = 200 * 1024;
/** What an event's body and its description take at the most: larger bodies are kept by reference. */
const EVENT_BYTES = 34 * 1024;

function size(item: Item): number {
  const value =
    item.step === undefined ? 0 : "text" in item.step.value ? item.step.value.text.length * 3 : 200;
  return value + 300 + (item.events?.length ?? 0) * EVENT_BYTES;
}

interface Waiting {
  readonly item: Item;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Puts a task's entries: one append in flight at a time, and what finishes meanwhile shares the next. */
export class Writer {
  readonly #journal: Journal;
  readonly #values: Values;
  readonly #task: TaskRef;
  readonly #status: StatusLine;
  readonly #stored: () => void;
  readonly #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  #failed: { error: unknown } | undefined;
  #ending: NonNullable<Entry["end"]> | undefined;

  /** @param options.stored called after each entry, for its events are to be published now */
  constructor(options: {
    journal: Journal;
    values: Values;
    task: TaskRef;
    status: StatusLine;
    stored: () => void;
  }) {
    this.#journal = options.journal;
    this.#values = options.values;
    this.#task = options.task;
    this.#status = options.status;
    this.#stored = options.stored;
  }

  /**
   * Resolves when the item is durable.
   *
   * @throws TaskEnded once the end is being put: a step that nobody waited for comes too late
   */
  add(item: Item): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#ending !== undefined) return reject(new TaskEnded(this.#ending));
      this.#waiting.push({ item, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Waits for what is under way, then puts the last entry of all. */
  async end(end: NonNullable<Entry["end"]>, events: readonly EventDraft[]): Promise<void> {
    this.#ending = end;
    while (this.#running !== undefined) await this.#running;
    if (this.#failed !== undefined) throw this.#failed.error;
    await this.#put([{ events }], end);
  }

  async #run(): Promise<void> {
    // Whatever is added in the same turn shares the entry.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#batch();
      try {
        if (this.#failed !== undefined) throw this.#failed.error;
        await this.#put(batch.map(({ item }) => item));
        for (const { resolve } of batch) resolve();
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

  async #put(items: readonly Item[], end?: Entry["end"]): Promise<void> {
    const text = this.#status.take(end !== undefined);
    const progress: EventDraft[] =
      text === undefined ? [] : [{ kind: "status", state: "TASK_STATE_WORKING", content: text }];
    const drafts = [...progress, ...items.flatMap((item) => item.events ?? [])];
    const steps = items.flatMap((item) => item.step ?? []);
    if (drafts.length === 0 && steps.length === 0 && end === undefined) return;
    await this.#journal.append(async (at) => ({
      steps,
      events: await storedEvents(this.#values, this.#task, drafts, at),
      end,
    }));
    this.#stored();
  }
}
