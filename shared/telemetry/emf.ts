import { Metrics } from "@aws-lambda-powertools/metrics";
import { dimensionSets, METRICS, type MetricDefinition, type MetricName } from "./metrics.ts";

/** Values of a metric that one line may hold (CloudWatch User Guide, "Embedded metric format specification": 100). */
const MAX_VALUES = 100;
/** How long a value may wait for others to share its line, in milliseconds: some invocations take minutes. */
const LINGER_MS = 10_000;

/** Powertools warns of a dimension that is in two sets; that is what they are for. */
const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

type Dimensions = Readonly<Record<string, string>>;

/** What goes into one line: metrics with the same dimensions, and published under the same sets of them. */
interface Line {
  readonly dimensions: Dimensions;
  readonly sets: readonly (readonly string[])[];
  readonly values: Map<MetricName, number[]>;
}

/**
 * Metrics on their way to the log, in CloudWatch's embedded metric format. A line of the log is paid for, so what is
 * counted meanwhile is added up, and what has the same dimensions shares a line.
 */
export class MetricLines {
  readonly #lines = new Map<string, Line>();
  readonly #lingerMs: number;
  #timer: NodeJS.Timeout | undefined;

  /** @param scale how much faster than in the cloud the deployment lives */
  constructor(scale: number) {
    this.#lingerMs = LINGER_MS / scale;
  }

  add(metric: MetricName, value: number, dimensions: Dimensions): void {
    const sets = dimensionSets(metric);
    const key = JSON.stringify([Object.entries(dimensions).toSorted(), sets]);
    const line = this.#lines.get(key) ?? { dimensions, sets, values: new Map() };
    this.#lines.set(key, line);
    const values = line.values.get(metric) ?? [];
    line.values.set(metric, values);
    if (METRICS[metric].kind === "count") values[0] = (values[0] ?? 0) + value;
    else values.push(value);
    if (values.length >= MAX_VALUES - 1) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), this.#lingerMs).unref();
  }

  /** Writes out what has been added. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = [...this.#lines.values()];
    this.#lines.clear();
    for (const line of lines) write(line);
  }
}

/** Namespace and service come from the `POWERTOOLS_*` variables. */
function write({ dimensions, sets, values }: Line): void {
  const metrics = new Metrics({ logger: silent });
  for (const set of sets)
    metrics.addDimensions(Object.fromEntries(set.map((name) => [name, dimensions[name] ?? ""])));
  for (const [name, all] of values) {
    const { unit }: MetricDefinition = METRICS[name];
    for (const value of all) metrics.addMetric(name, unit, value);
  }
  metrics.publishStoredMetrics();
}
