import type { Progress } from "../events/drafts.ts";
import type { Clock } from "../tasks/clock.ts";
import { jsonDepth } from "../wire/index.ts";
import { StepOptionError } from "./errors.ts";
import { toJson } from "./json.ts";

/** Progress texts are for a person's glance; more is cut. */
const MAX_STATUS_CHARACTERS = 2_000;
/** The largest data that goes with a progress text, in bytes as JSON: with the text it stays within its item. */
export const MAX_STATUS_DATA_BYTES = 16 * 1024;
/** How deep that data may be nested: peers do not read JSON of any depth. */
export const MAX_STATUS_DATA_DEPTH = 100;

/**
 * What a handler tells, as it is at this moment.
 *
 * @param data what JSON can hold; `null` is none, as it is on the wire (docs/wire.md §5)
 * @throws TypeError, NotJsonError, StepOptionError when it is more or deeper than may be
 */
export function progressOf(text: unknown, data: unknown): Progress {
  if (typeof text !== "string") throw new TypeError(`step.status: expected a text, got ${typeof text}`);
  const short = text.length > MAX_STATUS_CHARACTERS ? `${text.slice(0, MAX_STATUS_CHARACTERS)}…` : text;
  const json = toJson(data, "the data of step.status");
  if (json === "" || json === "null") return { text: short };
  const bytes = Buffer.byteLength(json);
  if (bytes > MAX_STATUS_DATA_BYTES)
    throw new StepOptionError(
      `the data of step.status: expected at most ${MAX_STATUS_DATA_BYTES} bytes as JSON, got ${bytes}; give out an artifact instead`,
    );
  if (jsonDepth(json) > MAX_STATUS_DATA_DEPTH)
    throw new StepOptionError(
      `the data of step.status: expected JSON nested at most ${MAX_STATUS_DATA_DEPTH} deep`,
    );
  return { text: short, data: json };
}

/**
 * Progress, merged: one text in `everyMs` with the data that was told with it, the newest wins, and the last one is
 * never lost since whoever puts an entry next takes it along.
 */
export class StatusLine {
  readonly #everyMs: number;
  readonly #clock: Clock;
  readonly #due: () => void;
  #pending: Progress | undefined;
  #last: Progress | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;
  #forget: (() => void) | undefined;

  /** @param due called when a text has waited long enough to be worth an entry of its own */
  constructor(options: { everyMs: number; clock: Clock; due: () => void }) {
    this.#everyMs = options.everyMs;
    this.#clock = options.clock;
    this.#due = options.due;
  }

  /** Notes when the last text went into the journal, and which: a handler that is run again says it again. */
  restore(at: number, told?: Progress): void {
    this.#lastAt = at;
    this.#last = told;
  }

  set(progress: Progress): void {
    if (progress.text === this.#last?.text && progress.data === this.#last.data) {
      this.#pending = undefined;
      return;
    }
    this.#pending = progress;
    this.#arm();
  }

  /** A timer may be early by the clock, and a text may be taken just before it comes: it looks again then. */
  #arm(): void {
    if (this.#forget !== undefined) return;
    const wait = Math.max(0, this.#dueAt - this.#clock.now());
    this.#forget = this.#clock.timer(wait, () => {
      this.#forget = undefined;
      if (this.#pending === undefined) return;
      if (this.#clock.now() < this.#dueAt) this.#arm();
      else this.#due();
    });
  }

  get #dueAt(): number {
    return this.#lastAt + this.#everyMs;
  }

  /** Takes the waiting text along if its time has come, or whenever `anyway` is set. */
  take(anyway: boolean): Progress | undefined {
    const progress = this.#pending;
    if (progress === undefined) return undefined;
    const now = this.#clock.now();
    if (!anyway && now < this.#dueAt) return undefined;
    this.#pending = undefined;
    this.#last = progress;
    this.#lastAt = now;
    return progress;
  }

  /** Stops the clock; a waiting text can still be taken. */
  close(): void {
    this.#forget?.();
    this.#forget = undefined;
  }
}
