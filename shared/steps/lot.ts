import type { Clock } from "../tasks/clock.ts";
import { Alarm } from "./alarm.ts";

/** What waits up to so long waits within the invocation: leaving the task and coming back costs more. */
export const SHORT_WAIT_MS = 5_000;
/**
 * How long nothing may happen before a handler whose steps all wait is taken to wait for them alone. It is the
 * machine's time, whatever the clock: time for what the handler does between two steps.
 */
const SETTLE_MS = 10;

/** Calls back when nothing has happened for a while; answers with how to forget it. */
export type Settling = (fn: () => void) => () => void;

const settling: Settling = (fn) => {
  const timer = setTimeout(fn, SETTLE_MS);
  return () => clearTimeout(timer);
};

/** What a step waits for. */
export interface Wait {
  /** When the waiting is over by itself, in milliseconds since 1970. */
  readonly until?: number;
  /** Whether something else has put an end to it. */
  readonly ready?: () => boolean;
  /** Asked when nothing else in the task can go on: whether this may. */
  readonly stalled?: () => boolean;
  /** It is for another invocation to go on, however soon. */
  readonly elsewhere?: boolean;
}

interface Parked extends Wait {
  readonly resolve: () => void;
  readonly alarm: Alarm | undefined;
}

/**
 * Where the steps of a run wait. When all that are open wait, and for longer than is worth waiting for, the run is
 * idle.
 */
export class Lot {
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #idle: (until: number | undefined) => void;
  readonly #settleBy: Settling;
  readonly #parked = new Set<Parked>();
  /** Those of the parked that may be ready before their time. */
  readonly #watching = new Set<Parked>();
  #active = 0;
  /** Forgets the look whether anything goes on, while there is to be one. */
  #unsettled: (() => void) | undefined;
  #closing = false;
  #stopped = false;

  /**
   * @param options.limit when the invocation's time is nearly over, in milliseconds since 1970
   * @param options.settling how the lot waits until it looks whether anything goes on
   * @param options.idle told that nothing goes on, and until when at the latest; not when nothing at all is open
   */
  constructor(options: {
    clock: Clock;
    limit: number;
    settling?: Settling | undefined;
    idle: (until: number | undefined) => void;
  }) {
    this.#clock = options.clock;
    this.#limit = options.limit;
    this.#settleBy = options.settling ?? settling;
    this.#idle = options.idle;
  }

  /** Whether a step waits for something that others bring. */
  get watching(): boolean {
    return this.#watching.size > 0;
  }

  /** A step goes on. */
  enter(): void {
    this.#active++;
    this.#unsettle();
  }

  /** A step is done. */
  leave(): void {
    this.#active--;
    this.#settle();
  }

  /** Resolves when the waiting of an active step is over; never if the run ends before. */
  park(wait: Wait): Promise<void> {
    return new Promise((resolve) => {
      const here = wait.until !== undefined && wait.elsewhere !== true && wait.until < this.#limit;
      const alarm = here ? new Alarm(this.#clock, () => this.#resume(parked)) : undefined;
      const parked: Parked = { ...wait, resolve, alarm };
      this.#parked.add(parked);
      if (wait.ready !== undefined) this.#watching.add(parked);
      alarm?.set(wait.until ?? 0);
      this.leave();
    });
  }

  /** There is news: whoever is ready goes on. */
  poke(): void {
    for (const parked of [...this.#watching]) if (parked.ready?.() === true) this.#resume(parked);
  }

  /** Nothing begins any more: the run is idle as soon as no step is active. */
  close(): void {
    this.#closing = true;
    this.#settle();
  }

  /** Forgets who waits: nobody waits for them. */
  forget(): void {
    for (const { alarm } of this.#parked) alarm?.set(Number.POSITIVE_INFINITY);
    this.#parked.clear();
    this.#watching.clear();
  }

  /** The run is over. */
  stop(): void {
    this.#stopped = true;
    this.#unsettle();
    this.forget();
  }

  #resume(parked: Parked): void {
    if (!this.#parked.delete(parked)) return;
    this.#watching.delete(parked);
    parked.alarm?.set(Number.POSITIVE_INFINITY);
    this.enter();
    parked.resolve();
  }

  #unsettle(): void {
    this.#unsettled?.();
    this.#unsettled = undefined;
  }

  #settle(): void {
    if (this.#stopped || this.#active > 0 || (this.#parked.size === 0 && !this.#closing)) return;
    this.#unsettled ??= this.#settleBy(() => this.#settled());
  }

  #settled(): void {
    this.#unsettled = undefined;
    for (const parked of this.#parked)
      if (parked.stalled?.() === true) {
        this.#resume(parked);
        return;
      }
    const now = this.#clock.now();
    let until: number | undefined;
    for (const parked of this.#parked) {
      if (parked.until === undefined) continue;
      const short = parked.alarm !== undefined && parked.until - now <= SHORT_WAIT_MS;
      if (short && !this.#closing) return;
      until = Math.min(until ?? parked.until, parked.until);
    }
    this.#idle(until);
  }
}
