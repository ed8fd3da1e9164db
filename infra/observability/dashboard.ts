import { Duration, Stack } from "aws-cdk-lib";
import {
  type Alarm,
  AlarmStatusWidget,
  Dashboard,
  GraphWidget,
  type IMetric,
  type IWidget,
  MathExpression,
  Stats,
  TextWidget,
} from "aws-cdk-lib/aws-cloudwatch";
import type { Construct } from "constructs";
import type { SluiceFunction } from "../functions.ts";
import type { Parts } from "../parts.ts";
import { QUEUE_NAMES } from "../sizes.ts";
import { MINUTE, type OwnMetrics } from "./metrics.ts";

/** Of a dashboard's 24 columns. */
const THIRD = 8;
const WHOLE = 24;
const HEIGHT = 6;
const PERCENTILES = ["p50", "p95", "p99"] as const;

export interface DashboardProps {
  readonly own: OwnMetrics;
  readonly parts: Parts;
  readonly functions: readonly SluiceFunction[];
  readonly alarms: readonly Alarm[];
}

/** The stack's page: how tasks fare, for how long, what waits where, and what it costs. */
export function dashboard(scope: Construct, id: string, props: DashboardProps): Dashboard {
  const { own, parts, functions, alarms } = props;
  return new Dashboard(scope, id, {
    // An account has its dashboards for all regions together (CloudWatch API Reference, PutDashboard).
    dashboardName: `${Stack.of(scope).stackName}-${Stack.of(scope).region}`,
    defaultInterval: Duration.hours(3),
    widgets: [
      [new AlarmStatusWidget({ alarms: [...alarms], title: "Alarms", width: WHOLE, height: 4 })],
      ...tasks(own),
      ...times(own),
      ...told(own),
      ...messages(own, parts),
      ...machinery(own, parts, functions),
      ...peers(own),
      ...costs(own, parts, functions),
    ],
  });
}

function heading(text: string): IWidget[] {
  return [new TextWidget({ markdown: `## ${text}`, width: WHOLE, height: 1 })];
}

function graph(title: string, left: readonly IMetric[], stacked = false): IWidget {
  return new GraphWidget({ title, left: [...left], stacked, width: THIRD, height: HEIGHT });
}

function tasks(own: OwnMetrics): IWidget[][] {
  return [
    heading("Tasks"),
    [
      graph("Accepted, by agent", [own.search("TasksDecided", { only: 'outcome="accepted"' })], true),
      graph(
        "Rejected, by reason",
        [own.search("TasksDecided", { by: ["outcome"], only: 'NOT outcome="accepted"' })],
        true,
      ),
      graph("Ended, by agent and outcome", [own.search("TasksEnded")], true),
    ],
    [
      graph("Running, by agent", [own.search("TasksRunning")]),
      graph("Waiting for a slot, by agent", [own.search("TasksQueued")]),
      graph("Waiting for a person: asked, answered", [
        own.search("QuestionsAsked"),
        own.search("QuestionsAnswered"),
      ]),
    ],
    [
      graph("Handed on and over, by agent and outcome", [own.search("DelegationsEnded")], true),
      graph("Not handed on, by reason", [own.search("ChoicesRefused", { by: ["outcome"] })], true),
      graph("Refused again and again; agents left alone", [
        own.of("work", "RefusalsEscalated"),
        own.of("work", "CircuitsOpened"),
      ]),
    ],
  ];
}

function times(own: OwnMetrics): IWidget[][] {
  const percentiles = (look: (statistic: string) => IMetric) => PERCENTILES.map(look);
  return [
    heading("Times"),
    [
      graph(
        "From publish to accepted",
        percentiles((statistic) => own.of("admit", "TimeToAccepted", { statistic, label: statistic })),
      ),
      graph(
        "From publish to result",
        percentiles((statistic) => own.of("work", "TimeToResult", { statistic, label: statistic })),
      ),
      graph("Steps, p95 by agent; attempts after the first", [
        own.search("StepDuration", { statistic: "p95" }),
        own.search("StepsRetried"),
      ]),
    ],
  ];
}

/** What agents say of themselves. */
function told(own: OwnMetrics): IWidget[][] {
  return [
    heading("As agents say"),
    [
      graph("Cost in US dollars, by agent", [own.search("TaskCostUsd")], true),
      graph("Tokens, by agent", [own.search("TokensUsed")], true),
      graph("Tools called, changes made", [own.search("ToolCalls"), own.search("WorldstateDeltas")]),
    ],
    [
      graph("Confidence, by agent", [own.search("Confidence", { statistic: Stats.AVERAGE })]),
      graph("Failed though sure", [own.search("SureFailures")], true),
    ],
  ];
}

