import type { Rest, Seen } from "../exchange/index.ts";

/** What came of waiting for a stream. */
export type Next = { readonly seen: Seen } | "silent" | "over";

/** A stream that is read on over several steps, by the worker that has it. */
export class Live {
  /** When to leave it at the latest, in milliseconds since 1970. */
  readonly until: number;
  readonly #rest: Rest;
  readonly #iterator: AsyncIterator<Seen>;
  /** What is waited for already: nothing that comes is lost between two steps. */
  #pending: Promise<Next> | undefined;

  constructor(rest: Rest, until: number) {
    this.until = until;
    this.#rest = rest;
    this.#iterator = rest[Symbol.asyncIterator]();
  }

  /**
   * What comes next; a stream that breaks is over, for the task can be asked for.
   *
   * @param ms how long to wait
   */
  async next(ms: number): Promise<Next> {
    this.#pending ??= this.#iterator.next().then(
      ({ done, value }): Next => (done === true ? "over" : { seen: value }),
      (): Next => "over",
    );
    const silence = Promise.withResolvers<Next>();
    const timer = setTimeout(() => silence.resolve("silent"), Math.max(0, ms));
    try {
      const next = await Promise.race([this.#pending, silence.promise]);
      if (next !== "silent") this.#pending = undefined;
      return next;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Lets go of the connection. */
  async close(): Promise<void> {
    await this.#rest.close().catch(() => {});
  }
}
