/** A time that is running. */
export interface Timer {
  /** Starts it anew. */
  refresh(): void;
  /** Lets the process end before it: the connection holds the process for as long as it is wanted. */
  unref(): void;
  clear(): void;
}

/** What ends a request before its time: its caller, or the first of its timers that runs out. */
export class Watch {
  /** Its reason is the caller's, or the timer's error. */
  readonly signal: AbortSignal;
  readonly #late = new AbortController();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(caller?: AbortSignal) {
    this.signal = caller === undefined ? this.#late.signal : AbortSignal.any([caller, this.#late.signal]);
  }

  /**
   * Lets a time run.
   *
   * @param ms milliseconds
   * @param late the error in which the request then ends
   */
  start(ms: number, late: () => Error): Timer {
    const timer = setTimeout(() => this.#late.abort(late()), ms);
    this.#timers.add(timer);
    return {
      refresh: () => void timer.refresh(),
      unref: () => void timer.unref(),
      clear: () => {
        clearTimeout(timer);
        this.#timers.delete(timer);
      },
    };
  }

  /** Ends all timers: the request is over. */
  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }

  /** What a promise gives, or the signal's reason if that comes first: for what cannot be ended itself. */
  over<T>(promise: Promise<T>): Promise<T> {
    const { signal } = this;
    return new Promise<T>((resolve, reject) => {
      const abort = () => reject(signal.reason);
      if (signal.aborted) abort();
      signal.addEventListener("abort", abort, { once: true });
      promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
    });
  }
}
