import { Duration } from "aws-cdk-lib";
import {
  ComparisonOperator,
  type IMetric,
  MathExpression,
  Metric,
  Stats,
  TreatMissingData,
} from "aws-cdk-lib/aws-cloudwatch";
import { STALE_AFTER_MS } from "../../shared/cards/record.ts";
import type { SluiceFunction } from "../functions.ts";
import type { Parts } from "../parts.ts";
import type { QueuePair } from "../queues.ts";
import { CONSUMPTION, consumerTimeoutSec, QUEUE_NAMES, type QueueName, visibilitySec } from "../sizes.ts";
import { DUE_INDEX } from "../storage.ts";
import { MINUTE, type OwnMetrics } from "./metrics.ts";

/** The pages under docs/runbooks/; an alarm without one does not exist. */
export const RUNBOOKS = [
  "dead-letters",
  "queue-age",
  "events-unpublished",
  "bridge-silent",
  "bridge-deaf",
  "no-results",
  "refusals-escalated",
  "cards-stale",
  "function-errors",
  "function-throttles",
  "function-duration",
  "table-throttles",
] as const;
export type Runbook = (typeof RUNBOOKS)[number];

/** An alarm: when what is measured is over its threshold in so many of so many periods. */
export interface AlarmSpec {
  /** Unique in the stack: the runbook, and of what. */
  readonly id: string;
  readonly runbook: Runbook;
  /** What has happened, in a sentence. */
  readonly says: string;
  readonly metric: IMetric;
  readonly threshold: number;
  readonly comparison?: ComparisonOperator;
  /** `[3, 5]`: three of five periods. */
  readonly datapoints: readonly [number, number];
  readonly missing?: TreatMissingData;
}

/** Twice as long as a healthy queue of messages ever is behind, in seconds: their function would have failed once. */
const MESSAGE_AGE_SEC = 300;
/** The longest that a hint may be delayed (SQS API: SendMessage, DelaySeconds), and time for it to be taken. */
const HINT_DELAY_SEC = 900;
const HINT_TAKEN_SEC = 300;
/** Of a function's invocations, the share that may fail. */
const ERROR_RATE = 0.1;
/** How long an event may be unpublished, in milliseconds. */
const UNPUBLISHED_MS = 60_000;
/** How close to its timeout an invocation may come: whoever watches the time ends twice as long before. */
const MARGIN_SEC = 5;

/** All that can be wrong, and how it is known. Thresholds are explained in docs/metrics.md. */
export function alarmSpecs(
  own: OwnMetrics,
  { parts, functions }: { parts: Parts; functions: readonly SluiceFunction[] },
): AlarmSpec[] {
  return [
    ...QUEUE_NAMES.flatMap((name) => queueAlarms(name, parts.queues[name], maxAgeSec(name))),
    ...parts.queues.own.flatMap(({ agentId, pair }) => {
      const consumer = functions.find(({ node }) => node.id === `work-${agentId}`);
      return queueAlarms(`work-${agentId}`, pair, hintAgeSec(consumer?.size.timeoutSec ?? 0));
    }),
    ...bridgeAlarms(own),
    ...outcomeAlarms(own),
    refusalsAlarm(own),
    cardsAlarm(own),
    ...functions.flatMap(functionAlarms),
    tableAlarm(parts),
  ];
}

/** The shared queues' ages, by what stays in them in a healthy state. */
function maxAgeSec(name: QueueName): number {
  return CONSUMPTION[name].consumer === "work" ? hintAgeSec(consumerTimeoutSec(name)) : MESSAGE_AGE_SEC;
}

/**
 * A hint stays in its queue while its task is worked on; that of a worker which died comes back when its visibility is
 * over, and is found to be stale, for `sweep` has offered the task again long before.
 */
function hintAgeSec(timeoutSec: number): number {
  return visibilitySec(timeoutSec) + HINT_DELAY_SEC + HINT_TAKEN_SEC;
}

function queueAlarms(name: string, { queue, dead }: QueuePair, ageSec: number): AlarmSpec[] {
  const look = { period: MINUTE, statistic: Stats.MAXIMUM };
  return [
    {
      id: `dead-letters-${name}`,
      runbook: "dead-letters",
      says: `The dead-letter queue of ${name} holds a message: it has ended its function on each receive.`,
      metric: dead.metricApproximateNumberOfMessagesVisible(look),
      threshold: 0,
      datapoints: [1, 1],
    },
    {
      id: `queue-age-${name}`,
      runbook: "queue-age",
      says: `The oldest message of the queue ${name} is older than ${ageSec} seconds.`,
      metric: queue.metricApproximateAgeOfOldestMessage(look),
      threshold: ageSec,
      datapoints: [3, 3],
    },
  ];
}

function bridgeAlarms(own: OwnMetrics): AlarmSpec[] {
  const pending = own.of("bridge", "MessagesPending");
  const refused = own.of("bridge", "MessagesNotForwarded");
  const taken = own.of("bridge", "MessagesForwarded");
  return [
    {
      id: "bridge-silent",
      runbook: "bridge-silent",
      says: "The bridge has told nothing of its durables for five minutes: no message is taken from NATS.",
      metric: own.of("bridge", "MessagesPending", { statistic: Stats.SAMPLE_COUNT }),
      threshold: 1,
      comparison: ComparisonOperator.LESS_THAN_THRESHOLD,
      datapoints: [5, 5],
      missing: TreatMissingData.BREACHING,
    },
    {
      id: "bridge-deaf",
      runbook: "bridge-deaf",
      says: "Messages wait on NATS, and for five minutes the bridge has taken none.",
      metric: new MathExpression({
        expression: "IF((FILL(pending, 0) + FILL(refused, 0) > 0) AND (FILL(taken, 0) == 0), 1, 0)",
        usingMetrics: { pending, refused, taken },
        label: "deaf",
        period: MINUTE,
      }),
      threshold: 0,
      datapoints: [5, 5],
    },
  ];
}

