import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ReceiveMessageCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { awsSettings } from "../../infra/local/aws.ts";
import { Queues } from "../../infra/local/queues.ts";

test("a message that was looked at is visible again when its time is over, whether or not somebody receives", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "sluice-queues-"));
  const queues = await Queues.start(folder);
  const client = new SQSClient(awsSettings(queues.url));
  t.after(async () => {
    client.destroy();
    await queues.stop();
    await rm(folder, { recursive: true });
  });
  await queues.declareQueues([{ name: "dead", arn: "arn:aws:sqs:::dead", attributes: {} }]);
  const QueueUrl = `${queues.queueUrlBase}/dead`;
  const seen = () => {
    const { visible, inFlight } = queues.look("dead");
    return { visible, inFlight };
  };
  const receive = (VisibilityTimeout: number) =>
    client.send(new ReceiveMessageCommand({ QueueUrl, VisibilityTimeout }));

  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: "x" }));
  assert.deepEqual(seen(), { visible: 1, inFlight: 0 });
  await receive(0);
  assert.deepEqual(seen(), { visible: 1, inFlight: 0 });
  await receive(60);
  assert.deepEqual(seen(), { visible: 0, inFlight: 1 });
});
