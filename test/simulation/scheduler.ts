import { SimulatedClock } from "../../shared/testing/clock.ts";
import type { Choices } from "./choices.ts";

/** Something that can happen now. */
export interface Happening {
  /** What it is, for a reader of the history. */
  readonly what: () => string;
  readonly happen: () => void;
}

/** What may go wrong in a history, and how often, in a thousand; each history draws its own mixture. */
export interface Trouble {
  /** Time passes though something could happen. */
  readonly haste: number;
  /** The answer to what was done is lost. */
  readonly lost: number;
  /** A request is refused: throttled, or in conflict with another. */
  readonly refused: number;
  /** A request whose answer is lost is repeated by the client. */
  readonly repeated: number;
  /** A request arrives after its sender has given up. */
  readonly late: number;
  /** An answer is slow. */
  readonly slow: number;
  /** A process dies. */
  readonly death: number;
  /** A process stands still. */
  readonly freeze: number;
  /** A queue or a stream delivers something twice, early or late. */
  readonly delivery: number;
  /** The index over `dueAt` learns late. */
  readonly index: number;
  /** The clocks of processes are wrong. */
  readonly skew: number;
}

export const NO_TROUBLE: Trouble = {
  haste: 0,
  lost: 0,
  refused: 0,
  repeated: 0,
  late: 0,
  slow: 0,
  death: 0,
  freeze: 0,
  delivery: 0,
  index: 0,
  skew: 0,
};

/** How often each kind of trouble comes in a history that has it: rarely, often, all the time. */
const RATES: Readonly<Record<keyof Trouble, readonly [number, number, number]>> = {
  haste: [5, 30, 150],
  lost: [10, 40, 150],
  refused: [10, 40, 150],
  repeated: [10, 40, 150],
  late: [10, 40, 150],
  slow: [50, 150, 400],
  death: [10, 40, 100],
  freeze: [10, 40, 100],
  delivery: [20, 80, 250],
  index: [50, 200, 500],
  skew: [300, 500, 900],
};

/**
 * Draws a mixture: most histories have a few kinds of trouble, for where everything goes wrong nothing gets far
 * (swarm testing: Groce et al., ISSTA 2012).
 */
export function drawTrouble(choices: Choices): Trouble {
  const trouble: Record<keyof Trouble, number> = { ...NO_TROUBLE };
  for (const kind of Object.keys(RATES) as (keyof Trouble)[]) {
    const [rare, often, always] = RATES[kind];
    trouble[kind] = choices.of(0, 0, rare, often, always);
  }
  return trouble;
}

/** Chooses what happens next, and tells the time. */
export class Scheduler {
  readonly choices: Choices;
  readonly clock: SimulatedClock;
  trouble: Trouble = NO_TROUBLE;
  /** Set where somebody reads the history. */
  tell: ((line: () => string) => void) | undefined;
  readonly #ready: Happening[] = [];

  constructor(choices: Choices, start: number) {
    this.choices = choices;
    this.clock = new SimulatedClock(start);
  }

  /** How many things can happen now. */
  get ready(): number {
    return this.#ready.length;
  }

  /** Notes that something can happen from now on. */
  add(happening: Happening): void {
    this.#ready.push(happening);
  }

  /** Notes that something can happen in so many milliseconds; answers with how to forget it. */
  later(ms: number, happening: Happening): () => void {
    if (ms > 0) return this.clock.timer(ms, () => this.add(happening));
    this.add(happening);
    return () => this.forget(happening);
  }

  forget(happening: Happening): boolean {
    const at = this.#ready.indexOf(happening);
    if (at >= 0) this.#ready.splice(at, 1);
    return at >= 0;
  }

  /** Whether something goes wrong now that goes wrong so many times in a thousand. */
  chance(kind: keyof Trouble): boolean {
    return this.choices.chance(this.trouble[kind]);
  }

  say(line: () => string): void {
    this.tell?.(line);
  }

  /** One thing happens, unless nothing can. */
  step(): boolean {
    const at = this.choices.below(this.#ready.length);
    const [next] = this.#ready.splice(at, 1);
    next?.happen();
    return next !== undefined;
  }
}