function outcomeAlarms(own: OwnMetrics): AlarmSpec[] {
  const period = Duration.minutes(5);
  const usingMetrics = {
    accepted: own.of("admit", "TasksDecided", { dimensions: { outcome: "accepted" }, period }),
    ended: own.of("work", "TasksEnded", { period }),
    canceled: own.of("control", "TasksEnded", { period }),
    asked: own.of("work", "QuestionsAsked", { period }),
    steps: own.of("work", "StepDuration", { period, statistic: Stats.SAMPLE_COUNT }),
  };
  const signs = ["ended", "canceled", "asked", "steps"].map((id) => `FILL(${id}, 0)`).join(" + ");
  return [
    {
      id: "events-unpublished",
      runbook: "events-unpublished",
      says: "An event has waited for its stream for more than a minute.",
      metric: new MathExpression({
        expression: "IF(FILL(swept, 0) > FILL(worked, 0), FILL(swept, 0), FILL(worked, 0))",
        usingMetrics: {
          swept: own.of("sweep", "UnpublishedAge"),
          worked: own.of("work", "UnpublishedAge"),
        },
        label: "unpublished for",
        period: MINUTE,
      }),
      threshold: UNPUBLISHED_MS,
      datapoints: [2, 3],
    },
    {
      id: "no-results",
      runbook: "no-results",
      says: "Tasks are accepted, and for twenty minutes none has ended, asked or finished a step.",
      metric: new MathExpression({
        expression: `IF((FILL(accepted, 0) > 0) AND (${signs} == 0), 1, 0)`,
        usingMetrics,
        label: "no results",
        period,
      }),
      threshold: 0,
      datapoints: [4, 4],
    },
  ];
}

function refusalsAlarm(own: OwnMetrics): AlarmSpec {
  return {
    id: "refusals-escalated",
    runbook: "refusals-escalated",
    says: "Tasks of one kind could not be handed on, ten times within ten minutes: nobody was chosen.",
    metric: own.of("work", "RefusalsEscalated"),
    threshold: 0,
    datapoints: [1, 1],
  };
}

function cardsAlarm(own: OwnMetrics): AlarmSpec {
  return {
    id: "cards-stale",
    runbook: "cards-stale",
    says: "For ten minutes a card of ours was older than 90 seconds, or none was put at all: peers take its agent for gone.",
    metric: own.of("cards", "CardAge"),
    threshold: STALE_AFTER_MS,
    datapoints: [10, 10],
    missing: TreatMissingData.BREACHING,
  };
}

function functionAlarms({ node, kind, function: lambda, size }: SluiceFunction): AlarmSpec[] {
  const name = node.id;
  const nearSec = size.timeoutSec - MARGIN_SEC;
  const duration: AlarmSpec = {
    id: `function-duration-${name}`,
    runbook: "function-duration",
    says: `Invocations of ${name} take more than ${nearSec} of the ${size.timeoutSec} seconds that they may.`,
    metric: lambda.metricDuration({ period: MINUTE, statistic: Stats.MAXIMUM }),
    threshold: nearSec * 1_000,
    datapoints: [3, 5],
  };
  return [
    {
      id: `function-errors-${name}`,
      runbook: "function-errors",
      says: `More than ${ERROR_RATE * 100} % of the invocations of ${name} fail.`,
      // Lambda tells of each invocation whether it was one: the average is the share of those that failed.
      metric: lambda.metricErrors({ period: MINUTE, statistic: Stats.AVERAGE }),
      threshold: ERROR_RATE,
      datapoints: [3, 5],
    },
    {
      id: `function-throttles-${name}`,
      runbook: "function-throttles",
      says: `Invocations of ${name} are throttled.`,
      metric: lambda.metricThrottles({ period: MINUTE, statistic: Stats.SUM }),
      threshold: 0,
      datapoints: [3, 5],
    },
    // The bridge uses its time up: its next run has begun by then.
    ...(kind === "bridge" ? [] : [duration]),
  ];
}

function tableAlarm({ storage: { table } }: Parts): AlarmSpec {
  const of = (metricName: string, index?: string) =>
    new Metric({
      namespace: "AWS/DynamoDB",
      metricName,
      dimensionsMap: {
        TableName: table.tableName,
        ...(index !== undefined && { GlobalSecondaryIndexName: index }),
      },
      statistic: Stats.SUM,
      period: MINUTE,
    });
  const usingMetrics = {
    reads: of("ReadThrottleEvents"),
    writes: of("WriteThrottleEvents"),
    indexreads: of("ReadThrottleEvents", DUE_INDEX),
    indexwrites: of("WriteThrottleEvents", DUE_INDEX),
  };
  const ids = Object.keys(usingMetrics);
  return {
    id: "table-throttles",
    runbook: "table-throttles",
    says: "DynamoDB throttles requests to the table or its index.",
    metric: new MathExpression({
      expression: ids.map((id) => `FILL(${id}, 0)`).join(" + "),
      usingMetrics,
      label: "throttled",
      period: MINUTE,
    }),
    threshold: 0,
    datapoints: [3, 5],
  };
}
