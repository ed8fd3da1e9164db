import { Logger } from "@aws-lambda-powertools/logger";
import { Metrics, MetricUnit } from "@aws-lambda-powertools/metrics";

type Fields = Readonly<Record<string, unknown>>;

/**
 * What a function says about itself: structured log lines and metrics of few dimensions. Fields carry ids, counts and
 * reasons, never a payload and never a secret; a task id is never a dimension (each combination is a metric that is
 * paid for).
 */
export interface Telemetry {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  /** Counts something under a metric's name. */
  count(metric: string, value?: number, dimensions?: Readonly<Record<string, string>>): void;
}

/** {@link Telemetry} over Powertools, with the two instances that its middleware wants to see. */
export interface PowertoolsTelemetry extends Telemetry {
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/**
 * Telemetry by Powertools for AWS Lambda: JSON lines, and metrics in CloudWatch's embedded metric format. Service
 * name, namespace and log level come from the `POWERTOOLS_*` and `LOG_LEVEL` variables.
 */
export function createTelemetry(): PowertoolsTelemetry {
  const logger = new Logger();
  const metrics = new Metrics();
  const log = (level: "debug" | "info" | "warn" | "error") => (message: string, fields?: Fields) =>
    fields === undefined ? logger[level](message) : logger[level](message, { ...fields });
  return {
    logger,
    metrics,
    debug: log("debug"),
    info: log("info"),
    warn: log("warn"),
    error: log("error"),
    count(metric, value = 1, dimensions) {
      if (dimensions === undefined) {
        metrics.addMetric(metric, MetricUnit.Count, value);
        return;
      }
      const single = metrics.singleMetric();
      single.addDimensions({ ...dimensions });
      single.addMetric(metric, MetricUnit.Count, value);
    },
  };
}

/**
 * The middleware that writes out what an invocation has counted. Powertools' own complains about an invocation that
 * counted nothing, which is as it should be.
 */
export function publishMetrics({ metrics }: Pick<PowertoolsTelemetry, "metrics">) {
  const publish = () => {
    if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
  };
  return { after: publish, onError: publish };
}

/** The fields that tell what an error was, without its stack's absolute paths. */
export function errorFields(error: unknown): { errorName: string; errorMessage: string } {
  try {
    return error instanceof Error
      ? { errorName: String(error.name), errorMessage: String(error.message) }
      : { errorName: typeof error, errorMessage: String(error) };
  } catch {
    // A proxy, or a getter that throws.
    return { errorName: typeof error, errorMessage: "an error that does not say what it is" };
  }
}
