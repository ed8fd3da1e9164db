import { BRIDGE_SERVICE_SIZE, FUNCTION_SIZES } from "../../infra/sizes.ts";
import type { Recording } from "./recording.ts";
import type { Units } from "./steps.ts";

/** List prices in US dollars, without a free tier; of what is counted in millions, those of a million. */
export const PRICES = {
  date: "2026-09",
  region: "us-east-1",
  /** https://aws.amazon.com/dynamodb/pricing/on-demand/, table class Standard. */
  writeUnits: 0.625,
  readUnits: 0.125,
  /** https://aws.amazon.com/sqs/pricing/, standard queues. */
  sqsRequests: 0.4,
  /** https://aws.amazon.com/lambda/pricing/, Arm. */
  invocations: 0.2,
  gbSecond: 0.0000133334,
  /** https://aws.amazon.com/fargate/pricing/, Linux on Arm, an hour. */
  vcpuHour: 0.03238,
  gbHour: 0.00356,
  /** https://aws.amazon.com/cloudwatch/pricing/: a month each, of an alarm for each metric that it looks at; a GB of logs. */
  metricMonth: 0.3,
  alarmMetricMonth: 0.1,
  dashboardMonth: 3,
  logGb: 0.5,
  /** https://aws.amazon.com/xray/pricing/. */
  traces: 5,
  /** https://aws.amazon.com/secrets-manager/pricing/. */
  secretMonth: 0.4,
  /** https://aws.amazon.com/vpc/pricing/ and https://aws.amazon.com/privatelink/pricing/, an hour. */
  natHour: 0.045,
  addressHour: 0.005,
  endpointHour: 0.01,
} as const;

/** Send, receive and delete, if no two messages share a request. */
const SQS_REQUESTS = 3;
/** One to `admit`, one to `work`. */
export const MESSAGES = 2;
/**
 * What a task with one step leaves in the logs of `admit` and `work` at the most: test/e2e/counts.test.ts counts three
 * quarters of it, to which Lambda adds a line at each invocation's end, and longer names.
 */
export const TASK_LOG_BYTES = 4_500;
/** A month of 30 days, in hours. */
export const MONTH_HOURS = 720;
const MONTH_SEC = MONTH_HOURS * 3_600;

const MB_PER_GB = 1_024;
const MILLION = 1_000_000;

/** What is paid for: what for, how its price comes about, and the price in US dollars. */
export type PriceRow = readonly [what: string, how: string, amount: number];

export const dollars = (amount: number): string => `$${amount.toFixed(2)}`;
const gb = (mb: number) => mb / MB_PER_GB;

/** What is paid for by the million. */
export function byMillion(what: string, millions: number, price: number, unit: string): PriceRow {
  return [what, `${millions} M ${unit} × $${price} a million`, millions * price];
}

/** What a million tasks of one step cost in requests; `units` are those of one. */
export function requestsOfMillion(units: Units): PriceRow[] {
  return [
    byMillion("DynamoDB, writes", units.writes, PRICES.writeUnits, "write units"),
    byMillion("DynamoDB, reads", units.reads, PRICES.readUnits, "read units"),
    byMillion("SQS", MESSAGES * SQS_REQUESTS, PRICES.sqsRequests, "requests"),
    byMillion("Lambda, invocations", MESSAGES, PRICES.invocations, "invocations"),
  ];
}

/** What each 10 ms of a function cost in a million invocations. */
export function tenMsOf(name: "admit" | "work"): PriceRow {
  const { memoryMb } = FUNCTION_SIZES[name];
  const how = `${memoryMb} MB × 10 ms × 1 M × $${PRICES.gbSecond} a GB-second`;
  return [`Lambda, each 10 ms of \`${name}\``, how, gb(memoryMb) * 0.01 * MILLION * PRICES.gbSecond];
}

/** What a month of the bridge costs in each of its forms. */
export function bridgeMonth(): { readonly lambda: PriceRow; readonly fargate: PriceRow } {
  const { memoryMb } = FUNCTION_SIZES.bridge;
  const { cpu, memoryMb: serviceMb } = BRIDGE_SERVICE_SIZE;
  // Fargate counts CPU in 1,024ths (ECS Developer Guide, "Task CPU and memory").
  const vcpus = cpu / 1_024;
  return {
    lambda: [
      "bridge, as a function",
      `${memoryMb} MB × ${MONTH_SEC} s × $${PRICES.gbSecond} a GB-second`,
      gb(memoryMb) * MONTH_SEC * PRICES.gbSecond,
    ],
    fargate: [
      "bridge, as a container",
      `${MONTH_HOURS} h × (${vcpus} vCPU × $${PRICES.vcpuHour} + ${gb(serviceMb)} GB × $${PRICES.gbHour})`,
      MONTH_HOURS * (vcpus * PRICES.vcpuHour + gb(serviceMb) * PRICES.gbHour),
    ],
  };
}

/** Prints what a million tasks of one step cost by public prices, with the arithmetic. */
export function costOfMillion(
  out: Recording,
  { task, step }: { readonly task: Units; readonly step: Units },
): void {
  const rows = requestsOfMillion(task);
  const sum = rows.reduce((all, [, , amount]) => all + amount, 0);
  out.table(
    [`A MILLION TASKS OF ONE STEP, ${PRICES.region}, ${PRICES.date}`, "ARITHMETIC", "US$"],
    [...rows, ["all of them", "", sum] as const].map(([what, how, amount]) => [what, how, dollars(amount)]),
  );
  const [, workHow, tenMs] = tenMsOf("work");
  const [, bridgeHow, listening] = bridgeMonth().lambda;
  out.note(
    [
      `Each further step: ${step.writes} write units, ${dollars(step.writes * PRICES.writeUnits)} a million.`,
      `In addition, the time that handlers take: ${dollars(tenMs)} for each 10 ms of a million tasks (${workHow}).`,
      `In addition, whether there are tasks or not, the bridge: ${dollars(listening)} a month (${bridgeHow}).`,
      "docs/cost.md has what else is paid for: logs, metrics, alarms, the network.",
      "By the lists at aws.amazon.com (DynamoDB on-demand, SQS, Lambda on Arm), without the free tiers. Published by others:",
      "  AWS Lambda durable functions $8.00 a million operations and $0.25 a GB written; AWS Step Functions Standard $25",
      "  a million transitions, Express $1 a million executions and their time; Lambda itself is extra with each.",
    ].join("\n"),
  );
}
