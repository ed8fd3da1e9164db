import { Agent, request } from "node:http";
import { DynamoDBClient, PutItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import {
  DeleteMessageBatchCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import * as z from "zod";
import { busyAwsSettings } from "../../../infra/local/busy-aws.ts";

const LONG_POLL_SEC = 20;

/** A message of a queue. */
export interface Received {
  readonly body: string;
  readonly handle: string;
}

/** The calls that the floor makes of DynamoDB and SQS, with nothing around them. */
export interface Client {
  /** @param request as it goes over the wire */
  put(request: string): Promise<void>;
  update(request: string): Promise<void>;
  send(queueUrl: string, bodies: readonly string[]): Promise<void>;
  /** Waits for messages, and gives at most so many. */
  receive(queueUrl: string, most: number): Promise<Received[]>;
  remove(queueUrl: string, handles: readonly string[]): Promise<void>;
}

/** Where they go. */
export interface Targets {
  readonly dynamodb: string;
  readonly sqs: string;
}

const entries = (bodies: readonly string[]) =>
  bodies.map((MessageBody, at) => ({ Id: String(at), MessageBody }));
const removals = (handles: readonly string[]) =>
  handles.map((ReceiptHandle, at) => ({ Id: String(at), ReceiptHandle }));

/**
 * Through the AWS SDK, as the product does.
 *
 * @param further settings of the queues' client; default: as the functions have it
 */
export function sdkClient({ dynamodb, sqs }: Targets): Client {
  const table = new DynamoDBClient(busyAwsSettings(dynamodb));
  const queues = new SQSClient(busyAwsSettings(sqs));
  return {
    async put(request) {
      await table.send(new PutItemCommand(JSON.parse(request)));
    },
    async update(request) {
      await table.send(new UpdateItemCommand(JSON.parse(request)));
    },
    async send(QueueUrl, bodies) {
      await queues.send(new SendMessageBatchCommand({ QueueUrl, Entries: entries(bodies) }));
    },
    async receive(QueueUrl, MaxNumberOfMessages) {
      const { Messages = [] } = await queues.send(
        new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages, WaitTimeSeconds: LONG_POLL_SEC }),
      );
      return Messages.map(({ Body = "", ReceiptHandle = "" }) => ({ body: Body, handle: ReceiptHandle }));
    },
    async remove(QueueUrl, handles) {
      await queues.send(new DeleteMessageBatchCommand({ QueueUrl, Entries: removals(handles) }));
    },
  };
}

const messages = z.object({
  Messages: z.array(z.object({ Body: z.string(), ReceiptHandle: z.string() })).nullish(),
});

/** Bare requests over kept connections: the least that Node.js needs for them. The stand-ins check no signature. */
export function bareClient({ dynamodb, sqs }: Targets): Client {
  const agent = new Agent({ keepAlive: true });
  const toTable = (operation: string, body: string) =>
    post(agent, dynamodb, `DynamoDB_20120810.${operation}`, body);
  const toQueue = (operation: string, body: object) =>
    post(agent, sqs, `AmazonSQS.${operation}`, JSON.stringify(body));
  return {
    async put(request) {
      await toTable("PutItem", request);
    },
    async update(request) {
      await toTable("UpdateItem", request);
    },
    async send(QueueUrl, bodies) {
      await toQueue("SendMessageBatch", { QueueUrl, Entries: entries(bodies) });
    },
    async receive(QueueUrl, MaxNumberOfMessages) {
      const asked = { QueueUrl, MaxNumberOfMessages, WaitTimeSeconds: LONG_POLL_SEC };
      const { Messages } = messages.parse(JSON.parse(await toQueue("ReceiveMessage", asked)));
      return (Messages ?? []).map(({ Body, ReceiptHandle }) => ({ body: Body, handle: ReceiptHandle }));
    },
    async remove(QueueUrl, handles) {
      await toQueue("DeleteMessageBatch", { QueueUrl, Entries: removals(handles) });
    },
  };
}

/** Without it dynoxide refuses a request; it looks at no more than its form. */
const AUTHORIZATION =
  "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0";

function post(agent: Agent, url: string, target: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = {
      "content-type": "application/x-amz-json-1.0",
      "content-length": Buffer.byteLength(body),
      "x-amz-target": target,
      "x-amz-date": "20260101T000000Z",
      authorization: AUTHORIZATION,
    };
    const outgoing = request(url, { method: "POST", agent, headers }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("error", reject);
      answer.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        if (answer.statusCode === 200) resolve(text);
        else reject(new Error(`${target}: ${answer.statusCode} ${text}`));
      });
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
