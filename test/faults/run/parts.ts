import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { S3Client } from "@aws-sdk/client-s3";
import { ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { awsSettings } from "../../../infra/local/aws.ts";
import { depth } from "../../../shared/queues/index.ts";
import { dynamoStore } from "../../../shared/tasks/dynamodb-store.ts";
import { dueShards } from "../../../shared/tasks/items.ts";
import type { Store } from "../../../shared/tasks/store.ts";
import { s3Values, type Values } from "../../../shared/tasks/values.ts";
import type { Ready } from "./host-messages.ts";

/** The real parts of a running host, past the proxies. */
export class RealParts implements Disposable {
  readonly store: Store;
  readonly values: Values;
  readonly #dynamodb: DynamoDBClient;
  readonly #sqs: SQSClient;
  readonly #s3: S3Client;
  readonly #queueUrls: Ready["queueUrls"];

  constructor({ endpoints, tableName, bucketName, queueUrls }: Ready) {
    this.#dynamodb = new DynamoDBClient(awsSettings(endpoints.dynamodb));
    this.#sqs = new SQSClient(awsSettings(endpoints.sqs));
    this.#s3 = new S3Client({ ...awsSettings(endpoints.s3), forcePathStyle: true });
    this.#queueUrls = queueUrls;
    this.store = dynamoStore({ client: DynamoDBDocumentClient.from(this.#dynamodb), table: tableName });
    this.values = s3Values({ bucket: bucketName, client: async () => this.#s3 });
  }

  /** The tasks that somebody must still look at. */
  async due(): Promise<string[]> {
    const due: string[] = [];
    for (const shard of dueShards)
      for await (const taskId of this.store.due(shard, Number.MAX_SAFE_INTEGER)) due.push(taskId);
    return due;
  }

  /** How many messages each queue holds, those that are being worked on and those that are delayed included. */
  async depths(): Promise<Record<string, number>> {
    const names = Object.keys(this.#queueUrls).filter((name) => !isDead(name));
    const counts = await Promise.all(names.map((name) => depth(this.#sqs, this.#queueUrls[name] ?? "")));
    return Object.fromEntries(names.map((name, index) => [name, counts[index] ?? 0]));
  }

  /** What is in the dead-letter queues. It is not seen a second time. */
  async deadLetters(): Promise<{ queue: string; body: string }[]> {
    const letters: { queue: string; body: string }[] = [];
    for (const [queue, QueueUrl] of Object.entries(this.#queueUrls).filter(([name]) => isDead(name)))
      for (;;) {
        const receive = new ReceiveMessageCommand({
          QueueUrl,
          MaxNumberOfMessages: 10,
          VisibilityTimeout: 600,
        });
        const { Messages = [] } = await this.#sqs.send(receive);
        if (Messages.length === 0) break;
        letters.push(...Messages.map(({ Body = "" }) => ({ queue, body: Body })));
      }
    return letters;
  }

  [Symbol.dispose](): void {
    for (const client of [this.#dynamodb, this.#sqs, this.#s3]) client.destroy();
  }
}

function isDead(queue: string): boolean {
  return queue.endsWith("dead");
}
