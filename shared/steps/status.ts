import type { Clock } from "../tasks/clock.ts";

/**
 * Progress texts, merged: one in `everyMs`, the newest wins, and the last one is never lost since whoever puts an
 * entry next takes it along.
 */
export class StatusLine {
  readonly #everyMs: number;
  readonly #clock: Clock;
  readonly #due: () => void;
  #pending: string | undefined;
  #last: string | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;
  #forget: (() => void) | undefined;

  /** @param due called when a text has waited long enough to be worth an entry of its own */
  constructor(options: { everyMs: number; clock: Clock; due: () => void }) {
    this.#everyMs = options.everyMs;
    this.#clock = options.clock;
    this.#due = options.due;
  }

  /** Notes when the last text went into the journal, and which: a handler that is run again says it again. */
  restore(at: number, text?: string): void {
    this.#lastAt = at;
    this.#last = text;
  }

  set(text: string): void {
    if (text === this.#last) {
      this.#pending = undefined;
      return;
    }
    this.#pending = text;
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
  take(anyway: boolean): string | undefined {
    const text = this.#pending;
    if (text === undefined) return undefined;
    const now = this.#clock.now();
    if (!anyway && now < this.#dueAt) return undefined;
    this.#pending = undefined;
    this.#last = text;
    this.#lastAt = now;
    return text;
  }

  /** Stops the clock; a waiting text can still be taken. */
  close(): void {
    this.#forget?.();
    this.#forget = undefined;
  }
}
