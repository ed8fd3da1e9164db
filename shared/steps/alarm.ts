import type { Clock } from "../tasks/clock.ts";

/** One callback at a time that may move. */
export class Alarm {
  readonly #clock: Clock;
  readonly #fire: () => void;
  #at = Number.POSITIVE_INFINITY;
  #forget: (() => void) | undefined;

  constructor(clock: Clock, fire: () => void) {
    this.#clock = clock;
    this.#fire = fire;
  }

  /** @param at milliseconds since 1970; infinite for never */
  set(at: number): void {
    if (at === this.#at) return;
    this.#forget?.();
    this.#forget = undefined;
    this.#at = at;
    if (at !== Number.POSITIVE_INFINITY) this.#arm();
  }

  /** A timer may be early by the clock: it looks again then. */
  #arm(): void {
    this.#forget = this.#clock.timer(Math.max(0, this.#at - this.#clock.now()), () => {
      if (this.#clock.now() < this.#at) return this.#arm();
      this.#at = Number.POSITIVE_INFINITY;
      this.#forget = undefined;
      this.#fire();
    });
  }
}
