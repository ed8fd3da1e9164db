/**
 * Makes a failing list of choices small: it drops ends, then parts, then lowers what is left, as long as the history
 * still fails (delta debugging: Zeller and Hildebrandt, IEEE TSE 2002). 0 is the calmest choice, and a list that is used
 * up goes on with zeros.
 *
 * @param fails whether a history of these choices fails in the same way
 * @param options.untilMs when to be content with what there is, by `performance.now`
 */
export async function shrink(
  list: readonly number[],
  fails: (list: readonly number[]) => Promise<boolean>,
  { untilMs }: { readonly untilMs: number },
): Promise<readonly number[]> {
  let best = trimmed(list);
  const takes = async (candidate: readonly number[]): Promise<boolean> => {
    if (performance.now() > untilMs || !(await fails(candidate))) return false;
    best = trimmed(candidate);
    return true;
  };
  await shorten(best, takes);
  for (let before = Number.POSITIVE_INFINITY; weight(best) < before && performance.now() < untilMs; ) {
    before = weight(best);
    for (let size = Math.ceil(best.length / 2); size >= 1; size = Math.floor(size / 2)) {
      for (let at = 0; at < best.length; ) {
        const without = [...best.slice(0, at), ...best.slice(at + size)];
        const calm = best.map((value, index) => (index >= at && index < at + size ? 0 : value));
        if (await takes(without)) continue;
        if (weight(calm) < weight(best)) await takes(calm);
        at += size;
      }
    }
    for (let at = 0; at < best.length; at++)
      for (let value = 0; value < (best[at] ?? 0); value++)
        if (await takes(best.map((old, index) => (index === at ? value : old)))) break;
  }
  return best;
}

/** The shortest beginning that still fails, by halves. */
async function shorten(
  list: readonly number[],
  takes: (list: readonly number[]) => Promise<boolean>,
): Promise<void> {
  for (let [low, high] = [0, list.length]; low < high; ) {
    const middle = (low + high) >> 1;
    if (await takes(list.slice(0, middle))) high = middle;
    else low = middle + 1;
  }
}

/** Zeros at the end say nothing. */
function trimmed(list: readonly number[]): readonly number[] {
  const last = list.findLastIndex((value) => value !== 0);
  return list.slice(0, last + 1);
}

/** Shorter is better, then calmer. */
function weight(list: readonly number[]): number {
  return list.reduce((sum, value) => sum + (value === 0 ? 1 : 3 + Math.min(value, 100) / 100), 0);
}
