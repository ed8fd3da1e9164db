import { Duration } from "aws-cdk-lib";
import { MathExpression, Metric, Stats } from "aws-cdk-lib/aws-cloudwatch";
import type { Construct } from "constructs";
import {
  dimensionSets,
  METRICS,
  type MetricDefinition,
  type MetricName,
} from "../../shared/telemetry/metrics.ts";
import type { FunctionName } from "../bundle.ts";
import { metricsNamespace } from "../environment.ts";

/** The period of everything that is not said to be another. */
export const MINUTE = Duration.minutes(1);

/** How a metric is looked at; by the minute unless it is said. */
export interface Look {
  readonly statistic?: string;
  readonly period?: Duration;
  readonly label?: string;
}

const STATISTICS = { count: Stats.SUM, gauge: Stats.MAXIMUM, time: Stats.MAXIMUM } as const;

/** A stack's own metrics, as its functions publish them. */
export class OwnMetrics {
  readonly #namespace: string;

  constructor(scope: Construct) {
    this.#namespace = metricsNamespace(scope);
  }

  /**
   * One metric of one function.
   *
   * @param dimensions beside `service`; a set under which the catalogue publishes it
   */
  of(
    service: FunctionName,
    name: MetricName,
    {
      dimensions = {},
      statistic,
      period = MINUTE,
      label,
    }: Look & { dimensions?: Record<string, string> } = {},
  ): Metric {
    const names = Object.keys(dimensions).toSorted().join();
    if (!dimensionSets(name).some((set) => set.toSorted().join() === names))
      throw new TypeError(`${name} is not published by ${names || "service alone"}`);
    const { kind }: MetricDefinition = METRICS[name];
    return new Metric({
      namespace: this.#namespace,
      metricName: name,
      dimensionsMap: { service, ...dimensions },
      statistic: statistic ?? STATISTICS[kind],
      period,
      label: label ?? name,
    });
  }

  /**
   * All metrics of a name, each a line of its own; for dashboards alone, alarms take no search.
   *
   * @param by the dimensions beside `service`; by default all that it has
   * @param only words that must occur, such as `outcome="accepted"`
   */
  search(
    name: MetricName,
    {
      by = METRICS[name].dimensions,
      only = "",
      statistic,
      period = MINUTE,
      label = "",
    }: Look & {
      by?: readonly string[];
      only?: string;
    } = {},
  ): MathExpression {
    const { kind }: MetricDefinition = METRICS[name];
    const schema = [`"${this.#namespace}"`, "service", ...by].join(",");
    const words = [`MetricName="${name}"`, only].filter(Boolean).join(" ");
    const expression = `SEARCH('{${schema}} ${words}', '${statistic ?? STATISTICS[kind]}', ${period.toSeconds()})`;
    return new MathExpression({ expression, usingMetrics: {}, label, period });
  }
}
