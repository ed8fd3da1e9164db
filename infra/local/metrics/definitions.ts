import * as z from "zod";
import { HostError, messageOf } from "../errors.ts";
import { resolveIntrinsics } from "../intrinsics.ts";
import { scopeOf } from "../names.ts";
import { readAssembly } from "../template.ts";
import { type Compiled, compile, type Value } from "./expression.ts";
import type { Rule } from "./judge.ts";
import { type MetricKey, type MetricStore, MINUTE_MS, STATISTICS, type Statistic } from "./store.ts";

/** An alarm as the template declares it. */
export interface AlarmDefinition {
  readonly name: string;
  readonly description: string;
  readonly rule: Rule;
  readonly periodMs: number;
  /** Every metric that it looks at. */
  readonly metrics: readonly MetricKey[];
  /** The value of the period that ends at a time, in milliseconds. */
  readonly value: (store: MetricStore, end: number) => Value;
}

const COMPARISONS: Readonly<Record<string, (value: number, threshold: number) => boolean>> = {
  GreaterThanThreshold: (value, threshold) => value > threshold,
  GreaterThanOrEqualToThreshold: (value, threshold) => value >= threshold,
  LessThanThreshold: (value, threshold) => value < threshold,
  LessThanOrEqualToThreshold: (value, threshold) => value <= threshold,
};

const dimensions = z
  .array(z.object({ Name: z.string(), Value: z.string() }))
  .default([])
  .transform((all) => Object.fromEntries(all.map(({ Name, Value: value }) => [Name, value])));
const metric = z.object({ Namespace: z.string(), MetricName: z.string(), Dimensions: dimensions });
const statistic = z.enum(STATISTICS);
const wholeMinutes = z.coerce.number().int().positive().multipleOf(60);

const query = z.object({
  Id: z.string(),
  Expression: z.string().optional(),
  MetricStat: z.object({ Metric: metric, Period: wholeMinutes, Stat: statistic }).optional(),
  ReturnData: z.boolean().default(true),
  Period: wholeMinutes.optional(),
});

const alarmProperties = z.object({
  AlarmName: z.string(),
  AlarmDescription: z.string().default(""),
  ComparisonOperator: z.enum([
    "GreaterThanThreshold",
    "GreaterThanOrEqualToThreshold",
    "LessThanThreshold",
    "LessThanOrEqualToThreshold",
  ]),
  Threshold: z.number(),
  EvaluationPeriods: z.int().positive(),
  DatapointsToAlarm: z.int().positive().optional(),
  TreatMissingData: z.enum(["breaching", "notBreaching", "ignore", "missing"]).default("missing"),
  Namespace: z.string().optional(),
  MetricName: z.string().optional(),
  Dimensions: dimensions,
  Statistic: statistic.optional(),
  Period: wholeMinutes.optional(),
  Metrics: z.array(query).optional(),
});
type AlarmProperties = z.infer<typeof alarmProperties>;

/**
 * Reads the alarms that the one stack of a cloud assembly declares.
 *
 * @throws HostError `unsupported`, naming the alarm and what of it this machine does not know
 */
export function readAlarms(assemblyDir: string): AlarmDefinition[] {
  const assembly = readAssembly(assemblyDir);
  const scope = scopeOf(assembly, "");
  return Object.entries(assembly.template.Resources)
    .filter(([, { Type }]) => Type === "AWS::CloudWatch::Alarm")
    .map(([id, { Properties }]) => {
      const read = alarmProperties.safeParse(resolveIntrinsics(Properties, scope, id));
      if (!read.success)
        throw new HostError("unsupported", `template: ${id}: ${z.prettifyError(read.error)}`);
      try {
        return definitionOf(read.data);
      } catch (error) {
        throw new HostError("unsupported", `template: ${id}: ${messageOf(error)}`, { cause: error });
      }
    });
}

function definitionOf(properties: AlarmProperties): AlarmDefinition {
  const { AlarmName, AlarmDescription, Threshold, EvaluationPeriods, ComparisonOperator } = properties;
  const compare = COMPARISONS[ComparisonOperator];
  if (compare === undefined) throw new TypeError(`the comparison ${ComparisonOperator} is not known`);
  return {
    name: AlarmName,
    description: AlarmDescription,
    rule: {
      isBreaching: (value) => compare(value, Threshold),
      evaluationPeriods: EvaluationPeriods,
      datapointsToAlarm: properties.DatapointsToAlarm ?? EvaluationPeriods,
      missing: properties.TreatMissingData,
    },
    ...(properties.Metrics === undefined ? single(properties) : computed(properties.Metrics)),
  };
}

type Measured = Pick<AlarmDefinition, "periodMs" | "metrics" | "value">;

function single({ Namespace, MetricName, Dimensions, Statistic: of, Period }: AlarmProperties): Measured {
  if (Namespace === undefined || MetricName === undefined || of === undefined || Period === undefined)
    throw new TypeError("expected a metric with a statistic and a period, or Metrics");
  return measured({ namespace: Namespace, name: MetricName, dimensions: Dimensions }, of, Period);
}

function measured(key: MetricKey, of: Statistic, periodSec: number): Measured {
  const periodMs = periodSec * 1_000;
  return {
    periodMs,
    metrics: [key],
    value: (store, end) => store.statistic(key, of, end - periodMs, end),
  };
}

/** One metric, or one expression over metrics. */
function computed(queries: readonly z.infer<typeof query>[]): Measured {
  const inputs = new Map<string, Measured>();
  for (const { Id, MetricStat } of queries) {
    if (MetricStat === undefined) continue;
    const { Metric, Stat, Period } = MetricStat;
    const key = { namespace: Metric.Namespace, name: Metric.MetricName, dimensions: Metric.Dimensions };
    inputs.set(Id, measured(key, Stat, Period));
  }
  const [returned, ...others] = queries.filter(({ ReturnData }) => ReturnData);
  const periods = new Set(Array.from(inputs.values(), ({ periodMs }) => periodMs));
  const [periodMs] = periods;
  if (returned === undefined || others.length > 0 || periodMs === undefined || periods.size > 1)
    throw new TypeError("expected one result, and the same period for every metric");
  const evaluate: Compiled =
    returned.Expression === undefined
      ? (values) => values.get(returned.Id)
      : compile(returned.Expression, new Set(inputs.keys()));
  return {
    periodMs,
    metrics: Array.from(inputs.values()).flatMap(({ metrics }) => metrics),
    value: (store, end) =>
      evaluate(new Map(Array.from(inputs, ([id, { value }]) => [id, value(store, end)]))),
  };
}

/** The values that an alarm is judged by at a time, a whole minute: the oldest first. */
export function valuesOf(
  { periodMs, value }: Pick<AlarmDefinition, "periodMs" | "value">,
  store: MetricStore,
  end: number,
  periods: number,
): Value[] {
  return Array.from({ length: periods }, (_, i) => value(store, end - (periods - 1 - i) * periodMs));
}

/** For how long an alarm looks back, in milliseconds. */
export function lookBackMs({ rule, periodMs }: AlarmDefinition): number {
  return Math.max(rule.evaluationPeriods * periodMs, MINUTE_MS);
}
