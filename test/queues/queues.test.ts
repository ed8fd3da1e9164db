import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { SQSClient } from "@aws-sdk/client-sqs";
import fc from "fast-check";
import { type FauxqsServer, startFauxqs } from "fauxqs";
import {
  createSender,
  depth,
  MAX_BATCH_BYTES,
  QueueSendError,
  queueJson,
} from "../../shared/queues/index.ts";

let sqs: FauxqsServer;
let client: SQSClient;
let requests = 0;

before(async () => {
  sqs = await startFauxqs({ port: 0, logger: false });
  client = clientFor(sqs.port);
  client.middlewareStack.add(
    (next) => (args) => {
      requests++;
      return next(args);
    },
    { step: "initialize" },
  );
});
after(async () => {
  client.destroy();
  await sqs.stop();
});

function clientFor(port: number): SQSClient {
  return new SQSClient({
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
    maxAttempts: 1,
  });
}

function queue(name: string): string {
  sqs.createQueue(name);
  requests = 0;
  return `http://127.0.0.1:${sqs.port}/000000000000/${name}`;
}

function bodies(name: string): string[] {
  return (sqs.inspectQueue(name)?.messages.ready ?? []).map((message) => message.body);
}

test("messages share requests, ten at the most, and each arrives once", async () => {
  const sender = createSender({ client, queueUrl: queue("shared"), lingerMs: 5 });
  const sent = Array.from({ length: 25 }, (_, i) => `m${i}`);
  await Promise.all(sent.map((body) => sender.send({ body })));
  assert.equal(requests, 3);
  assert.deepEqual(bodies("shared").toSorted(), sent.toSorted());
});

test("delay and attributes go along, and the depth counts what is delayed and in flight", async () => {
  const queueUrl = queue("delayed");
  const sender = createSender({ client, queueUrl, lingerMs: 0 });
  assert.equal(await depth(client, queueUrl), 0);
  await sender.send({ body: "later", delaySeconds: 900, attributes: { traceparent: "00-1-2-01" } });
  await sender.send({ body: "now" });
  const messages = sqs.inspectQueue("delayed")?.messages;
  assert.equal(messages?.delayed[0]?.messageAttributes.traceparent?.StringValue, "00-1-2-01");
  assert.equal(await depth(client, queueUrl), 2);
});

test("a request holds at most 1 MiB, one message too", async () => {
  const sender = createSender({ client, queueUrl: queue("large"), lingerMs: 5 });
  const half = "x".repeat(MAX_BATCH_BYTES / 2);
  await Promise.all([sender.send({ body: half }), sender.send({ body: half }), sender.send({ body: "y" })]);
  assert.equal(requests, 2);
  await sender.send({ body: "é".repeat(MAX_BATCH_BYTES / 2) });
  await assert.rejects(
    sender.send({ body: `${"é".repeat(MAX_BATCH_BYTES / 2)}x` }),
    permanent("MessageTooLong"),
  );
  const attributes = { a: "b" };
  await sender.send({ body: "x".repeat(MAX_BATCH_BYTES - 8), attributes });
  await assert.rejects(
    sender.send({ body: "x".repeat(MAX_BATCH_BYTES - 7), attributes }),
    permanent("MessageTooLong"),
  );
});

test("a message that SQS blames is rejected at once and alone", async () => {
  const sender = createSender({ client, queueUrl: queue("blamed"), lingerMs: 5 });
  const results = await Promise.allSettled(
    ["good", "bad\uFFFF", "fine"].map((body) => sender.send({ body })),
  );
  assert.deepEqual(
    results.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  assert.equal(requests, 1);
  await assert.rejects(sender.send({ body: "bad\uFFFE" }), permanent("InvalidMessageContents"));
});

test("entries that fail are tried again, alone; others are not repeated", async () => {
  const batches: string[][] = [];
  const flaky = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => {
      text += chunk;
    });
    request.on("end", () => {
      const { Entries } = JSON.parse(text) as { Entries: { Id: string; MessageBody: string }[] };
      batches.push(Entries.map((entry) => entry.MessageBody));
      const failing = (body: string) => body === "never" || (body === "second" && batches.length === 1);
      const answer = {
        Successful: Entries.filter((entry) => !failing(entry.MessageBody)).map(({ Id, MessageBody }) => ({
          Id,
          MessageId: "x",
          MD5OfMessageBody: createHash("md5").update(MessageBody).digest("hex"),
        })),
        Failed: Entries.filter((entry) => failing(entry.MessageBody)).map(({ Id }) => ({
          Id,
          Code: "InternalError",
          SenderFault: false,
        })),
      };
      response.setHeader("content-type", "application/x-amz-json-1.0");
      response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => flaky.listen(0, "127.0.0.1", resolve));
  const other = clientFor((flaky.address() as AddressInfo).port);
  const sender = createSender({ client: other, queueUrl: "http://127.0.0.1/0/q", lingerMs: 5 });
  const results = await Promise.allSettled(["first", "second", "never"].map((body) => sender.send({ body })));
  assert.deepEqual(
    results.map((result) => (result.status === "rejected" ? result.reason.code : "sent")),
    ["sent", "sent", "InternalError"],
  );
  assert.deepEqual(batches, [
    ["first", "second", "never"],
    ["second", "never"],
    ["never"],
    ["never"],
    ["never"],
  ]);
  other.destroy();
  flaky.closeAllConnections();
  flaky.close();
});

test("a queue out of reach rejects after bounded tries, at once when aborted", async () => {
  const gone = clientFor(1);
  const queueUrl = "http://127.0.0.1:1/000000000000/q";
  await assert.rejects(
    createSender({ client: gone, queueUrl, lingerMs: 0 }).send({ body: "x" }),
    (error) => error instanceof QueueSendError && !error.permanent,
  );
  const abort = new AbortController();
  const sender = createSender({ client: gone, queueUrl, lingerMs: 0, signal: abort.signal });
  const sent = sender.send({ body: "x" });
  abort.abort();
  await assert.rejects(sent, QueueSendError);
  await assert.rejects(depth(gone, queueUrl));
});

test("queueJson is the same JSON in characters that SQS takes", async () => {
  const anyText = fc.string({ unit: "binary" });
  fc.assert(
    fc.property(fc.dictionary(anyText, anyText), (value) => {
      const text = queueJson(value);
      assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
      assert.doesNotMatch(text, /[^\t\n\r\x20-\uD7FF\uE000-\uFFFD]/);
    }),
  );
  const sender = createSender({ client, queueUrl: queue("any"), lingerMs: 0 });
  const body = queueJson("\u0000 \u001f ￿ \uFFFE 😀 é \uFEFF");
  await sender.send({ body });
  assert.deepEqual(bodies("any"), [body]);
});

function permanent(code: string) {
  return (error: unknown) => error instanceof QueueSendError && error.permanent && error.code === code;
}
