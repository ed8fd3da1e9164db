/**
 * Progress texts, merged: one in `everyMs`, the newest wins, and the last one is never lost since whoever puts an
 * entry next takes it along.
 */
export class StatusLine {
  readonly #everyMs: number;
  readonly #now: () => number;
  readonly #due: () => void;
  #pending: string | undefined;
  #last: string | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** @param due called when a text has waited long enough to be worth an entry of its own */
  constructor(options: { everyMs: number; now: () => number; due: () => void }) {
    this.#everyMs = options.everyMs;
    this.#now = options.now;
    this.#due = options.due;
  }

  /** Notes when the last text went into the journal. */
  restore(at: number): void {
    this.#lastAt = at;
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
    if (this.#timer !== undefined) return;
    const wait = Math.max(0, this.#dueAt - this.#now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#pending === undefined) return;
      if (this.#now() < this.#dueAt) this.#arm();
      else this.#due();
    }, wait);
  }

  get #dueAt(): number {
    return this.#lastAt + this.#everyMs;
  }

  /** Takes the waiting text along if its time has come, or whenever `anyway` is set. */
  take(anyway: boolean): string | undefined {
    const text = this.#pending;
    if (text === undefined) return undefined;
    const now = this.#now();
    if (!anyway && now < this.#dueAt) return undefined;
    this.#pending = undefined;
    this.#last = text;
    this.#lastAt = now;
    return text;
  }

  /** Stops the clock; a waiting text can still be taken. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
