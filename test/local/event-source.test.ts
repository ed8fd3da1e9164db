import assert from "node:assert/strict";
import test from "node:test";
import {
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { awsSettings } from "../../infra/local/aws.ts";
import { failedIds } from "../../infra/local/event-source.ts";
import { mapping, queueWithDead } from "./support/assembly.ts";
import { eventually, startTestHost, type TestHost } from "./support/host.ts";

/** Notes what it gets and does to each message as the message says. */
const CONSUMER = `
import { appendFileSync } from "node:fs";
const say = (line) => appendFileSync(process.env.OUT, line + "\\n");
export const handler = async ({ Records }) => {
  say("batch " + Records.length);
  const batchItemFailures = [];
  for (const record of Records) {
    const count = record.attributes.ApproximateReceiveCount;
    say("got " + record.body + " " + count);
    if (record.body === "crash") process.exit(1);
    if (record.body === "fail" || (record.body === "once" && count === "1"))
      batchItemFailures.push({ itemIdentifier: record.messageId });
    if (record.body === "show") say(JSON.stringify(record));
    if (record.body.startsWith("slow")) {
      say("in " + record.body);
      await new Promise((done) => setTimeout(done, 100));
      say("out " + record.body);
    }
  }
  return process.env.ANSWER ? JSON.parse(process.env.ANSWER) : { batchItemFailures };
};
`;

interface Settings {
  readonly visibility?: number;
  readonly receives?: number;
  readonly mapping?: Record<string, unknown>;
}

function stack(settings: Settings = {}) {
  return {
    functions: { consumer: { source: CONSUMER } },
    resources: {
      ...queueWithDead("tasks", settings.visibility ?? 1, settings.receives ?? 3),
      source: mapping("tasks", "consumer", settings.mapping),
    },
  };
}

function clientOf(t: test.TestContext, host: TestHost): SQSClient {
  const client = new SQSClient(awsSettings(host.endpoints.sqs));
  t.after(() => client.destroy());
  return client;
}

async function send(client: SQSClient, host: TestHost, ...bodies: string[]): Promise<void> {
  const Entries = bodies.map((MessageBody, at) => ({ Id: String(at), MessageBody }));
  await client.send(new SendMessageBatchCommand({ QueueUrl: host.queueUrls.tasks, Entries }));
}

/** How many messages a queue has, whatever their state. */
async function depth(client: SQSClient, QueueUrl: string | undefined): Promise<number> {
  const { Attributes = {} } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }),
  );
  const { ApproximateNumberOfMessages: ready, ApproximateNumberOfMessagesNotVisible: received } = Attributes;
  return Number(ready) + Number(received) + Number(Attributes.ApproximateNumberOfMessagesDelayed);
}

test("what a batch's answer means", () => {
  const ids = ["a", "b"];
  const failures = (answer: unknown) => [
    ...failedIds({ ok: true, payload: JSON.stringify(answer) }, ids, true),
  ];
  const one = (itemIdentifier: unknown) => ({ batchItemFailures: [{ itemIdentifier }] });
  for (const success of [null, {}, { batchItemFailures: null }, { batchItemFailures: [] }])
    assert.deepEqual(failures(success), [], JSON.stringify(success));
  assert.deepEqual(failures(one("b")), ["b"]);
  for (const failure of [
    one("c"),
    one(""),
    one(null),
    one(7),
    { batchItemFailures: [{ id: "a" }] },
    { batchItemFailures: "a" },
    "text",
    7,
  ])
    assert.deepEqual(failures(failure), ids, JSON.stringify(failure));
  assert.deepEqual([...failedIds({ ok: true, payload: "no json" }, ids, true)], ids);
  assert.deepEqual([...failedIds({ ok: true, payload: JSON.stringify(one("a")) }, ids, false)], []);
  assert.deepEqual([...failedIds({ ok: false, errorType: "Error", errorMessage: "" }, ids, false)], ids);
});

