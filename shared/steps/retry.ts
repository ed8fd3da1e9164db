import type { Retry, RunOptions } from "../agents/types.ts";
import { milliseconds } from "./duration.ts";
import { StepOptionError } from "./errors.ts";

export const DEFAULT_ATTEMPTS = 3;
export const MAX_ATTEMPTS = 100;

/** How often a step is tried, and how long the pauses are, in milliseconds. */
export interface RetryPolicy {
  readonly attempts: number;
  readonly initialMs: number;
  readonly maxMs: number;
}

/**
 * What a step's `retry` says.
 *
 * @throws StepOptionError
 */
export function retryPolicy(retry: RunOptions["retry"], step: string): RetryPolicy {
  const {
    attempts = DEFAULT_ATTEMPTS,
    initial = "1s",
    max = "1m",
  }: Retry = retry === false ? { attempts: 1 } : (retry ?? {});
  const of = `retry of step ${JSON.stringify(step)}`;
  if (!(Number.isInteger(attempts) && attempts >= 1 && attempts <= MAX_ATTEMPTS))
    throw new StepOptionError(`attempts of ${of}: expected 1 to ${MAX_ATTEMPTS}, got ${attempts}`);
  return {
    attempts,
    initialMs: milliseconds(initial, `initial of ${of}`),
    maxMs: milliseconds(max, `max of ${of}`),
  };
}

/** The pause after so many failed attempts: exponential, with full jitter, in whole milliseconds. */
export function pauseMs({ initialMs, maxMs }: RetryPolicy, failed: number): number {
  return Math.round(Math.random() * Math.min(maxMs, initialMs * 2 ** (failed - 1)));
}
