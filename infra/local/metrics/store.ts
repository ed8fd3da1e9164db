/** A minute, in milliseconds: the shortest period that a standard metric has. */
export const MINUTE_MS = 60_000;
/** How long bins are kept, in minutes: longer than any alarm of ours looks back. */
const KEPT_MINUTES = 6 * 60;

/** Which metric: its namespace, name, and the dimensions that tell it from others of its name. */
export interface MetricKey {
  readonly namespace: string;
  readonly name: string;
  readonly dimensions: Readonly<Record<string, string>>;
}

export const STATISTICS = ["SampleCount", "Sum", "Average", "Minimum", "Maximum"] as const;
export type Statistic = (typeof STATISTICS)[number];

/** What was measured in one minute. */
interface Bin {
  count: number;
  sum: number;
  min: number;
  max: number;
}

/** Metrics as CloudWatch keeps them: in bins of a minute, from which statistics over longer periods are made. */
export class MetricStore {
  readonly #metrics = new Map<string, { readonly key: MetricKey; readonly bins: Map<number, Bin> }>();

  /**
   * @param at when it was measured, in milliseconds of whatever clock the reader uses
   */
  put(key: MetricKey, value: number, at: number): void {
    const text = keyText(key);
    const { bins } = this.#metrics.get(text) ?? { bins: new Map<number, Bin>() };
    this.#metrics.set(text, { key, bins });
    const minute = Math.floor(at / MINUTE_MS);
    const bin = bins.get(minute);
    if (bin === undefined) {
      bins.set(minute, { count: 1, sum: value, min: value, max: value });
      for (const old of bins.keys()) if (old < minute - KEPT_MINUTES) bins.delete(old);
      return;
    }
    bin.count++;
    bin.sum += value;
    bin.min = Math.min(bin.min, value);
    bin.max = Math.max(bin.max, value);
  }

  /**
   * A statistic over a time; undefined when nothing was measured in it.
   *
   * @param from in milliseconds, a whole minute; included
   * @param to excluded
   */
  statistic(key: MetricKey, statistic: Statistic, from: number, to: number): number | undefined {
    const bins = this.#metrics.get(keyText(key))?.bins;
    if (bins === undefined) return undefined;
    const all: Bin[] = [];
    for (let minute = Math.floor(from / MINUTE_MS); minute * MINUTE_MS < to; minute++) {
      const bin = bins.get(minute);
      if (bin !== undefined) all.push(bin);
    }
    if (all.length === 0) return undefined;
    const count = all.reduce((total, bin) => total + bin.count, 0);
    const sum = all.reduce((total, bin) => total + bin.sum, 0);
    switch (statistic) {
      case "SampleCount":
        return count;
      case "Sum":
        return sum;
      case "Average":
        return sum / count;
      case "Minimum":
        return Math.min(...all.map(({ min }) => min));
      case "Maximum":
        return Math.max(...all.map(({ max }) => max));
    }
  }

  /** The metrics that have ever had a value. */
  names(): MetricKey[] {
    return Array.from(this.#metrics.values(), ({ key }) => key);
  }
}

function keyText({ namespace, name, dimensions }: MetricKey): string {
  return JSON.stringify([
    namespace,
    name,
    Object.entries(dimensions).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  ]);
}
