import { setTimeout as wait } from "node:timers/promises";
import { growingPause } from "../../tasks/conflicts.ts";

/** How often a change is tried that others keep out. */
const MAX_TRIES = 10;

/** What is kept under a key, and the mark of who has put it there: another write has another. */
export interface Kept<T> {
  readonly value: T;
  readonly version: string;
}

/**
 * Small items of one kind by key, each changed by whoever has read it as it is. What a value says of time it says itself:
 * an item may be there for long after it has expired.
 */
export interface ItemStore<T> {
  read(key: string): Promise<Kept<T> | undefined>;
  /** The values of many keys; those that are not there are left out. */
  readAll(keys: readonly string[]): Promise<ReadonlyMap<string, T>>;
  /**
   * Puts an item in the place of the one that was read, or where there was none.
   *
   * @param put.over the version that was read
   * @param put.expiresAt when it may be deleted, in milliseconds since 1970
   * @returns whether it was put: not if another has been put since
   */
  write(
    key: string,
    value: T,
    put: { readonly over: string | undefined; readonly expiresAt: number },
  ): Promise<boolean>;
}

/** What a change comes to: the answer, and what is to be kept, if that is new. */
export interface Change<T, R> {
  readonly answer: R;
  readonly next?: { readonly value: T; readonly expiresAt: number } | undefined;
}

/** How a change waits for others. */
export type Pause = (ms: number) => Promise<unknown>;

/** Others have changed an item each time that it was to be changed. */
export class ContendedError extends Error {
  override readonly name = "ContendedError";
}

/**
 * Changes an item as one step: of those that change it at the same time each sees what the others have made of it.
 *
 * @param fold what becomes of the value; called again when another was quicker
 * @throws ContendedError after ten tries, or what the store throws
 */
export async function change<T, R>(
  store: Pick<ItemStore<T>, "read" | "write">,
  key: string,
  fold: (value: T | undefined) => Change<T, R>,
  pause: Pause = wait,
): Promise<R> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const kept = await store.read(key);
    const { answer, next } = fold(kept?.value);
    if (next === undefined) return answer;
    const put = { over: kept?.version, expiresAt: next.expiresAt };
    if (await store.write(key, next.value, put)) return answer;
    if (tries < MAX_TRIES) await pause(growingPause(tries));
  }
  throw new ContendedError(`an item of the choice: not changed in ${MAX_TRIES} tries, others were quicker`);
}
