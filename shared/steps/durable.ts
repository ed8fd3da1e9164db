import { ClaimLost, TaskEnded } from "../events/journal.ts";
import { StoreError } from "./errors.ts";

/**
 * Tells a failure to store or to read from an error of the handler's own.
 *
 * @throws StoreError, TaskEnded, ClaimLost
 */
export async function durable<T>(access: Promise<T>): Promise<T> {
  try {
    return await access;
  } catch (error) {
    if (error instanceof TaskEnded || error instanceof ClaimLost) throw error;
    throw new StoreError("the step could not be stored", { cause: error });
  }
}
