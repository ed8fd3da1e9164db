import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { startFauxqs } from "fauxqs";
import { awsSettings } from "../../../infra/local/aws.ts";
import { Choices } from "../choices.ts";
import { Scheduler } from "../scheduler.ts";
import { type Received, SimulatedQueue } from "./queue.ts";

const VISIBILITY_S = 1;
const MAX_RECEIVES = 2;
/** Long enough for a machine that has other things to do, and no bound of anything. */
const SOON_S = 10;

type Given = Pick<Received, "body" | "receives"> & { readonly handle: string };

/** A queue whose messages are received at most twice: in truth, or simulated. */
interface Queue {
  send(body: string, delaySec?: number): Promise<unknown>;
  /** The next message; nothing when none comes for so many seconds. */
  receive(withinSec: number): Promise<Given | undefined>;
  delete(handle: string): Promise<unknown>;
  /** How many messages nobody could take. */
  dead(): Promise<number>;
}

function simulated(): Queue {
  const scheduler = new Scheduler(Choices.replay([]), Date.UTC(2030, 0, 1));
  const { clock } = scheduler;
  const given: Given[] = [];
  const queue = new SimulatedQueue({
    name: "work",
    scheduler,
    visibilityMs: VISIBILITY_S * 1_000,
    maxReceives: MAX_RECEIVES,
    receive: ({ id, body, receives }) => given.push({ body, receives, handle: String(id) }),
  });
  return {
    send: async (body, delaySec = 0) => queue.send(body, delaySec * 1_000),
    async receive(withinSec) {
      const end = clock.now() + withinSec * 1_000;
      while (given.length === 0) {
        if (scheduler.step()) continue;
        const next = clock.next() ?? end;
        if (next >= end) break;
        clock.move(next);
      }
      if (given.length === 0) clock.move(end);
      return given.shift();
    },
    delete: async (handle) => queue.delete(Number(handle)),
    dead: async () => queue.dead.length,
  };
}

const sqs = await startFauxqs({ port: 0, logger: false });
const client = new SQSClient(awsSettings(`http://127.0.0.1:${sqs.port}`));
after(async () => {
  client.destroy();
  await sqs.stop();
});

async function real(): Promise<Queue> {
  const urlOf = (name: string) => `http://127.0.0.1:${sqs.port}/000000000000/${name}`;
  const create = (QueueName: string, Attributes: Record<string, string>) =>
    client.send(new CreateQueueCommand({ QueueName, Attributes }));
  await create("dead", {});
  const deadLetterTargetArn = "arn:aws:sqs:us-east-1:000000000000:dead";
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn, maxReceiveCount: MAX_RECEIVES });
  await create("work", { VisibilityTimeout: String(VISIBILITY_S), RedrivePolicy });
  const QueueUrl = urlOf("work");
  return {
    send: (MessageBody, DelaySeconds = 0) =>
      client.send(new SendMessageCommand({ QueueUrl, MessageBody, DelaySeconds })),
    async receive(WaitTimeSeconds) {
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({
          QueueUrl,
          WaitTimeSeconds,
          MessageSystemAttributeNames: ["ApproximateReceiveCount"],
        }),
      );
      const [message] = Messages;
      if (message === undefined) return undefined;
      const receives = Number(message.Attributes?.ApproximateReceiveCount);
      return { body: message.Body ?? "", receives, handle: message.ReceiptHandle ?? "" };
    },
    delete: (ReceiptHandle) => client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle })),
    async dead() {
      const AttributeNames = ["ApproximateNumberOfMessages"] as const;
      const asked = new GetQueueAttributesCommand({
        QueueUrl: urlOf("dead"),
        AttributeNames: [...AttributeNames],
      });
      return Number((await client.send(asked)).Attributes?.ApproximateNumberOfMessages);
    },
  };
}

/** The next message, which must come. */
async function given(queue: Queue): Promise<Given> {
  const message = await queue.receive(SOON_S);
  assert.ok(message);
  return message;
}

for (const [name, open] of [
  ["simulated", simulated],
  ["fauxqs", real],
] as const)
  describe(`a queue: ${name}`, async () => {
    const queue = await open();

    test("what is deleted does not come again", async () => {
      await queue.send("a");
      const { body, receives, handle } = await given(queue);
      assert.deepEqual([body, receives], ["a", 1]);
      await queue.delete(handle);
      assert.equal(await queue.receive(2 * VISIBILITY_S), undefined);
    });

    test("what is not deleted comes again, and then to the dead letters", async () => {
      await queue.send("b");
      assert.equal((await given(queue)).receives, 1);
      assert.equal((await given(queue)).receives, 2);
      assert.equal(await queue.receive(2 * VISIBILITY_S), undefined);
      assert.equal(await queue.dead(), 1);
    });

    test("what is deleted when it has come again is gone", async () => {
      await queue.send("c");
      const first = await given(queue);
      const second = await given(queue);
      assert.equal(first.body, "c");
      await queue.delete(second.handle);
      assert.equal(await queue.receive(2 * VISIBILITY_S), undefined);
    });

    test("what is delayed comes later than what is not", async () => {
      await queue.send("late", 2);
      await queue.send("now");
      const first = await given(queue);
      await queue.delete(first.handle);
      const second = await given(queue);
      await queue.delete(second.handle);
      assert.deepEqual([first.body, second.body], ["now", "late"]);
    });
  });