function messages(own: OwnMetrics, { queues }: Parts): IWidget[][] {
  const shared = QUEUE_NAMES.map((name) => ({ name: name as string, pair: queues[name] }));
  const all = [...shared, ...queues.own.map(({ agentId, pair }) => ({ name: `work-${agentId}`, pair }))];
  const look = { period: MINUTE, statistic: Stats.MAXIMUM };
  return [
    heading("Messages"),
    [
      graph(
        "Age of the oldest",
        all.map(({ name, pair }) => pair.queue.metricApproximateAgeOfOldestMessage({ ...look, label: name })),
      ),
      graph(
        "In the queues",
        all.map(({ name, pair }) =>
          pair.queue.metricApproximateNumberOfMessagesVisible({ ...look, label: name }),
        ),
      ),
      graph(
        "Dead letters",
        all.map(({ name, pair }) =>
          pair.dead.metricApproximateNumberOfMessagesVisible({ ...look, label: name }),
        ),
      ),
    ],
    [
      graph("Durables: waiting, unacknowledged, redelivered", [
        own.search("ConsumerPending"),
        own.search("ConsumerAckPending"),
        own.search("ConsumerRedelivered"),
      ]),
      graph("Taken from NATS", [
        own.of("bridge", "MessagesForwarded"),
        own.of("bridge", "MessagesRedelivered"),
        own.of("bridge", "MessagesNotForwarded"),
      ]),
      graph("Events unpublished for", [
        own.of("sweep", "UnpublishedAge", { label: "seen by sweep" }),
        own.of("work", "UnpublishedAge", { label: "seen by work" }),
      ]),
    ],
  ];
}

function machinery(own: OwnMetrics, { storage }: Parts, functions: readonly SluiceFunction[]): IWidget[][] {
  const each = (of: (one: SluiceFunction) => IMetric) => functions.map(of);
  return [
    heading("Machinery"),
    [
      graph(
        "Errors",
        each(({ node, function: f }) => f.metricErrors({ period: MINUTE, label: node.id })),
      ),
      graph(
        "Throttles and concurrency",
        functions.flatMap(({ node, function: f }) => [
          f.metricThrottles({ period: MINUTE, label: `${node.id} throttled` }),
          f.metric("ConcurrentExecutions", { period: MINUTE, statistic: Stats.MAXIMUM, label: node.id }),
        ]),
      ),
      graph(
        "Duration, p95",
        each(({ node, function: f }) =>
          f.metricDuration({ period: MINUTE, statistic: "p95", label: node.id }),
        ),
      ),
    ],
    [
      graph("Connections to NATS lost", [own.search("NatsDisconnects")]),
      graph("DynamoDB requests throttled", [own.search("RequestsThrottled")]),
      graph("DynamoDB units", [
        storage.table.metricConsumedReadCapacityUnits({ period: MINUTE, label: "read" }),
        storage.table.metricConsumedWriteCapacityUnits({ period: MINUTE, label: "write" }),
      ]),
    ],
    [
      graph("Age of our cards", [own.of("cards", "CardAge")]),
      graph("Cards not put, withheld, another's", [
        own.of("cards", "CardsFailed"),
        own.of("cards", "CardsWithheld"),
        own.of("cards", "CardsForeign"),
      ]),
    ],
  ];
}

/** Who else there is, on NATS and over HTTP. */
function peers(own: OwnMetrics): IWidget[][] {
  return [
    heading("Peers and remote agents"),
    [
      graph("Peers on NATS: there, gone, no records", [
        own.of("cards", "PeersLive"),
        own.of("cards", "PeersStale"),
        own.of("cards", "PeersAmiss"),
      ]),
      graph("Remote agents' cards: had, failed, stale; skills that came and went", [
        own.of("cards", "RemotesRefreshed"),
        own.of("cards", "RemotesFailed"),
        own.of("cards", "RemotesStale"),
        own.of("cards", "RemoteSkillsAdded"),
        own.of("cards", "RemoteSkillsRemoved"),
      ]),
      graph("Remote agents that do not answer; rounds that failed", [
        own.of("cards", "RemotesUnreachable"),
        own.search("PeerRoundsFailed"),
      ]),
    ],
    [
      graph("Age of the oldest card of a remote agent", [own.of("cards", "RemoteCardAge")]),
      graph(
        "Until remote agents answer",
        PERCENTILES.map((statistic) => own.of("cards", "RemoteLatency", { statistic, label: statistic })),
      ),
    ],
  ];
}

/** What is paid for, by the task that has ended: invocations, GB-seconds, and write units. */
function costs(own: OwnMetrics, { storage }: Parts, functions: readonly SluiceFunction[]): IWidget[][] {
  const ended = own.of("work", "TasksEnded");
  const perTask = (label: string, sum: string, usingMetrics: Record<string, IMetric>) =>
    new MathExpression({
      expression: `(${sum}) / ended`,
      usingMetrics: { ...usingMetrics, ended },
      label,
      period: MINUTE,
    });
  const invocations = Object.fromEntries(
    functions.map(({ function: f }, i) => [`n${i}`, f.metricInvocations({ period: MINUTE })]),
  );
  const durations = Object.fromEntries(
    functions.map(({ function: f }, i) => [
      `d${i}`,
      f.metricDuration({ period: MINUTE, statistic: Stats.SUM }),
    ]),
  );
  const gbSeconds = functions.map(({ size }, i) => `d${i} * ${size.memoryMb / 1_024 / 1_000}`).join(" + ");
  return [
    heading("Cost drivers, by task"),
    [
      graph("Invocations", [perTask("invocations", Object.keys(invocations).join(" + "), invocations)]),
      graph("GB-seconds", [perTask("GB-seconds", gbSeconds, durations)]),
      graph("DynamoDB write units", [
        perTask("write units", "units", {
          units: storage.table.metricConsumedWriteCapacityUnits({ period: MINUTE }),
        }),
      ]),
    ],
  ];
}
