import type { Duration } from "../agents/types.ts";
import { StepOptionError } from "./errors.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** The longest duration of a step: a leap year. */
export const MAX_DURATION = 366 * DAY;

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: SECOND, m: MINUTE, h: HOUR, d: DAY };

/**
 * A duration in milliseconds.
 *
 * @param what how the duration is called in an error
 * @throws StepOptionError when it is none, negative, or longer than {@link MAX_DURATION}
 */
export function milliseconds(duration: Duration, what: string): number {
  const ms = read(duration);
  if (!(ms >= 0 && ms <= MAX_DURATION))
    throw new StepOptionError(
      `${what}: expected milliseconds, or a text such as "90s", "5m", "2h" or "7d", of at most 366 days; got ${JSON.stringify(duration) ?? typeof duration}`,
    );
  return ms;
}

function read(duration: unknown): number {
  if (typeof duration === "number") return duration;
  if (typeof duration !== "string") return Number.NaN;
  const [, count, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(duration) ?? [];
  return Number(count) * (UNITS[unit ?? ""] ?? Number.NaN);
}
