import * as z from "zod";
import { parseSubject, taskIdOf } from "../../../shared/wire/index.ts";
import type { Part } from "./points.ts";

/** What the proxy reads of a request that writes. */
export interface Write {
  readonly kind: string;
  readonly tasks: readonly string[];
  /** Acknowledgement subjects that the request hands on, with their tasks. */
  readonly acks: readonly { readonly subject: string; readonly task: string }[];
  /** The task that the caller has just claimed. */
  readonly claims?: string;
}

export interface AwsRequest {
  readonly method: string;
  readonly path: string;
  /** The header `X-Amz-Target`. */
  readonly target: string | undefined;
  readonly body: Buffer;
}

/** A request as a write; undefined when it only reads. */
export function awsWrite(part: Part, request: AwsRequest): Write | undefined {
  if (part === "s3") return s3Write(request);
  const operation = request.target?.split(".")[1];
  if (part === "sqs") return sqsWrite(operation, request.body);
  return dynamoWrite(operation, request.body);
}

const text = z.object({ S: z.string() });
const key = z.object({ pk: text, sk: text });
const deletion = z.object({ Key: key });
const put = z.object({ Item: key.catchall(z.unknown()) });
const update = z.object({ Key: key, UpdateExpression: z.string() });
const checked = update.partial({ UpdateExpression: true });
const transaction = z.object({
  TransactItems: z.array(
    z.object({ Put: put.optional(), Update: update.optional(), ConditionCheck: checked.optional() }),
  ),
});

function dynamoWrite(operation: string | undefined, body: Buffer): Write | undefined {
  if (operation === "PutItem") {
    const { Item } = put.parse(JSON.parse(body.toString()));
    return { kind: `dynamodb PutItem ${itemOf(Item)}`, tasks: [Item.pk.S], acks: [] };
  }
  if (operation === "DeleteItem") {
    const { Key } = deletion.parse(JSON.parse(body.toString()));
    return { kind: `dynamodb DeleteItem ${Key.sk.S.split("#")[0]}`, tasks: [Key.pk.S], acks: [] };
  }
  if (operation === "TransactWriteItems") {
    const { TransactItems } = transaction.parse(JSON.parse(body.toString()));
    if (TransactItems.some(({ Put }) => Put?.Item.pk.S === CARDS)) return cardsWrite(operation);
    const heads = TransactItems.flatMap((part) => part.Update ?? part.ConditionCheck ?? []);
    const head = heads.find(({ Key }) => Key.sk.S === "head");
    return head && headWrite(operation, head);
  }
  return operation === "UpdateItem"
    ? headWrite(operation, update.parse(JSON.parse(body.toString())))
    : undefined;
}

/** The partition of what is noted of our cards. */
const CARDS = "cards";

function cardsWrite(operation: string): Write {
  return { kind: `dynamodb ${operation} cards`, tasks: [], acks: [] };
}

function headWrite(operation: string, { Key, UpdateExpression }: z.infer<typeof checked>): Write {
  if (Key.pk.S === CARDS) return cardsWrite(operation);
  const change = UpdateExpression === undefined ? "check" : changeOf(UpdateExpression);
  const write = { kind: `dynamodb ${operation} ${change}`, tasks: [Key.pk.S], acks: [] };
  return change === "claim" ? { ...write, claims: Key.pk.S } : write;
}

function itemOf(item: z.infer<typeof put>["Item"]): string {
  if (!item.sk.S.startsWith("e#")) return item.sk.S.split("#")[0] ?? "";
  const holds = ["claim", "control", "heard", "steps", "events", "end"].filter(
    (name) => item[name] !== undefined,
  );
  return `entry ${holds.join("+")}`;
}

function changeOf(expression: string): string {
  if (expression.includes("erased =")) return "erased";
  if (expression.includes("REMOVE #steps")) return expression.includes("#end =") ? "empty end" : "empty";
  if (expression.includes("epoch =")) return "claim";
  if (expression.includes("SET queued =")) return "queue";
  if (expression.includes("published =")) return expression.includes("state") ? "settled" : "published";
  if (expression.includes("dueAt =")) return "postpone";
  return expression.includes("beat =") ? "beat" : expression;
}

const batch = z.object({ QueueUrl: z.string(), Entries: z.array(z.object({ MessageBody: z.string() })) });
const single = z.object({ QueueUrl: z.string(), MessageBody: z.string() });
const sent = z.object({
  taskId: z.string().optional(),
  subject: z.string().optional(),
  ackSubject: z.string().optional(),
});

function sqsWrite(operation: string | undefined, body: Buffer): Write | undefined {
  if (operation !== "SendMessageBatch" && operation !== "SendMessage") return undefined;
  const request: unknown = JSON.parse(body.toString());
  const bodies =
    operation === "SendMessage"
      ? [single.parse(request).MessageBody]
      : batch.parse(request).Entries.map(({ MessageBody }) => MessageBody);
  const { QueueUrl } = z.object({ QueueUrl: z.string() }).parse(request);
  const messages = bodies.map((message) => sent.parse(JSON.parse(message)));
  const queue = QueueUrl.slice(QueueUrl.lastIndexOf("/") + 1);
  return {
    kind: `sqs send ${queue}`,
    tasks: messages.flatMap((message) => message.taskId ?? taskOf(message.subject) ?? []),
    acks: messages.flatMap(({ subject, ackSubject }) => {
      const task = taskOf(subject);
      return task === undefined || ackSubject === undefined ? [] : [{ subject: ackSubject, task }];
    }),
  };
}

/** The task of a subject: for an event that of its executor. */
function taskOf(subject: string | undefined): string | undefined {
  const parsed = subject === undefined ? null : parseSubject(subject);
  if (parsed?.kind === "task") return taskIdOf(parsed.from, parsed.to, parsed.messageId);
  if (parsed?.kind === "control") return parsed.taskId;
  return parsed?.kind === "event" ? parsed.taskKey : undefined;
}

function s3Write({ method, path }: AwsRequest): Write | undefined {
  if (method !== "PUT" && method !== "POST" && method !== "DELETE") return undefined;
  const task = /(task_[0-9a-f]{24})/.exec(path)?.[1];
  return { kind: `s3 ${method} value`, tasks: task === undefined ? [] : [task], acks: [] };
}
