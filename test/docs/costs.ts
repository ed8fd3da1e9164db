import { Template } from "aws-cdk-lib/assertions";
import * as z from "zod";
import { dimensionSets, METRICS, type MetricName } from "../../shared/telemetry/metrics.ts";
import {
  bridgeMonth,
  byMillion,
  dollars,
  MESSAGES,
  MONTH_HOURS,
  PRICES,
  type PriceRow,
  requestsOfMillion,
  TASK_LOG_BYTES,
  tenMsOf,
} from "../bench/prices.ts";
import { stackWith } from "../infra/support/stack.ts";
import type { Cell } from "../report/markdown.ts";
import { documentedCosts } from "../support/documented.ts";

/** What docs/cost.md says: counts that tests have measured (docs/table.md), sizes of the stack, and list prices. */
interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

/** The rows of docs/table.md whose counts the tests compare with the emulator's. */
const ONE_STEP = "with one step and no progress, from its admission to its end";
const ONE_STEP_LIMITED = "the same with `maxConcurrent` set";
const FURTHER = "each further step";
const WAIT = [FURTHER, "leaving a task that waits", "taking up a task again, after a wait or a death"];

function counted(what: string) {
  const units = documentedCosts().get(what);
  if (units === undefined) throw new Error(`docs/table.md has no row ${JSON.stringify(what)}`);
  return units;
}

/** A million tasks of one step, of an agent with a limit (the default) or without. */
export function millionTable(limited: boolean): Table {
  const rows = requestsOfMillion(counted(limited ? ONE_STEP_LIMITED : ONE_STEP)).filter(([, , of]) => of > 0);
  const sum = rows.reduce((all, [, , amount]) => all + amount, 0);
  return priced([...rows, ["**all of them**", "", sum]]);
}

/** What a million tasks cost besides, as they are. */
export function furtherTable(): Table {
  const { writes, reads } = counted(FURTHER);
  const wait = WAIT.map(counted);
  const sum = (kind: "writes" | "reads") => wait.reduce((all, of) => all + of[kind], 0);
  const gbOfLogs = (TASK_LOG_BYTES * 1_000_000) / 1e9;
  return priced([
    byMillion("each further step", writes + reads, PRICES.writeUnits, "write units"),
    [
      "each wait (`sleep`, `ask`): its step, leaving, and taking up again",
      `${sum("writes")} M write units × $${PRICES.writeUnits} + ${sum("reads")} M read units × $${PRICES.readUnits}`,
      sum("writes") * PRICES.writeUnits + sum("reads") * PRICES.readUnits,
    ],
    tenMsOf("work"),
    tenMsOf("admit"),
    ["logs, at the default level", `${gbOfLogs} GB × $${PRICES.logGb}`, gbOfLogs * PRICES.logGb],
    [
      "X-Ray, of 5 % of the invocations (and of one a second besides)",
      `${MESSAGES * 0.05} M traces × $${PRICES.traces} a million`,
      MESSAGES * 0.05 * PRICES.traces,
    ],
  ]);
}

/** What a month costs without a single task. */
export function monthTable(): Table {
  const hours = (count: number, price: number) => `${count} × ${MONTH_HOURS} h × $${price}`;
  const { lambda, fargate } = bridgeMonth();
  const metrics = alarmMetrics();
  const [perStack, perAgent] = ownMetrics();
  const queues = 4;
  // Lambda polls a queue by five connections, each for 20 s (Lambda Developer Guide, "Using Lambda with Amazon SQS").
  const polls = (queues * 5 * MONTH_HOURS * 3_600) / 20 / 1e6;
  const runs = (MONTH_HOURS * 60) / 1e6;
  const sweep = counted("each run of `sweep`");
  const cards = counted("each run of `cards` of one agent");
  return priced([
    lambda,
    fargate,
    byMillion(`${queues} queues that Lambda polls`, polls, PRICES.sqsRequests, "requests"),
    byMillion("`sweep`, read units", runs * sweep.reads, PRICES.readUnits, "read units"),
    byMillion("`cards` of one agent, read units", runs * cards.reads, PRICES.readUnits, "read units"),
    ["alarms", `${metrics} metrics × $${PRICES.alarmMetricMonth}`, metrics * PRICES.alarmMetricMonth],
    ["dashboard", "", PRICES.dashboardMonth],
    [
      "metrics of our own, all of them",
      `${perStack} × $${PRICES.metricMonth}`,
      perStack * PRICES.metricMonth,
    ],
    ["the same, of each agent", `${perAgent} × $${PRICES.metricMonth}`, perAgent * PRICES.metricMonth],
    ["the secret of NATS", "", PRICES.secretMonth],
    ["the secret of the signing key", "", PRICES.secretMonth],
    [
      "`network: { vpcId: new }`: NAT gateway and its address",
      `${hours(1, PRICES.natHour)} + ${hours(1, PRICES.addressHour)}`,
      MONTH_HOURS * (PRICES.natHour + PRICES.addressHour),
    ],
    ...(["lambda", "fargate"] as const).map((bridge): PriceRow => {
      const count = endpoints(bridge);
      return [
        `\`endpoints: true\` in two zones, bridge as ${bridge}`,
        hours(count * 2, PRICES.endpointHour),
        count * 2 * MONTH_HOURS * PRICES.endpointHour,
      ];
    }),
  ]);
}

function priced(rows: readonly PriceRow[]): Table {
  return {
    head: ["what", "arithmetic", "US$"],
    rows: rows.map(([what, how, amount]) => [what, how, dollars(amount)]),
  };
}

const alarm = z.object({
  Metrics: z.array(z.object({ MetricStat: z.unknown().optional() })).optional(),
});

/** How many metrics the alarms of a stack look at: each is paid for, those of an expression one by one. */
function alarmMetrics(): number {
  const alarms = Template.fromStack(stackWith()).findResources("AWS::CloudWatch::Alarm");
  return Object.values(alarms).reduce((sum, { Properties }) => {
    const { Metrics } = alarm.parse(Properties);
    return sum + (Metrics?.filter(({ MetricStat }) => MetricStat !== undefined).length ?? 1);
  }, 0);
}

/** How many metrics are paid for where each function's, outcome's and consumer's counts as one: of a stack, of an agent. */
function ownMetrics(): readonly [perStack: number, perAgent: number] {
  const sets = Object.keys(METRICS).flatMap((name) => dimensionSets(name as MetricName)); // as the catalogue's keys are
  const perAgent = sets.filter((set) => set.includes("runtime")).length;
  return [sets.length - perAgent, perAgent];
}

function endpoints(bridge: "lambda" | "fargate"): number {
  const cloud = { bridge, network: { vpcId: "new", endpoints: true } };
  const made = Template.fromStack(stackWith({ cloud })).findResources("AWS::EC2::VPCEndpoint");
  return Object.values(made).filter(({ Properties }) => Properties.VpcEndpointType === "Interface").length;
}
