import { FUNCTION_SIZES } from "../../infra/sizes.ts";
import type { Recording } from "./recording.ts";
import type { Units } from "./steps.ts";

/** List prices in US dollars, without a free tier. */
const PRICES = {
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
} as const;

/** Send, receive and delete, if no two messages share a request. */
const SQS_REQUESTS = 3;
/** One to `admit`, one to `work`. */
const MESSAGES = 2;
const MONTH_SEC = 30 * 86_400;

const MB_PER_GB = 1_024;
const MILLION = 1_000_000;

const dollars = (amount: number) => `$${amount.toFixed(2)}`;

/** Prints what a million tasks of one step cost by public prices, with the arithmetic. */
export function costOfMillion(
  out: Recording,
  { task, step }: { readonly task: Units; readonly step: Units },
): void {
  const { date, region, writeUnits, readUnits, sqsRequests, invocations, gbSecond } = PRICES;
  const row = (what: string, million: number, price: number, unit: string) =>
    [what, `${million} M ${unit} × $${price} a million`, million * price] as const;
  const rows = [
    row("DynamoDB, writes", task.writes, writeUnits, "write units"),
    row("DynamoDB, reads", task.reads, readUnits, "read units"),
    row("SQS", MESSAGES * SQS_REQUESTS, sqsRequests, "requests"),
    row("Lambda, invocations", MESSAGES, invocations, "invocations"),
  ];
  const sum = rows.reduce((all, [, , amount]) => all + amount, 0);
  out.table(
    [`A MILLION TASKS OF ONE STEP, ${region}, ${date}`, "ARITHMETIC", "US$"],
    [...rows, ["all of them", "", sum] as const].map(([what, how, amount]) => [what, how, dollars(amount)]),
  );
  const { bridge, work } = FUNCTION_SIZES;
  const gb = (mb: number) => mb / MB_PER_GB;
  const tenMs = gb(work.memoryMb) * 0.01 * MILLION * gbSecond;
  const listening = gb(bridge.memoryMb) * MONTH_SEC * gbSecond;
  out.note(
    [
      `Each further step: ${step.writes} write units, ${dollars(step.writes * writeUnits)} a million.`,
      `In addition, the time that handlers take: ${dollars(tenMs)} for each 10 ms of a million tasks`,
      `  (${work.memoryMb} MB × 10 ms × 1 M × $${gbSecond} a GB-second).`,
      `In addition, whether there are tasks or not, the bridge: ${dollars(listening)} a month`,
      `  (${bridge.memoryMb} MB × ${MONTH_SEC} s × $${gbSecond} a GB-second).`,
      "By the lists at aws.amazon.com (DynamoDB on-demand, SQS, Lambda on Arm), without the free tiers. Published by others:",
      "  AWS Lambda durable functions $8.00 a million operations and $0.25 a GB written; AWS Step Functions Standard $25",
      "  a million transitions, Express $1 a million executions and their time; Lambda itself is extra with each.",
    ].join("\n"),
  );
}
