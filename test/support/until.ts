import { setTimeout as wait } from "node:timers/promises";

/** How long the tests wait for what must happen; it is never asserted how long it took. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 25;

/**
 * Waits until something is there, and gives it.
 *
 * @param what what is waited for, as the error says it
 * @param look gives undefined or false while it is not there
 * @param seen what is there instead, for the error
 */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  options: { withinMs?: number; seen?: () => unknown } = {},
): Promise<T> {
  const { withinMs = PATIENCE_MS, seen } = options;
  for (const end = Date.now() + withinMs; ; await wait(PAUSE_MS)) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() < end) continue;
    const instead = seen === undefined ? "" : `; there is ${JSON.stringify(await seen())}`;
    throw new Error(`${what}: not within ${withinMs} ms${instead}`);
  }
}

/** The outcome of a promise, or an error that says what was waited for. */
export async function inTime<T>(what: string, promise: Promise<T>, withinMs = PATIENCE_MS): Promise<T> {
  const late = AbortSignal.timeout(withinMs);
  return await Promise.race([
    promise,
    new Promise<never>((_, reject) =>
      late.addEventListener("abort", () => reject(new Error(`${what}: not within ${withinMs} ms`))),
    ),
  ]);
}
