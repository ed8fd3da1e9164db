import { type Clock, systemClock } from "./clock.ts";

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

/** How long something that cannot be reached is tried again. */
export interface Patience {
  readonly now: () => number;
  /** Until when, in milliseconds since 1970. */
  readonly until: () => number;
  /** What pauses are taken by; the machine's unless said otherwise. */
  readonly timer?: Clock["timer"];
}

/** Errors of AWS that blame the request itself: the same request fails in the same way (AWS SDK: error handling). */
const BLAMES_REQUEST = new Set(["SerializationException", "ValidationException"]);

/** Whether trying again cannot help, because the service has refused what it was asked. */
export function isRefused(error: unknown): boolean {
  return error instanceof Error && BLAMES_REQUEST.has(error.name);
}

/**
 * Does something again until it succeeds, after pauses that grow from 0.1 to 5 seconds.
 *
 * @param hopeless tells an error that trying again does not help
 * @throws the last error when the time is over
 */
export async function insist<T>(
  attempt: () => Promise<T>,
  { now, until, timer = systemClock.timer }: Patience,
  hopeless: (error: unknown) => boolean = () => false,
): Promise<T> {
  for (let pause = FIRST_RETRY_MS; ; pause = Math.min(pause * 2, MAX_RETRY_MS)) {
    try {
      return await attempt();
    } catch (error) {
      if (hopeless(error) || now() + pause > until()) throw error;
      await pauseBy(timer, pause);
    }
  }
}

/** Resolves after so many milliseconds. */
export function pauseBy(timer: Clock["timer"], ms: number): Promise<void> {
  return new Promise((resolve) => void timer(ms, resolve));
}