test("a message reaches the function in Lambda's shape", async (t) => {
  const host = await startTestHost(t, stack());
  const client = clientOf(t, host);
  const sent = await client.send(
    new SendMessageCommand({
      QueueUrl: host.queueUrls.tasks,
      MessageBody: "show",
      MessageAttributes: {
        traceparent: { DataType: "String", StringValue: "00-ab-cd-01" },
        bytes: { DataType: "Binary", BinaryValue: Buffer.from([1, 2, 255]) },
      },
    }),
  );
  const line = await eventually(() => host.seen().find((seen) => seen.startsWith("{")), Boolean);
  const { receiptHandle, attributes, ...record } = JSON.parse(line ?? "");
  assert.ok(receiptHandle);
  assert.partialDeepStrictEqual(attributes, { ApproximateReceiveCount: "1", SenderId: "000000000000" });
  assert.match(attributes.SentTimestamp, /^\d{13}$/);
  assert.match(attributes.ApproximateFirstReceiveTimestamp, /^\d{13}$/);
  const empty = { stringListValues: [], binaryListValues: [] };
  assert.deepEqual(record, {
    messageId: sent.MessageId,
    body: "show",
    md5OfBody: sent.MD5OfMessageBody,
    md5OfMessageAttributes: sent.MD5OfMessageAttributes,
    messageAttributes: {
      traceparent: { stringValue: "00-ab-cd-01", ...empty, dataType: "String" },
      bytes: { binaryValue: "AQL/", ...empty, dataType: "Binary" },
    },
    eventSource: "aws:sqs",
    eventSourceARN: "arn:aws:sqs:us-east-1:000000000000:tasks",
    awsRegion: "us-east-1",
  });
  await eventually(
    () => depth(client, host.queueUrls.tasks),
    (n) => n === 0,
  );
});

test("of a batch only what failed comes again", async (t) => {
  const host = await startTestHost(t, stack());
  const client = clientOf(t, host);
  await send(client, host, "good", "once", "fine");
  await eventually(
    () => depth(client, host.queueUrls.tasks),
    (n) => n === 0,
  );
  const got = host.seen().filter((line) => line.startsWith("got "));
  assert.deepEqual(got.sort(), ["got fine 1", "got good 1", "got once 1", "got once 2"]);
  assert.equal(await depth(client, host.queueUrls["tasks-dead"]), 0);
});

test("a message that always fails reaches the dead-letter queue after the declared receives", async (t) => {
  const host = await startTestHost(t, stack({ receives: 2 }));
  const client = clientOf(t, host);
  await send(client, host, "fail");
  await eventually(
    () => depth(client, host.queueUrls["tasks-dead"]),
    (n) => n === 1,
  );
  assert.deepEqual(
    host.seen().filter((line) => line.startsWith("got ")),
    ["got fail 1", "got fail 2"],
  );
  const { Messages = [] } = await client.send(
    new ReceiveMessageCommand({ QueueUrl: host.queueUrls["tasks-dead"] }),
  );
  assert.deepEqual(
    Messages.map((message) => message.Body),
    ["fail"],
  );
});

test("a crash fails the whole batch, and others still get through", async (t) => {
  const host = await startTestHost(t, stack({ receives: 2, mapping: { BatchSize: 1 } }));
  const client = clientOf(t, host);
  await send(client, host, "crash", "good");
  await eventually(
    () => depth(client, host.queueUrls["tasks-dead"]),
    (n) => n === 1,
  );
  const got = host.seen().filter((line) => line.startsWith("got "));
  assert.deepEqual(got.sort(), ["got crash 1", "got crash 2", "got good 1"]);
});

test("an answer that cannot be read fails the whole batch", async (t) => {
  const ANSWER = JSON.stringify({ batchItemFailures: [{ itemIdentifier: "nobody" }] });
  const host = await startTestHost(t, stack({ receives: 1 }), { env: { ANSWER } });
  const client = clientOf(t, host);
  await send(client, host, "a", "b");
  await eventually(
    () => depth(client, host.queueUrls["tasks-dead"]),
    (n) => n === 2,
  );
});

test("without ReportBatchItemFailures the answer does not count", async (t) => {
  const host = await startTestHost(t, stack({ mapping: { FunctionResponseTypes: [] } }));
  const client = clientOf(t, host);
  await send(client, host, "fail");
  await eventually(
    () => depth(client, host.queueUrls.tasks),
    (n) => n === 0,
  );
  assert.deepEqual(host.seen(), ["batch 1", "got fail 1"]);
});

test("batches are as large as declared, and as many at once", async (t) => {
  const host = await startTestHost(
    t,
    stack({
      visibility: 60,
      mapping: { BatchSize: 2, ScalingConfig: { MaximumConcurrency: 3 } },
    }),
  );
  const client = clientOf(t, host);
  for (let round = 0; round < 2; round++)
    await send(client, host, ...Array.from({ length: 10 }, (_, at) => `slow ${round}-${at}`));
  const outs = () => host.seen().filter((line) => line.startsWith("out ")).length;
  await eventually(outs, (n) => n === 20);
  const lines = host.seen();
  assert.ok(lines.filter((line) => line.startsWith("batch ")).every((line) => /^batch [12]$/.test(line)));
  let now = 0;
  const counts = lines.map((line) => (now += line.startsWith("in ") ? 1 : line.startsWith("out ") ? -1 : 0));
  assert.ok(Math.max(...counts) <= 3);
});
