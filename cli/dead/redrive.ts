import { DeleteMessageCommand, SendMessageCommand, type SQSClient } from "@aws-sdk/client-sqs";
import type { Timing } from "../../shared/config/timing.ts";
import { queueJson } from "../../shared/queues/index.ts";
import type { Forwarded, WorkHint } from "../../shared/tasks/messages.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { isTerminal } from "../../shared/wire/index.ts";
import { hintAt } from "../hint.ts";
import { stateName } from "../render.ts";
import type { Letter } from "./letter.ts";

export interface RedriveDeps {
  readonly client: SQSClient;
  readonly store: Pick<Store, "head">;
  readonly timing: Timing;
  readonly now: () => number;
  /** Whether the stream still holds a message; nothing when NATS cannot be asked. */
  readonly onStream: (message: Forwarded) => Promise<boolean | undefined>;
}

/** What became of a letter: why it was left where it is, if it was. */
export type Redriven = { readonly sent: true } | { readonly sent: false; readonly why: string };

interface Outgoing {
  readonly body: string;
  readonly delaySec?: number;
}

/**
 * Sends a letter back to its queue, and then deletes it: whoever dies in between leaves it twice, which is harmless,
 * for every message is known again by its task.
 *
 * @throws what SQS or the table throws; the letter is still there then
 */
export async function redrive(deps: RedriveDeps, letter: Letter): Promise<Redriven> {
  const outgoing = await outgoingOf(deps, letter);
  if ("why" in outgoing) return { sent: false, why: outgoing.why };
  const { queue, attributes } = letter;
  await deps.client.send(
    new SendMessageCommand({
      QueueUrl: queue.url,
      MessageBody: outgoing.body,
      ...(outgoing.delaySec !== undefined && { DelaySeconds: outgoing.delaySec }),
      ...(Object.keys(attributes).length > 0 && { MessageAttributes: { ...attributes } }),
    }),
  );
  await drop(deps.client, letter);
  return { sent: true };
}

/** Deletes a letter. */
export async function drop(client: SQSClient, { queue, handle }: Letter): Promise<void> {
  await client.send(new DeleteMessageCommand({ QueueUrl: queue.deadUrl, ReceiptHandle: handle }));
}

async function outgoingOf(deps: RedriveDeps, letter: Letter): Promise<Outgoing | { readonly why: string }> {
  const { queue, forwarded, hint } = letter;
  if (takesHints(queue.name))
    return hint === undefined
      ? {
          why: "its body is no hint at a task: expected JSON with taskId, epoch and beat; no worker could read it",
        }
      : hintedAgain(deps, hint);
  if (forwarded !== undefined) return forwardedAgain(deps, forwarded);
  return {
    why: "its body is no message of JetStream: expected JSON with stream, seq, subject and ackSubject; no function could read it",
  };
}

/** Whether a queue carries hints; the others carry what the bridge forwards (docs/tasks.md). */
function takesHints(queue: string): boolean {
  return queue === "work" || queue.startsWith("work-");
}

/** The function must know that JetStream has given the message up (shared/nats/intake.ts). */
async function forwardedAgain(
  { onStream }: RedriveDeps,
  message: Forwarded,
): Promise<Outgoing | { readonly why: string }> {
  if (message.body === undefined && (await onStream(message)) === false)
    return { why: `its body has left the stream ${message.stream}: there is nothing to work on` };
  return { body: queueJson({ ...message, redriven: true }) };
}

/** A hint as old as a letter is stale: what counts is how the task stands now. */
async function hintedAgain(
  { store, timing, now }: RedriveDeps,
  { taskId }: WorkHint,
): Promise<Outgoing | { readonly why: string }> {
  const head = await store.head(taskId);
  if (head === undefined) return { why: "the table has no record of its task: nobody could work on it" };
  if (isTerminal(head.state)) return { why: `its task is over: ${stateName(head.state)}` };
  return hintAt(head, { timing, now: now() });
}
