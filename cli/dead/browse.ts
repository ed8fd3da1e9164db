import {
  ChangeMessageVisibilityBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import { type Letter, letterOf } from "./letter.ts";
import type { Pair } from "./pairs.ts";

/** How long what is looked at is hidden from others, in seconds: longer than a look takes. */
const HIDDEN_SEC = 60;
/** How long one look at one queue may take, in milliseconds; the work on a page's letters included. */
const LOOK_MS = 45_000;
/**
 * With a wait all of SQS's servers are asked, so that an empty answer means an empty queue (long polling); and what a
 * look just before this one has released is there by then.
 */
const WAIT_SEC = 1;
/** The most that one request receives (SQS quotas). */
const PAGE = 10;

/** What can be seen of a dead-letter queue. */
export interface Look {
  readonly letters: readonly Letter[];
  /** How many there are besides that this look could not receive, for another has them in hand. */
  readonly hidden: number;
  /** Whether there are more than were looked at. */
  readonly more: boolean;
}

/** Takes the letters of a page; those that it gives back are released. */
export type Take = (page: readonly Letter[]) => Promise<readonly Letter[]>;

/**
 * Goes through a dead-letter queue, page by page. SQS cannot be browsed: each message is received, hidden from others
 * for a minute, and released when the look is over. A look is bounded by number and by time.
 *
 * @param limit how many letters at most
 * @param take what is done with a page before the next is received; without it all are released
 */
export async function browse(
  client: SQSClient,
  queue: Pair,
  { limit, take = async (page) => page }: { readonly limit: number; readonly take?: Take },
): Promise<Look> {
  const endsAt = Date.now() + LOOK_MS;
  const { all, inHand } = await counts(client, queue);
  const letters = new Map<string, Letter>();
  const kept: Letter[] = [];
  let more = true;
  try {
    while (letters.size < limit && Date.now() < endsAt) {
      const received = await receive(client, queue, Math.min(PAGE, limit - letters.size));
      // One that is known has come round again: its minute is over.
      const page = received.filter(({ id }) => !letters.has(id));
      kept.push(...received.filter(({ id }) => letters.has(id)));
      if (page.length === 0) {
        more = false;
        break;
      }
      for (const letter of page) letters.set(letter.id, letter);
      kept.push(...(await take(page)));
    }
  } finally {
    await release(client, queue, kept);
  }
  // What another look has just released counts as in hand for a while, though it was received here: so does fauxqs until
  // the next receive, and SQS for up to a minute (SQS API Reference, GetQueueAttributes: eventually consistent).
  const hidden = Math.max(0, Math.min(inHand, all - letters.size));
  return { letters: [...letters.values()], hidden, more };
}

async function receive(client: SQSClient, queue: Pair, count: number): Promise<Letter[]> {
  const { Messages = [] } = await client.send(
    new ReceiveMessageCommand({
      QueueUrl: queue.deadUrl,
      MaxNumberOfMessages: count,
      VisibilityTimeout: HIDDEN_SEC,
      WaitTimeSeconds: WAIT_SEC,
      MessageAttributeNames: ["All"],
      MessageSystemAttributeNames: ["ApproximateReceiveCount", "SentTimestamp"],
    }),
  );
  return Messages.map((message) => letterOf(queue, message));
}

/**
 * Lets others see letters again: after a second, not at once, for fauxqs 2.4.1 (the local host's SQS) loses a message
 * whose visibility timeout is set to 0. One that cannot be released is hidden until its minute is over.
 */
async function release(client: SQSClient, { deadUrl }: Pair, letters: readonly Letter[]): Promise<void> {
  for (let at = 0; at < letters.length; at += PAGE)
    await client
      .send(
        new ChangeMessageVisibilityBatchCommand({
          QueueUrl: deadUrl,
          Entries: letters.slice(at, at + PAGE).map(({ handle }, index) => ({
            Id: String(index),
            ReceiptHandle: handle,
            VisibilityTimeout: 1,
          })),
        }),
      )
      .catch(() => undefined);
}

/** How many letters a queue has, and how many of them somebody has in hand. */
async function counts(client: SQSClient, { deadUrl }: Pair): Promise<{ all: number; inHand: number }> {
  const { Attributes = {} } = await client.send(
    new GetQueueAttributesCommand({
      QueueUrl: deadUrl,
      AttributeNames: ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    }),
  );
  const inHand = Number(Attributes.ApproximateNumberOfMessagesNotVisible ?? 0);
  return { all: inHand + Number(Attributes.ApproximateNumberOfMessages ?? 0), inHand };
}
