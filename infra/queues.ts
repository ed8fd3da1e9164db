import { Duration } from "aws-cdk-lib";
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { MAX_RECEIVES } from "../shared/tasks/messages.ts";
import { type QueueName, visibilitySec } from "./sizes.ts";

/** The queues between the functions. */
export type Queues = Readonly<Record<QueueName, QueuePair>>;

/** A standard queue and the one where its messages end that nobody could take; encrypted, reachable by TLS only. */
export class QueuePair extends Construct {
  readonly queue: Queue;
  readonly dead: Queue;

  constructor(scope: Construct, id: string, name: QueueName) {
    super(scope, id);
    const secure = { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true };
    // Kept for as long as SQS allows: a dead letter is there to be looked at.
    this.dead = new Queue(this, "Dead", { ...secure, retentionPeriod: Duration.days(14) });
    this.queue = new Queue(this, "Default", {
      ...secure,
      visibilityTimeout: Duration.seconds(visibilitySec(name)),
      retentionPeriod: Duration.days(4),
      receiveMessageWaitTime: Duration.seconds(20),
      deadLetterQueue: { queue: this.dead, maxReceiveCount: MAX_RECEIVES },
    });
  }
}
