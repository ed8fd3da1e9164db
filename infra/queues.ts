import { Duration } from "aws-cdk-lib";
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { MAX_RECEIVES, type QueueName, visibilitySec } from "./sizes.ts";

/** A queue and the one where its messages end that nobody could take. */
export interface QueuePair {
  readonly queue: Queue;
  readonly dead: Queue;
}

/** The standard queues between the functions, encrypted, reachable by TLS only. */
export class Queues extends Construct {
  readonly pairs: Readonly<Record<QueueName, QueuePair>>;

  constructor(scope: Construct, id: string) {
    super(scope, id);
    this.pairs = {
      tasks: this.#pair("Tasks", "tasks"),
      controls: this.#pair("Controls", "controls"),
      work: this.#pair("Work", "work"),
    };
  }

  #pair(id: string, name: QueueName): QueuePair {
    const secure = { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true };
    // Kept for as long as SQS allows: a dead letter is there to be looked at.
    const dead = new Queue(this, `${id}Dead`, { ...secure, retentionPeriod: Duration.days(14) });
    const queue = new Queue(this, id, {
      ...secure,
      visibilityTimeout: Duration.seconds(visibilitySec(name)),
      retentionPeriod: Duration.days(4),
      receiveMessageWaitTime: Duration.seconds(20),
      deadLetterQueue: { queue: dead, maxReceiveCount: MAX_RECEIVES },
    });
    return { queue, dead };
  }
}
