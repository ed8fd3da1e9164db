import type { Message, MessageAttributeValue } from "@aws-sdk/client-sqs";
import { type Forwarded, forwarded, type WorkHint, workHint } from "../../shared/tasks/messages.ts";
import { parseSubject, taskId, taskIdOf } from "../../shared/wire/index.ts";
import type { Pair } from "./pairs.ts";

/** A message that lies in a dead-letter queue, as far as it can be read. */
export interface Letter {
  /** SQS's id of the message; it is the one that the message had in its queue. */
  readonly id: string;
  readonly queue: Pair;
  /** By which SQS lets this receive of it be deleted. */
  readonly handle: string;
  readonly body: string;
  readonly attributes: Readonly<Record<string, MessageAttributeValue>>;
  /** How often it was received: in its queue, and since then by whoever looked (SQS API, ApproximateReceiveCount). */
  readonly receives: number;
  /** When it was put into its queue, in milliseconds since 1970. */
  readonly sentAt: number;
  /** What it carries from JetStream. */
  readonly forwarded?: Forwarded;
  /** What it says to `work`. */
  readonly hint?: WorkHint;
  readonly task?: string;
  /** The id of the peer's message, of a task. */
  readonly message?: string;
  readonly from?: string;
  readonly to?: string;
}

/** Reads what SQS gave; of a body that is none of ours only the body is known. */
export function letterOf(queue: Pair, message: Message): Letter {
  const { MessageId = "", ReceiptHandle = "", Body = "", Attributes = {}, MessageAttributes = {} } = message;
  return {
    id: MessageId,
    queue,
    handle: ReceiptHandle,
    body: Body,
    attributes: MessageAttributes,
    receives: Number(Attributes.ApproximateReceiveCount ?? 0),
    sentAt: Number(Attributes.SentTimestamp ?? 0),
    ...contentOf(Body),
  };
}

type Content = Pick<Letter, "forwarded" | "hint" | "task" | "message" | "from" | "to">;

function contentOf(body: string): Content {
  const json = jsonOf(body);
  const carried = forwarded().safeParse(json).data;
  if (carried !== undefined) return { forwarded: carried, ...addressOf(carried.subject) };
  const hint = workHint().safeParse(json).data;
  // Of what is no task's id no table can be asked, and no worker could (docs/wire.md, ids).
  if (hint === undefined || !taskId().safeParse(hint.taskId).success) return {};
  return { hint, task: hint.taskId, ...(hint.to !== undefined && { to: hint.to }) };
}

function addressOf(text: string): Content {
  const subject = parseSubject(text);
  if (subject === null || !("to" in subject)) return {};
  const { from, to } = subject;
  switch (subject.kind) {
    case "task":
      return { from, to, message: subject.messageId, task: taskIdOf(from, to, subject.messageId) };
    case "control":
      return { from, to, task: subject.taskId };
    case "event":
      return { from, to, task: subject.taskKey };
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
