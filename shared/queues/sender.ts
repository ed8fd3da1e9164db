import { setTimeout as sleep } from "node:timers/promises";
import {
  SendMessageBatchCommand,
  type SendMessageBatchRequestEntry,
  type SQSClient,
} from "@aws-sdk/client-sqs";

/** SQS's bounds of one request, and of one message (SQS API: SendMessageBatch). */
export const MAX_BATCH_ENTRIES = 10;
export const MAX_BATCH_BYTES = 1_048_576;

/** How often an entry is tried before its promise rejects, and the first pause between two tries (it doubles). */
const ATTEMPTS = 5;
const PAUSE_MS = 50;

/** A message to send. */
export interface Outgoing {
  /** Only characters that SQS takes; see `queueJson`. */
  readonly body: string;
  /** Whole seconds, 0 to 900. */
  readonly delaySeconds?: number;
  /** String attributes by name. */
  readonly attributes?: Readonly<Record<string, string>>;
}

export interface SenderOptions {
  readonly client: SQSClient;
  readonly queueUrl: string;
  /** How long a message may wait for others to share its request, in milliseconds. */
  readonly lingerMs: number;
  /** Once aborted, what is not yet sent rejects at once. */
  readonly signal?: AbortSignal;
}

/** Sends messages to one queue, several in a request. */
export interface Sender {
  /**
   * Resolves when SQS has the message.
   *
   * @throws QueueSendError when SQS does not take it, after five tries unless SQS blames the message. After a lost
   *   connection SQS may have it nevertheless: whoever receives it must not mind a copy.
   */
  send(message: Outgoing): Promise<void>;
}

/** SQS did not take a message. */
export class QueueSendError extends Error {
  override readonly name = "QueueSendError";
  /** SQS's own code, such as `InvalidMessageContents`, or the error's name when there was no answer. */
  readonly code: string;
  /** Whether SQS blames the message itself, so that sending it again cannot help. */
  readonly permanent: boolean;

  constructor(code: string, message: string, permanent: boolean, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.permanent = permanent;
  }
}

interface Waiting {
  readonly message: Outgoing;
  readonly resolve: () => void;
  readonly reject: (error: QueueSendError) => void;
}

/** A {@link Sender} that fills requests up to SQS's bounds, or sends what there is after the linger. */
export function createSender({ client, queueUrl, lingerMs, signal }: SenderOptions): Sender {
  let batch: Waiting[] = [];
  let batchBytes = 0;
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (batch.length === 0) return;
    void deliver(batch);
    batch = [];
    batchBytes = 0;
  }

  async function deliver(entries: readonly Waiting[]): Promise<void> {
    let left = entries;
    for (let attempt = 1; ; attempt++) {
      const last = attempt === ATTEMPTS || signal?.aborted === true;
      left = settle(left, await tryOnce(left), last);
      if (left.length === 0) return;
      const pause = PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random());
      await sleep(pause, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
    }
  }

  /** The errors of the entries that failed, by their position. */
  async function tryOnce(entries: readonly Waiting[]): Promise<ReadonlyMap<number, QueueSendError>> {
    const command = new SendMessageBatchCommand({
      QueueUrl: queueUrl,
      Entries: entries.map(({ message }, position) => toEntry(message, position)),
    });
    try {
      const answer = await client.send(command, signal === undefined ? {} : { abortSignal: signal });
      return failures(entries.length, answer.Successful ?? [], answer.Failed ?? []);
    } catch (cause) {
      const error = new QueueSendError(
        cause instanceof Error ? cause.name : "Unknown",
        `SQS ${queueUrl}: ${cause instanceof Error ? cause.message : String(cause)}`,
        false,
        { cause },
      );
      return new Map(entries.map((_, position) => [position, error]));
    }
  }

  return {
    send(message) {
      return new Promise((resolve, reject) => {
        const bytes = messageBytes(message);
        if (bytes > MAX_BATCH_BYTES) {
          const text = `message of ${bytes} bytes: expected at most ${MAX_BATCH_BYTES}`;
          reject(new QueueSendError("MessageTooLong", text, true));
          return;
        }
        if (batchBytes + bytes > MAX_BATCH_BYTES) flush();
        batch.push({ message, resolve, reject });
        batchBytes += bytes;
        if (batch.length === MAX_BATCH_ENTRIES) flush();
        else timer ??= setTimeout(flush, lingerMs);
      });
    },
  };
}

/** Settles what is decided; returns what is to be tried again. */
function settle(
  entries: readonly Waiting[],
  failed: ReadonlyMap<number, QueueSendError>,
  last: boolean,
): readonly Waiting[] {
  return entries.filter((entry, position) => {
    const error = failed.get(position);
    if (error === undefined) entry.resolve();
    else if (last || error.permanent) entry.reject(error);
    else return true;
    return false;
  });
}

type Success = { readonly Id?: string | undefined };
type Failure = Success & {
  readonly Code?: string | undefined;
  readonly Message?: string | undefined;
  readonly SenderFault?: boolean | undefined;
};

/** An entry that the answer does not mention counts as failed. */
function failures(
  count: number,
  successful: readonly Success[],
  failed: readonly Failure[],
): ReadonlyMap<number, QueueSendError> {
  const sent = new Set(successful.map(({ Id }) => Id));
  const reasons = new Map(failed.map((failure) => [failure.Id, failure]));
  const errors = new Map<number, QueueSendError>();
  for (let position = 0; position < count; position++) {
    if (sent.has(String(position))) continue;
    const {
      Code = "Unknown",
      Message = "SQS did not say why",
      SenderFault = false,
    } = reasons.get(String(position)) ?? {};
    errors.set(
      position,
      new QueueSendError(Code, `SQS refused the message: ${Code}: ${Message}`, SenderFault),
    );
  }
  return errors;
}

function toEntry(message: Outgoing, position: number): SendMessageBatchRequestEntry {
  const attributes = Object.entries(message.attributes ?? {});
  return {
    Id: String(position),
    MessageBody: message.body,
    ...(message.delaySeconds === undefined ? {} : { DelaySeconds: message.delaySeconds }),
    ...(attributes.length === 0
      ? {}
      : {
          MessageAttributes: Object.fromEntries(
            attributes.map(([name, value]) => [name, { DataType: "String", StringValue: value }]),
          ),
        }),
  };
}

/** Attributes count with their name, type and value (SQS developer guide: "Message quotas"). */
function messageBytes({ body, attributes = {} }: Outgoing): number {
  const named = Object.entries(attributes).map(
    ([name, value]) => Buffer.byteLength(name) + "String".length + Buffer.byteLength(value),
  );
  return named.reduce((sum, bytes) => sum + bytes, Buffer.byteLength(body));
}
