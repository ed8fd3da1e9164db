/**
 * Our own metrics, all of them: what is counted or measured by any function has its name here, and docs/metrics.md
 * explains each. They are published in the namespace of the stack (infra/observability), every one with the dimension
 * `service`, the function that has measured it.
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
  readonly meaning: string;
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
    meaning: "tasks decided by `admit`: `accepted`, or the code of the rejection",
  },
  TasksEnded: {
    ...count,
    dimensions: OUTCOME,
    also: [NONE],
    meaning: "tasks that have ended: `completed`, `canceled`, or the code of the failure",
  },
  TasksTakenOver: {
    ...count,
    dimensions: RUNTIME,
    meaning: "claims after the first: waits, and workers lost",
  },
  TasksRunning: { ...gauge, dimensions: RUNTIME, meaning: "tasks that hold a slot of their agent" },
  TasksQueued: { ...gauge, dimensions: RUNTIME, meaning: "tasks that wait for a slot of their agent" },
  TimeToAccepted: {
    ...time,
    dimensions: RUNTIME,
    also: [NONE],
    meaning: "from the message's time on its stream until `accepted` is on its own",
  },
  TimeToResult: {
    ...time,
    dimensions: RUNTIME,
    also: [NONE],
    meaning: "from the message's time on its stream until the task's last event is on its own",
  },
  // Steps.
  StepDuration: {
    ...time,
    dimensions: RUNTIME,
    also: [NONE],
    meaning: "a `run` step, from its first attempt to its result, pauses included",
  },
  StepsRetried: { ...count, dimensions: RUNTIME, meaning: "attempts of `run` steps after the first" },
  QuestionsAsked: {
    ...count,
    dimensions: RUNTIME,
    also: [NONE],
    meaning: "questions and approvals put to a requester",
  },
  QuestionsAnswered: { ...count, dimensions: RUNTIME, meaning: "answers that a requester has given" },
  DelegationsEnded: { ...count, dimensions: OUTCOME, meaning: "tasks handed on that are over, by how" },
  ChoicesRefused: { ...count, dimensions: OUTCOME, meaning: "requests for whom nobody was chosen, by why" },
  RefusalsEscalated: {
    ...count,
    dimensions: OUTCOME,
    also: [NONE],
    meaning: "refusals of one kind that came again and again: once for all of half an hour",
  },
  CircuitsOpened: {
    ...count,
    dimensions: NONE,
    meaning: "agents that failed again and again, and are left alone for a minute",
  },
  // What agents say of themselves (docs/hitl.md).
  TaskCostUsd: { ...sum, dimensions: RUNTIME, meaning: "what tasks have cost, in US dollars" },
  TokensUsed: { ...count, dimensions: RUNTIME, meaning: "tokens that models have read and written" },
  ToolCalls: { ...count, dimensions: RUNTIME, meaning: "tools that were called" },
  WorldstateDeltas: { ...count, dimensions: RUNTIME, meaning: "changes that were made in the world" },
  Confidence: {
    ...share,
    dimensions: RUNTIME,
    meaning: "how sure the agent was of a task that has ended, from 0 to 1",
  },
  SureFailures: {
    ...count,
    dimensions: RUNTIME,
    meaning: "tasks that failed though their agent was sure, at 0.8 and more",
  },
  // Events.
  UnpublishedAge: {
    ...time,
    dimensions: NONE,
    meaning: "how long the oldest event has waited for its stream, in the deployment's own time",
  },
  // Messages.
  MessagesForwarded: {
    ...count,
    dimensions: NONE,
    meaning: "messages that a run of the bridge has put on the queues; told by every run, as 0 too",
  },
  MessagesNotForwarded: {
    ...count,
    dimensions: NONE,
    meaning: "messages that the bridge gave back to JetStream",
  },
  MessagesRedelivered: {
    ...count,
    dimensions: NONE,
    meaning: "of those forwarded, the ones delivered before",
  },
  MessagesPending: { ...gauge, dimensions: NONE, meaning: "messages that no durable of ours was given yet" },
  ConsumerPending: {
    ...gauge,
    dimensions: CONSUMER,
    meaning: "`num_pending` of a durable: messages not delivered yet; told where there are any",
  },
  ConsumerAckPending: {
    ...gauge,
    dimensions: CONSUMER,
    meaning: "`num_ack_pending` of a durable: delivered and not acknowledged; told where there are any",
  },
  ConsumerRedelivered: {
    ...gauge,
    dimensions: CONSUMER,
    meaning: "`num_redelivered` of a durable: of those, delivered more than once; told where there are any",
  },
  MessagesGivenBack: {
    ...count,
    dimensions: NONE,
    meaning: "messages given back because a part was out of reach",
  },
  MessagesTerminated: {
    ...count,
    dimensions: NONE,
    meaning: "messages that cannot be answered, and were terminated",
  },
  MessagesGone: {
    ...count,
    dimensions: NONE,
    meaning: "messages that left their stream before they were decided",
  },
  MessagesPoisonous: {
    ...count,
    dimensions: NONE,
    meaning: "messages that ended their function on every receive",
  },
  AcksUnconfirmed: {
    ...count,
    dimensions: NONE,
    meaning: "acknowledgements that the server did not confirm",
  },
  // The machinery.
  TasksDue: { ...count, dimensions: NONE, meaning: "due tasks that a run of `sweep` looked at" },
  TasksOffered: { ...count, dimensions: NONE, meaning: "of those, the ones offered to the workers" },
  SweepFailures: { ...count, dimensions: NONE, meaning: "due tasks that could not be attended to" },
  // Cards.
  CardAge: {
    ...time,
    dimensions: NONE,
    meaning:
      "how old the oldest of our cards was when a run of `cards` came to put it again, in the deployment's own time; one that was not there, or cannot be put, counts as 180 s old",
  },
  CardsFailed: { ...count, dimensions: NONE, meaning: "cards that a run of `cards` could not put" },
  CardsWithheld: {
    ...count,
    dimensions: NONE,
    meaning:
      "cards that were not put, since some reader would refuse them or the agent's policy in the table cannot be read, and A2A cards that cannot be signed",
  },
  CardsForeign: {
    ...count,
    dimensions: NONE,
    meaning: "cards under our agents' ids that another stack, or somebody else, had put",
  },
  // Peers and remote agents.
  PeersLive: { ...gauge, dimensions: NONE, meaning: "peers on NATS that are there" },
  PeersStale: { ...gauge, dimensions: NONE, meaning: "peers on NATS that are known, and not there" },
  PeersAmiss: { ...gauge, dimensions: NONE, meaning: "records in the bucket of cards that are none" },
  RemotesRefreshed: {
    ...count,
    dimensions: NONE,
    meaning: "cards of remote agents that were asked for and had, changed or not",
  },
  RemotesFailed: {
    ...count,
    dimensions: NONE,
    meaning: "cards of remote agents that were asked for in vain",
  },
  RemoteSkillsAdded: { ...count, dimensions: NONE, meaning: "skills that new cards of remote agents have" },
  RemoteSkillsRemoved: { ...count, dimensions: NONE, meaning: "skills that they have no more" },
  RemotesStale: {
    ...gauge,
    dimensions: NONE,
    meaning: "remote agents whose card was asked for in vain three times in a row, or more",
  },
  RemotesUnreachable: {
    ...gauge,
    dimensions: NONE,
    meaning: "remote agents that did not answer when they were last looked after",
  },
  RemoteLatency: { ...time, dimensions: NONE, meaning: "until a remote agent that is looked after answers" },
  RemoteCardAge: {
    ...time,
    dimensions: NONE,
    meaning:
      "how long ago the card of a remote agent was last had, the longest of all, in the deployment's own time; one that may be kept for an hour is not asked for before",
  },
  PeerRoundsFailed: {
    ...count,
    dimensions: ["round"],
    meaning: "looks for peers (`look`) and rounds through the remote agents that have failed",
  },
  RuntimesWithoutConsumers: {
    ...count,
    dimensions: NONE,
    meaning: "agents whose durables could not be had at the start of a run of the bridge",
  },
  BridgeRunsFailed: { ...count, dimensions: NONE, meaning: "runs of the bridge as a service that failed" },
  NatsDisconnects: { ...count, dimensions: NONE, meaning: "connections to NATS that were lost while in use" },
  RequestsThrottled: {
    ...count,
    dimensions: ["operation"],
    meaning: "requests that DynamoDB throttled, those included that succeeded when repeated",
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
