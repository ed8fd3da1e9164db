import { ADMITTING_AT_ONCE } from "../shared/policy/concurrency.ts";
import type { FunctionName } from "./bundle.ts";

/** How large a function is and how long it may run. */
export interface FunctionSize {
  readonly memoryMb: number;
  readonly timeoutSec: number;
}

/**
 * Memory buys CPU in proportion, a whole one at 1,769 MB (Lambda Developer Guide, "Configure Lambda function memory").
 *
 * - `admit`, `control` and `events` parse a batch of ten and make a few requests for each: 512 MB. 30 s is twice what
 *   three tries of every request may take (functions/wiring.ts), and their queues' visibility follows from it.
 * - `sweep` does the like, but for as long as a minute: its successor starts then.
 * - `cards` makes a few requests for each agent, and tries again where NATS is away: shorter than the minute after which
 *   its successor starts, so that no two are at it.
 * - `bridge` outlives the minute after which its successor starts, so that somebody always listens.
 * - `work` runs the agents' own code, for as long as Lambda allows; more of either is an agent's `function`.
 */
export const FUNCTION_SIZES: Readonly<Record<FunctionName, FunctionSize>> = {
  bridge: { memoryMb: 512, timeoutSec: 75 },
  admit: { memoryMb: 512, timeoutSec: 30 },
  control: { memoryMb: 512, timeoutSec: 30 },
  events: { memoryMb: 512, timeoutSec: 30 },
  work: { memoryMb: 1024, timeoutSec: 900 },
  sweep: { memoryMb: 512, timeoutSec: 60 },
  cards: { memoryMb: 512, timeoutSec: 45 },
};

/** At most two: the one that pulls and its successor. */
export const BRIDGE_CONCURRENCY = 2;

/** How a queue is consumed. */
export interface Consumption {
  readonly consumer: FunctionName;
  readonly batchSize: number;
  /** How many invocations run at once at the most; SQS takes 2 to 1000. */
  readonly maxConcurrency: number;
}

/** One task an invocation: a handler that dies takes nobody else's task with it. */
export const CONSUMPTION = {
  tasks: { consumer: "admit", batchSize: 10, maxConcurrency: ADMITTING_AT_ONCE },
  controls: { consumer: "control", batchSize: 10, maxConcurrency: 2 },
  events: { consumer: "events", batchSize: 10, maxConcurrency: 4 },
  work: { consumer: "work", batchSize: 1, maxConcurrency: 50 },
} as const satisfies Record<string, Consumption>;
export type QueueName = keyof typeof CONSUMPTION;
export const QUEUE_NAMES = ["tasks", "controls", "events", "work"] as const satisfies readonly QueueName[];

/** How long the function may take that consumes a queue. */
export function consumerTimeoutSec(queue: QueueName): number {
  return FUNCTION_SIZES[CONSUMPTION[queue].consumer].timeoutSec;
}

/**
 * A message stays hidden for six times its consumer's timeout, so that throttled retries do not count as receives
 * (Lambda Developer Guide, "Using Lambda with Amazon SQS").
 */
export function visibilitySec(timeoutSec: number): number {
  return 6 * timeoutSec;
}

/** How long what a task left behind is kept after its end, in days. */
export const VALUES_KEPT_DAYS = 30;

/** The bridge as a service: the least that Fargate has (ECS Developer Guide, "Task CPU and memory"). */
export const BRIDGE_SERVICE_SIZE = { cpu: 256, memoryMb: 512 } as const;
