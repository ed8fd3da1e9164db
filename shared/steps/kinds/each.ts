import { StepNameError, StepOptionError } from "../errors.ts";

/**
 * The keys of items, which name their branches.
 *
 * @throws StepNameError when two items share one
 */
export function keysOf<T>(items: readonly T[], keyOf: (item: T) => string): string[] {
  const keys = new Set<string>();
  for (const item of items) {
    const key = keyOf(item);
    if (keys.has(key))
      throw new StepNameError(`step.each: expected a key for each item, got ${JSON.stringify(key)} twice`);
    keys.add(key);
  }
  return [...keys];
}

/** Does something for each item, so many at once, in their order; after a failure it begins with no further one. */
export async function boundedMap<T, R>(
  items: readonly T[],
  concurrency: number,
  fn: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  if (!(concurrency >= 1 && (Number.isInteger(concurrency) || concurrency === Number.POSITIVE_INFINITY)))
    throw new StepOptionError(
      `concurrency of step.each: expected a whole number from 1, got ${String(concurrency)}`,
    );
  const results: R[] = [];
  const queue = items.entries();
  let failed = false;
  const one = async (): Promise<void> => {
    for (const [index, item] of queue) {
      if (failed) return;
      try {
        results[index] = await fn(item, index);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, one));
  return results;
}
