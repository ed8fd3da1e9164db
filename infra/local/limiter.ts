/** Lets at most so many be at work at once; the rest wait in order. */
export class Limiter {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number) {
    if (!(Number.isInteger(limit) && limit >= 1))
      throw new RangeError(`limit: expected a whole number of at least 1, got ${limit}`);
    this.#free = limit;
  }

  /** Waits for a place; whoever got one gives it back with {@link release}. */
  async acquire(): Promise<void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}
