import { Duration } from "aws-cdk-lib";
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { MAX_RECEIVES } from "../shared/tasks/messages.ts";
import { consumerTimeoutSec, type QueueName, visibilitySec } from "./sizes.ts";

/** The queues between the functions. */
export interface Queues extends Readonly<Record<QueueName, QueuePair>> {
  /** Those of the agents that have a work function of their own. */
  readonly own: readonly AgentQueue[];
}

/** Where the hints for a single agent's tasks go. */
export interface AgentQueue {
  readonly agentId: string;
  readonly runtime: string;
  readonly pair: QueuePair;
}

/** A standard queue and the one where its messages end that nobody could take; encrypted, reachable by TLS only. */
export class QueuePair extends Construct {
  readonly queue: Queue;
  readonly dead: Queue;

  /** @param timeoutSec how long the function may take that consumes it */
  constructor(scope: Construct, id: string, timeoutSec: number) {
    super(scope, id);
    const secure = { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true };
    // Kept for as long as SQS allows: a dead letter is there to be looked at.
    this.dead = new Queue(this, "Dead", { ...secure, retentionPeriod: Duration.days(14) });
    this.queue = new Queue(this, "Default", {
      ...secure,
      visibilityTimeout: Duration.seconds(visibilitySec(timeoutSec)),
      retentionPeriod: Duration.days(4),
      receiveMessageWaitTime: Duration.seconds(20),
      deadLetterQueue: { queue: this.dead, maxReceiveCount: MAX_RECEIVES },
    });
  }
}

/** The queues of the functions that every deployment has. */
export function sharedQueues(scope: Construct): Record<QueueName, QueuePair> {
  const pair = (id: string, name: QueueName) => new QueuePair(scope, id, consumerTimeoutSec(name));
  return {
    tasks: pair("Tasks", "tasks"),
    controls: pair("Controls", "controls"),
    events: pair("Events", "events"),
    work: pair("Work", "work"),
  };
}
