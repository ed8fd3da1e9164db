import { setTimeout as wait } from "node:timers/promises";
import { TransactionCanceledException, TransactionConflictException } from "@aws-sdk/client-dynamodb";

/** How often a write is tried that others keep out, and the bounds of the pauses between. */
export const CONFLICT_TRIES = 10;
const FIRST_PAUSE_MS = 25;
const MAX_PAUSE_MS = 1_000;

/** Reasons that pass by themselves (DynamoDB API: TransactWriteItems, cancellation reasons). */
const PASSING = new Set(["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"]);

function isPassing(error: unknown): boolean {
  if (error instanceof TransactionConflictException) return true;
  if (!(error instanceof TransactionCanceledException)) return false;
  return (error.CancellationReasons ?? []).some(({ Code }) => PASSING.has(Code ?? ""));
}

/** How long to wait after so many tries: longer each time, and left to chance, so that those who meet part. */
export function growingPause(tries: number): number {
  return Math.random() * Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries);
}

/**
 * Tries a write again while a transaction on the same item is under way, which the SDK does not do.
 *
 * @throws the last error after {@link CONFLICT_TRIES} tries
 */
export async function throughConflicts<T>(
  write: () => Promise<T>,
  pause: (ms: number) => Promise<unknown> = wait,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      if (tries === CONFLICT_TRIES || !isPassing(error)) throw error;
      await pause(growingPause(tries));
    }
  }
}
