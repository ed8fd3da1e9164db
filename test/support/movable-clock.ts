import { type Clock, systemClock } from "../../shared/tasks/clock.ts";

/** This machine's clock, which can be moved ahead: timers whose time is skipped fire at once, in order. */
export class MovableClock implements Clock {
  #ahead = 0;
  readonly #timers = new Set<{ at: number; fire: () => void; arm: () => void }>();

  readonly now = (): number => Date.now() + this.#ahead;

  readonly timer = (ms: number, fn: () => void): (() => void) => {
    let forget = () => {};
    const drop = () => {
      this.#timers.delete(timer);
      forget();
    };
    const timer = {
      at: this.now() + ms,
      fire: () => {
        drop();
        fn();
      },
      arm: () => {
        forget();
        forget = systemClock.timer(Math.max(0, timer.at - this.now()), timer.fire);
      },
    };
    this.#timers.add(timer);
    timer.arm();
    return drop;
  };

  /** Moves ahead, in milliseconds. */
  skip(ms: number): void {
    this.#ahead += ms;
    for (const timer of [...this.#timers].sort((a, b) => a.at - b.at)) timer.arm();
  }
}
