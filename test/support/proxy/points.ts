import { inTime } from "../until.ts";

/** The parts that functions write to. */
export type Part = "dynamodb" | "sqs" | "s3" | "nats";

/** One write of a function, on its way to a part. */
export interface Point {
  readonly part: Part;
  /** What is written, such as `dynamodb PutItem head`, `sqs send work`, `nats publish accepted`, `nats ack`. */
  readonly kind: string;
  /** The tasks that it is about; none when it is about a stream, a consumer, a pull. */
  readonly tasks: readonly string[];
  /** What is sent: the request's or the message's body. */
  readonly body: Buffer;
  /** The message's subject, or the HTTP request's path. */
  readonly subject: string;
  /** The function's process that writes; undefined when it is gone, or when it is none of the host's. */
  readonly caller: { readonly name: string; readonly pid: number } | undefined;
}

/** An answer that an AWS service could have given instead of doing what it was asked. */
export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * What becomes of a write (before it has reached its part) or of its answer (after): it passes, is lost, passes twice,
 * or is lost together with the connection. One of AWS's may also be refused before it has reached its part.
 */
export type Verdict = "pass" | "drop" | "twice" | "cut" | Refusal;
/** @param refused whether the part has answered with an error */
export type Hook = (point: Point, refused: boolean) => Verdict | undefined | Promise<Verdict | undefined>;

export interface Hooks {
  /** Asked when the write has come and its part has not seen it. */
  readonly before?: Hook;
  /** Asked when the part has answered and the caller has not been told. */
  readonly after?: Hook;
  /** Asked when a request to AWS has come that only reads, with its part and its kind. */
  readonly read?: (part: Part, kind: string) => Verdict | undefined | Promise<Verdict | undefined>;
}

/** A write that waits. */
export interface Held {
  /** The point, once it is there and waits. */
  readonly reached: Promise<Point>;
  /** Lets it go on, or never wait. */
  release(verdict?: Verdict): void;
}

/** Where a test stands: at every write of every function. */
export class Points {
  readonly #hooks = new Set<Hooks>();

  /** Adds hooks; the first verdict that is not to pass counts. Gives what removes them again. */
  on(hooks: Hooks): () => void {
    this.#hooks.add(hooks);
    return () => void this.#hooks.delete(hooks);
  }

  before(point: Point): Promise<Verdict> {
    return this.#ask("before", point, false);
  }

  after(point: Point, refused: boolean): Promise<Verdict> {
    return this.#ask("after", point, refused);
  }

  async read(part: Part, kind: string): Promise<Verdict> {
    for (const hooks of [...this.#hooks]) {
      const verdict = await hooks.read?.(part, kind);
      if (verdict !== undefined && verdict !== "pass") return verdict;
    }
    return "pass";
  }

  async #ask(when: "before" | "after", point: Point, refused: boolean): Promise<Verdict> {
    for (const hooks of [...this.#hooks]) {
      const verdict = await hooks[when]?.(point, refused);
      if (verdict !== undefined && verdict !== "pass") return verdict;
    }
    return "pass";
  }

  /** Holds the first write that matches, before its part has seen it or after it has taken it. */
  hold(when: "before" | "after", matches: (point: Point) => boolean, what: string): Held {
    const reached = Promise.withResolvers<Point>();
    const released = Promise.withResolvers<Verdict>();
    const off = this.on({
      [when]: (point: Point, refused: boolean) => {
        if (refused || !matches(point)) return undefined;
        off();
        reached.resolve(point);
        return released.promise;
      },
    });
    const held = inTime(`no ${what}`, reached.promise);
    held.catch(() => {}); // whoever waits for it is told
    return {
      reached: held,
      release(verdict = "pass") {
        off();
        released.resolve(verdict);
      },
    };
  }

  /** Waits for the first write that matches, and lets it pass. */
  next(when: "before" | "after", matches: (point: Point) => boolean, what: string): Promise<Point> {
    const held = this.hold(when, matches, what);
    return held.reached.finally(() => held.release());
  }
}
