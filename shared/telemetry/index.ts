import { Logger } from "@aws-lambda-powertools/logger";
import type { Timing } from "../config/timing.ts";
import { MetricLines } from "./emf.ts";
import type { LogFields } from "./fields.ts";
import type {
  DimensionalCount,
  DimensionalMeasure,
  DimensionsOf,
  MetricName,
  PlainCount,
  PlainMeasure,
} from "./metrics.ts";

export { errorFields } from "./error-fields.ts";

/**
 * What a function says about itself: structured log lines and metrics of few dimensions. Fields carry ids, counts and
 * reasons, never a payload and never a secret; a task id is never a dimension (each combination is a metric that is
 * paid for).
 */
export interface Telemetry {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Counts what has happened, under a name of the catalogue (metrics.ts). */
  count(metric: PlainCount, value?: number): void;
  count<M extends DimensionalCount>(metric: M, value: number, dimensions: DimensionsOf<M>): void;
  /** Notes how much there is, or how long something took, in the unit of the catalogue. */
  measure(metric: PlainMeasure, value: number): void;
  measure<M extends DimensionalMeasure>(metric: M, value: number, dimensions: DimensionsOf<M>): void;
}

/** {@link Telemetry} over Powertools. */
export interface PowertoolsTelemetry extends Telemetry {
  /** For the middleware that wants to see it. */
  readonly logger: Logger;
  /** Writes out what was counted and measured. */
  flush(): void;
}

/**
 * Telemetry by Powertools for AWS Lambda: JSON lines, and metrics in CloudWatch's embedded metric format. Service
 * name, namespace and log level come from the `POWERTOOLS_*` and `LOG_LEVEL` variables.
 *
 * @param timing how much faster than in the cloud the deployment lives; by default as fast
 */
export function createTelemetry({ scale }: Pick<Timing, "scale"> = { scale: 1 }): PowertoolsTelemetry {
  const logger = new Logger();
  const lines = new MetricLines(scale);
  const log = (level: "debug" | "info" | "warn" | "error") => (message: string, fields?: LogFields) =>
    fields === undefined ? logger[level](message) : logger[level](message, { ...fields });
  return {
    logger,
    debug: log("debug"),
    info: log("info"),
    warn: log("warn"),
    error: log("error"),
    count: (metric: MetricName, value = 1, dimensions: Readonly<Record<string, string>> = {}) =>
      lines.add(metric, value, dimensions),
    measure: (metric: MetricName, value: number, dimensions: Readonly<Record<string, string>> = {}) =>
      lines.add(metric, value, dimensions),
    flush: () => lines.flush(),
  };
}

/** The middleware that writes out what an invocation has counted and measured. */
export function publishMetrics({ flush }: Pick<PowertoolsTelemetry, "flush">) {
  return { after: flush, onError: flush };
}
