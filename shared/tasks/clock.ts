/** What tells the time and calls back at a time: functions take one, so that tests can move it. */
export interface Clock {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Calls back once, after so many milliseconds; answers with how to forget it. */
  readonly timer: (ms: number, fn: () => void) => () => void;
}

/** setTimeout takes no more (Node.js: timers, setTimeout). */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The clock of this machine. */
export const systemClock: Clock = {
  now: Date.now,
  timer(ms, fn) {
    const at = Date.now() + ms;
    let timer: NodeJS.Timeout;
    const arm = () => {
      const left = Math.max(0, at - Date.now());
      timer = left > MAX_TIMER_MS ? setTimeout(arm, MAX_TIMER_MS) : setTimeout(fn, left);
    };
    arm();
    return () => clearTimeout(timer);
  },
};
