import { setTimeout as sleep } from "node:timers/promises";
import {
  DeleteMessageBatchCommand,
  type Message,
  type MessageAttributeValue,
  ReceiveMessageCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import * as z from "zod";
import { messageOf } from "./errors.ts";
import { REGION } from "./intrinsics.ts";
import { Limiter } from "./limiter.ts";
import type { InvocationResult } from "./runtime-api.ts";
import type { MappingDeclaration } from "./stack.ts";

/** SQS quotas: the most that one request receives or deletes, and the longest poll. */
const MAX_BATCH = 10;
const LONG_POLL_SEC = 20;
/** What a mapping without `MaximumConcurrency` may come to. */
const UNBOUNDED = 1_000;
const DELETE_ATTEMPTS = 5;

export interface EventSourceOptions {
  readonly mapping: MappingDeclaration;
  readonly queueUrl: string;
  readonly client: SQSClient;
  readonly invoke: (payload: string) => Promise<InvocationResult>;
  readonly onTrouble: (message: string) => void;
}

/**
 * An event source mapping (AWS Lambda: "Using Lambda with Amazon SQS"): receives batches, invokes the function,
 * deletes what succeeded, and leaves the rest to the visibility timeout and the queue's redrive policy.
 */
export class EventSource {
  readonly #options: EventSourceOptions;
  readonly #slots: Limiter;
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<void>>();
  #loop: Promise<void> = Promise.resolve();

  constructor(options: EventSourceOptions) {
    this.#options = options;
    this.#slots = new Limiter(options.mapping.maximumConcurrency ?? UNBOUNDED);
  }

  start(): void {
    this.#loop = this.#poll();
  }

  /** Receives no more; waits no longer than `graceMs` for the batches that run. */
  async stop(graceMs: number): Promise<void> {
    this.#stop.abort();
    await Promise.race([
      Promise.all([this.#loop, ...this.#running]),
      sleep(graceMs, undefined, { ref: false }),
    ]);
  }

  async #poll(): Promise<void> {
    let failures = 0;
    while (!this.#stop.signal.aborted) {
      await this.#slots.acquire();
      try {
        const messages = await this.#receive();
        failures = 0;
        if (messages.length === 0) this.#slots.release();
        else this.#track(this.#process(messages).finally(() => this.#slots.release()));
      } catch (error) {
        this.#slots.release();
        if (this.#stop.signal.aborted) return;
        this.#options.onTrouble(`receiving from ${this.#options.mapping.queueName}: ${messageOf(error)}`);
        await sleep(Math.min(10_000, 200 * 2 ** failures++), undefined, { ref: false });
      }
    }
  }

  async #receive(): Promise<Message[]> {
    const { mapping, client, queueUrl } = this.#options;
    const messages: Message[] = [];
    for (;;) {
      const wanted = Math.min(MAX_BATCH, mapping.batchSize - messages.length);
      if (wanted <= 0) return messages;
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({
          QueueUrl: queueUrl,
          MaxNumberOfMessages: wanted,
          WaitTimeSeconds: messages.length === 0 ? LONG_POLL_SEC : 0,
          MessageAttributeNames: ["All"],
          MessageSystemAttributeNames: ["All"],
        }),
        { abortSignal: this.#stop.signal },
      );
      messages.push(...Messages);
      if (Messages.length < MAX_BATCH) return messages;
    }
  }

  async #process(messages: readonly Message[]): Promise<void> {
    const { mapping, invoke, onTrouble } = this.#options;
    const result = await invoke(
      JSON.stringify({ Records: messages.map((m) => record(m, mapping.queueArn)) }),
    );
    const ids = messages.map((m) => m.MessageId ?? "");
    const failed = failedIds(result, ids, mapping.reportBatchItemFailures);
    const done = messages.filter((m) => !failed.has(m.MessageId ?? ""));
    try {
      for (let at = 0; at < done.length; at += MAX_BATCH) await this.#delete(done.slice(at, at + MAX_BATCH));
    } catch (error) {
      onTrouble(`deleting from ${mapping.queueName}: ${messageOf(error)}`);
    }
  }

  async #delete(messages: readonly Message[], attempt = 1): Promise<void> {
    const { client, queueUrl } = this.#options;
    const { Failed = [] } = await client.send(
      new DeleteMessageBatchCommand({
        QueueUrl: queueUrl,
        Entries: messages.map((m, at) => ({ Id: String(at), ReceiptHandle: m.ReceiptHandle })),
      }),
    );
    if (Failed.length === 0) return;
    if (attempt === DELETE_ATTEMPTS) throw new Error(Failed.map((f) => f.Message ?? f.Code).join("; "));
    await this.#delete(
      messages.filter((_, at) => Failed.some((f) => f.Id === String(at))),
      attempt + 1,
    );
  }

  #track(work: Promise<void>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }
}

const batchResponse = z
  .object({ batchItemFailures: z.array(z.object({ itemIdentifier: z.string().min(1) })).nullish() })
  .nullable();

/**
 * Which messages of a batch failed (AWS Lambda: "Implementing partial batch responses"): no list, null or an empty
 * one is complete success; a list that cannot be read, or that names a message not of the batch, is complete failure.
 *
 * @param ids the message ids of the batch
 * @param reporting whether the mapping declares `ReportBatchItemFailures`; without it only the outcome counts
 */
export function failedIds(
  result: InvocationResult,
  ids: readonly string[],
  reporting: boolean,
): ReadonlySet<string> {
  const all = new Set(ids);
  if (!result.ok) return all;
  if (!reporting) return new Set();
  try {
    const failures = batchResponse.parse(JSON.parse(result.payload))?.batchItemFailures ?? [];
    const failed = new Set(failures.map((failure) => failure.itemIdentifier));
    return ids.filter((id) => failed.has(id)).length === failed.size ? failed : all;
  } catch {
    return all;
  }
}

/** A message in the shape of Lambda's event. */
function record(message: Message, queueArn: string): object {
  return {
    messageId: message.MessageId,
    receiptHandle: message.ReceiptHandle,
    body: message.Body ?? "",
    attributes: message.Attributes ?? {},
    messageAttributes: Object.fromEntries(
      Object.entries(message.MessageAttributes ?? {}).map(([name, value]) => [name, attribute(value)]),
    ),
    md5OfBody: message.MD5OfBody,
    md5OfMessageAttributes: message.MD5OfMessageAttributes,
    eventSource: "aws:sqs",
    eventSourceARN: queueArn,
    awsRegion: REGION,
  };
}

function attribute(value: MessageAttributeValue): object {
  return {
    stringValue: value.StringValue,
    binaryValue: value.BinaryValue && Buffer.from(value.BinaryValue).toString("base64"),
    stringListValues: [],
    binaryListValues: [],
    dataType: value.DataType,
  };
}
