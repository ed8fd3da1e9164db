/**
 * Our own metrics, all of them: what is counted or measured by any function has its name here, and docs/metrics.md
 * explains each (meanings.ts). They are published in the namespace of the stack (infra/observability), every one with
 * the dimension `service`, the function that has measured it.
 *
 * Dimensions have few values, for each combination is a metric that is paid for: an id never is one.
 */

/** What a metric is counted in (CloudWatch API: MetricDatum, Unit). */
export type MetricUnitName = "Count" | "Milliseconds" | "None";

export interface MetricDefinition {
  readonly unit: MetricUnitName;
  /** `count`: what happened, to be summed up. `gauge`: how much there is. `time`: how long something took. */
  readonly kind: "count" | "gauge" | "time";
  /** Whose values tell one from another, beside `service`. */
  readonly dimensions: readonly string[];
  /** The fewer dimensions under which it is published as well: alarms cannot add up over the values of one. */
  readonly also?: readonly (readonly string[])[];
}

const count = { unit: "Count", kind: "count" } as const;
const gauge = { unit: "Count", kind: "gauge" } as const;
const sum = { unit: "None", kind: "count" } as const;
const share = { unit: "None", kind: "gauge" } as const;
const time = { unit: "Milliseconds", kind: "time" } as const;

const NONE = [] as const;
const RUNTIME = ["runtime"] as const;
const OUTCOME = ["runtime", "outcome"] as const;
const CONSUMER = ["consumer"] as const;

export const METRICS = {
  // Tasks.
  TasksDecided: {
    ...count,
    dimensions: OUTCOME,
    also: [["outcome"]],
  },
  TasksEnded: {
    ...count,
    dimensions: OUTCOME,
    also: [NONE],
  },
  TasksTakenOver: {
    ...count,
    dimensions: RUNTIME,
  },
  TasksRunning: { ...gauge, dimensions: RUNTIME },
  TasksQueued: { ...gauge, dimensions: RUNTIME },
  TimeToAccepted: {
    ...time,
    dimensions: RUNTIME,
    also: [NONE],
  },
  TimeToResult: {
    ...time,
    dimensions: RUNTIME,
    also: [NONE],
  },
  // Steps.
  StepDuration: {
    ...time,
    dimensions: RUNTIME,
    also: [NONE],
  },
  StepsRetried: { ...count, dimensions: RUNTIME },
  QuestionsAsked: {
    ...count,
    dimensions: RUNTIME,
    also: [NONE],
  },
  QuestionsAnswered: { ...count, dimensions: RUNTIME },
  DelegationsEnded: { ...count, dimensions: OUTCOME },
  ChoicesRefused: { ...count, dimensions: OUTCOME },
  RefusalsEscalated: {
    ...count,
    dimensions: OUTCOME,
    also: [NONE],
  },
  CircuitsOpened: {
    ...count,
    dimensions: NONE,
  },
  // What agents say of themselves (docs/hitl.md).
  TaskCostUsd: { ...sum, dimensions: RUNTIME },
  TokensUsed: { ...count, dimensions: RUNTIME },
  ToolCalls: { ...count, dimensions: RUNTIME },
  WorldstateDeltas: { ...count, dimensions: RUNTIME },
  Confidence: {
    ...share,
    dimensions: RUNTIME,
  },
  SureFailures: {
    ...count,
    dimensions: RUNTIME,
  },
  // Events.
  UnpublishedAge: {
    ...time,
    dimensions: NONE,
  },
  // Messages.
  MessagesForwarded: {
    ...count,
    dimensions: NONE,
  },
  MessagesNotForwarded: {
    ...count,
    dimensions: NONE,
  },
  MessagesRedelivered: {
    ...count,
    dimensions: NONE,
  },
  MessagesPending: { ...gauge, dimensions: NONE },
  ConsumerPending: {
    ...gauge,
    dimensions: CONSUMER,
  },
  ConsumerAckPending: {
    ...gauge,
    dimensions: CONSUMER,
  },
  ConsumerRedelivered: {
    ...gauge,
    dimensions: CONSUMER,
  },
  MessagesGivenBack: {
    ...count,
    dimensions: NONE,
  },
  MessagesTerminated: {
    ...count,
    dimensions: NONE,
  },
  MessagesGone: {
    ...count,
    dimensions: NONE,
  },
  MessagesPoisonous: {
    ...count,
    dimensions: NONE,
  },
  AcksUnconfirmed: {
    ...count,
    dimensions: NONE,
  },
  // The machinery.
  TasksDue: { ...count, dimensions: NONE },
  TasksOffered: { ...count, dimensions: NONE },
  SweepFailures: { ...count, dimensions: NONE },
  // Cards.
  CardAge: {
    ...time,
    dimensions: NONE,
  },
  CardsFailed: { ...count, dimensions: NONE },
  CardsWithheld: {
    ...count,
    dimensions: NONE,
  },
  CardsForeign: {
    ...count,
    dimensions: NONE,
  },
  // Peers and remote agents.
  PeersLive: { ...gauge, dimensions: NONE },
  PeersStale: { ...gauge, dimensions: NONE },
  PeersAmiss: { ...gauge, dimensions: NONE },
  RemotesRefreshed: {
    ...count,
    dimensions: NONE,
  },
  RemotesFailed: {
    ...count,
    dimensions: NONE,
  },
  RemoteSkillsAdded: { ...count, dimensions: NONE },
  RemoteSkillsRemoved: { ...count, dimensions: NONE },
  RemotesStale: {
    ...gauge,
    dimensions: NONE,
  },
  RemotesUnreachable: {
    ...gauge,
    dimensions: NONE,
  },
  RemoteLatency: { ...time, dimensions: NONE },
  RemoteCardAge: {
    ...time,
    dimensions: NONE,
  },
  PeerRoundsFailed: {
    ...count,
    dimensions: ["round"],
  },
  RuntimesWithoutConsumers: {
    ...count,
    dimensions: NONE,
  },
  BridgeRunsFailed: { ...count, dimensions: NONE },
  NatsDisconnects: { ...count, dimensions: NONE },
  RequestsThrottled: {
    ...count,
    dimensions: ["operation"],
  },
} as const satisfies Record<string, MetricDefinition>;

type Catalogue = typeof METRICS;
export type MetricName = keyof Catalogue;

/** The metrics of a kind, with dimensions of their own or without. */
type Named<Kind extends MetricDefinition["kind"], Of extends "plain" | "dimensional"> = {
  [M in MetricName]: Catalogue[M]["kind"] extends Kind
    ? Catalogue[M]["dimensions"] extends typeof NONE
      ? Of extends "plain"
        ? M
        : never
      : Of extends "dimensional"
        ? M
        : never
    : never;
}[MetricName];

export type PlainCount = Named<"count", "plain">;
export type DimensionalCount = Named<"count", "dimensional">;
export type PlainMeasure = Named<"gauge" | "time", "plain">;
export type DimensionalMeasure = Named<"gauge" | "time", "dimensional">;

/** A value for each dimension of a metric. */
export type DimensionsOf<M extends MetricName> = Readonly<Record<Catalogue[M]["dimensions"][number], string>>;

/** The sets of dimensions under which a metric is published, its own first. */
export function dimensionSets(metric: MetricName): readonly (readonly string[])[] {
  const { dimensions, also = [] }: MetricDefinition = METRICS[metric];
  return [dimensions, ...also];
}
