import type { Clock } from "../../shared/tasks/clock.ts";
import type { Happening, Scheduler, Trouble } from "./scheduler.ts";

/** What a process asks of a part outside itself. */
export interface Operation<T> {
  /** What it is, for a reader of the history. */
  readonly what: () => string;
  /** Whether it changes anything. */
  readonly writes: boolean;
  /** Does it; what it throws is an answer, too. */
  readonly apply: () => T;
  /** What the client throws when it gets no answer. */
  readonly silence: () => Error;
  /** What the client throws when the part refuses for the moment. */
  readonly refusal: () => Error;
  /** Whether it does not matter when it happens: then it happens at once, and is no choice of its own. */
  readonly anytime?: boolean;
}

/** How long a process may stand still, in milliseconds: shorter than a lease, longer, and much longer. */
const FREEZES = [20_000, 70_000, 200_000, 1_000_000] as const;
/** How wrong a clock may be, in milliseconds: so that two are at most five minutes apart. */
const SKEWS = [150_000, -150_000, 20_000, -20_000] as const;

/**
 * One invocation of a function: it may die or stand still at any of its calls. What is dead gets no answer to anything
 * and no timer fires in it, so however its code goes on, nobody outside will notice.
 */
export class Process {
  readonly name: string;
  readonly #scheduler: Scheduler;
  readonly #skewMs: number;
  /** The process's own: it stands still when the process does, and may be wrong. */
  readonly clock: Clock;
  #dead = false;
  #stopped = false;
  /** What is held back while the process stands still. */
  #held: (() => void)[] | undefined;
  /** Its requests that are under way. */
  readonly #sent = new Set<Happening>();
  /** Told when the process dies. */
  onDeath: () => void = () => {};

  constructor(name: string, scheduler: Scheduler) {
    this.name = name;
    this.#scheduler = scheduler;
    this.#skewMs = scheduler.chance("skew") ? scheduler.choices.of(...SKEWS) : 0;
    const { clock } = scheduler;
    this.clock = {
      now: () => clock.now() + this.#skewMs,
      timer: (ms, fn) => {
        let forgotten = false;
        const forget = clock.timer(ms, () =>
          this.reach(() => {
            if (!forgotten) fn();
          }),
        );
        return () => {
          forgotten = true;
          forget();
        };
      },
    };
    if (this.#skewMs !== 0) this.say(() => `its clock is ${this.#skewMs / 1_000} s off`);
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** Whether it has died or stood still. */
  get disturbed(): boolean {
    return this.#dead || this.#stopped;
  }

  say(line: () => string): void {
    this.#scheduler.say(() => `${this.name} ${line()}`);
  }

  /** Ends the process. Requests that it has sent may still arrive. */
  kill(why: string): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#held = undefined;
    this.say(() => `dies: ${why}`);
    for (const sent of this.#sent) if (!this.#scheduler.choices.chance(500)) this.#scheduler.forget(sent);
    this.onDeath();
  }

  freeze(ms: number): void {
    if (this.#dead || this.#held !== undefined) return;
    this.#held = [];
    this.#stopped = true;
    this.say(() => `stands still for ${ms / 1_000} s`);
    this.#scheduler.later(ms, { what: () => `${this.name} goes on`, happen: () => this.#thaw() });
  }

  #thaw(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    if (!this.#dead) this.say(() => "goes on");
    for (const fn of held) this.reach(fn);
  }

  /** Does something in the process: at once, when it goes on, or never. */
  reach(fn: () => void): void {
    if (this.#dead) return;
    if (this.#held === undefined) fn();
    else this.#held.push(fn);
  }

  /** Asks something of a part. The answer comes when it is chosen to, and not always. */
  call<T>(operation: Operation<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#dead) return;
      const happening: Happening = {
        what: () => `${this.name} ${operation.what()}`,
        happen: () => {
          this.#sent.delete(happening);
          this.#meet(operation, resolve, reject);
        },
      };
      if (operation.anytime === true && this.#held === undefined) return happening.happen();
      this.#sent.add(happening);
      this.#scheduler.add(happening);
    });
  }

  /** What becomes of a request. */
  #meet<T>(operation: Operation<T>, resolve: (value: T) => void, reject: (error: unknown) => void): void {
    const at = (kind: keyof Trouble) => this.#scheduler.chance(kind);
    if (this.#dead) {
      this.#arrive(operation);
      return;
    }
    if (at("freeze")) this.freeze(this.#scheduler.choices.of(...FREEZES));
    if (this.#fails(operation, reject)) return;
    let answer = this.#outcome(operation, resolve, reject);
    if (operation.writes && at("repeated")) {
      this.say(() => "gets no answer, and its client repeats the request");
      answer = this.#outcome(operation, resolve, reject);
    }
    if (at("lost")) {
      this.say(() => "gets no answer");
      answer = () => reject(operation.silence());
    }
    if (at("slow")) this.#answerLater(operation, answer);
    else this.reach(answer);
  }

  /** Whether the process dies of the request, or gets another answer than that of the part. */
  #fails(operation: Operation<unknown>, reject: (error: unknown) => void): boolean {
    const { choices } = this.#scheduler;
    const at = (kind: keyof Trouble) => this.#scheduler.chance(kind);
    if (at("death")) {
      if (choices.below(2) === 1) this.#arrive(operation);
      this.kill(`at ${operation.what()}`);
      return true;
    }
    if (at("refused")) {
      this.say(() => `${operation.what()}: refused`);
      this.reach(() => reject(operation.refusal()));
      return true;
    }
    if (!at("late")) return false;
    this.say(() => `${operation.what()}: no answer yet, and it gives up`);
    if (operation.writes)
      this.#scheduler.add({ what: operation.what, happen: () => this.#arrive(operation) });
    this.reach(() => reject(operation.silence()));
    return true;
  }

  #answerLater({ what }: Operation<unknown>, answer: () => void): void {
    const told = () => `gets the answer to ${what()}`;
    this.#scheduler.add({
      what: () => `${this.name} ${told()}`,
      happen: () => {
        this.say(told);
        this.reach(answer);
      },
    });
  }

  #outcome<T>(
    { what, apply }: Operation<T>,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ): () => void {
    try {
      const value = apply();
      this.say(what);
      return () => resolve(value);
    } catch (error) {
      this.say(() => `${what()}: ${nameOf(error)}`);
      return () => reject(error);
    }
  }

  /** The request takes effect, and nobody gets its answer. */
  #arrive({ what, writes, apply }: Operation<unknown>): void {
    if (!writes) return;
    try {
      apply();
      this.#scheduler.say(() => `${this.name} ${what()}: arrives, and nobody gets the answer`);
    } catch (error) {
      this.#scheduler.say(() => `${this.name} ${what()}: arrives, and changes nothing (${nameOf(error)})`);
    }
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : String(error);
}
