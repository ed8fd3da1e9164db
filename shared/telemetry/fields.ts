/**
 * The fields of our log lines, and what each says; docs/metrics.md has the same list. Ids, counts and reasons: never a
 * payload, never a secret. An agent's own lines carry whatever fields its author gives them.
 */
export const LOG_FIELDS = {
  // Powertools' own.
  level: "DEBUG, INFO, WARN, ERROR or CRITICAL",
  message: "what has happened: always the same words for the same thing",
  service: "the function",
  timestamp: "when",
  function_request_id: "the invocation",
  // Who and what.
  taskId: "the task",
  messageId: "the message that asked for it, or the control",
  from: "its sender",
  to: "the agent's runtime",
  runtime: "an agent's runtime, where no task is meant",
  skill: "the skill that is asked for",
  traceparent: "W3C trace context, as the sender gave it",
  // How far.
  epoch: "which claim of the task this is",
  beat: "the last sign of life that was seen of its worker",
  revision: "the last event of the task, or the one that is meant",
  inLine: "the task waits for a slot",
  state: "the state that it ended in",
  code: "why it was rejected, or failed",
  why: "why a worker leaves a task, or for what an agent is chosen",
  costUsd: "what the task has cost, in US dollars, as its agent says",
  tokens: "tokens that its models have read and written",
  confidence: "how sure the agent is, from 0 to 1",
  toolCalls: "how many tools were called",
  worldstateDeltas: "how many changes it says that it has made",
  // Steps.
  step: "the step's name",
  attempt: "which attempt of it has failed",
  attempts: "how many attempts it took",
  ms: "how long it took, in milliseconds",
  executor: "to whom a task was handed on",
  passedOver: "who else could have been chosen, and why they were not",
  child: "its id there",
  control: "the kind of a control",
  ofHandler: "whether an error that nobody caught is an agent's",
  // Messages.
  stream: "the stream of a message",
  seq: "its sequence there",
  subject: "its subject",
  consumer: "the durable that it came by",
  deliveries: "how often JetStream has delivered it",
  redriven: "whether it was sent back from the dead letters",
  receives: "how often SQS has",
  nakMs: "after how many milliseconds it comes again",
  reason: "why it was terminated, a card withheld, or a remote agent's card or answer not had",
  retryAt: "when it is tried again; absent where it is not",
  sqsMessageId: "the record of a batch that has failed",
  queueUrl: "the queue that cannot be measured",
  forwarded: "messages that a run of the bridge has put on the queues",
  givenBack: "messages that it could not put there",
  redelivered: "of those forwarded, the ones delivered before",
  // Peers.
  remote: "a remote agent's name in `agents.yaml`",
  round: "what was not done: `look`, `refresh`, `probe` or `count`",
  added: "ids of skills that a remote agent's new card has, and the one before had not",
  removed: "ids of skills that it has no more",
  // Errors.
  errorName: "the error's name",
  errorMessage: "its message; of an agent's error only the name is told",
} as const;

export type LogField = keyof typeof LOG_FIELDS;
/** What a line says beside its message. */
export type LogFields = Readonly<Partial<Record<LogField, unknown>>>;
