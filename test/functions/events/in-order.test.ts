import assert from "node:assert/strict";
import { test } from "node:test";
import type { SQSRecord } from "aws-lambda";
import { inOrder } from "../../../functions/events/in-order.ts";

function record(seq: number, task: string): SQSRecord {
  const body = JSON.stringify({
    stream: "A2A_EVENTS",
    consumer: "a2a_events_acme-boss",
    seq,
    ackSubject: "$JS.ACK.x",
    subject: `a2a.v1.event.bob.acme-boss.${task}.status`,
    headers: {},
    deliveries: 1,
    storedAt: 1,
  });
  return {
    messageId: `${task} ${seq}`,
    receiptHandle: "",
    body,
    attributes: {
      ApproximateReceiveCount: "1",
      SentTimestamp: "1",
      SenderId: "x",
      ApproximateFirstReceiveTimestamp: "1",
    },
    messageAttributes: {},
    md5OfBody: "",
    eventSource: "aws:sqs",
    eventSourceARN: "",
    awsRegion: "",
  };
}

test("a task's events are taken in their stream's order, one after the other, beside those of other tasks", async () => {
  const begun: string[] = [];
  const release = new Map<string, () => void>();
  const batch = { Records: [record(3, "t1"), record(2, "t2"), record(1, "t1")] };
  const ordered = inOrder(batch, ({ messageId }) => {
    begun.push(messageId);
    return new Promise((resolve) => release.set(messageId, resolve));
  });
  const all = Promise.all(ordered.event.Records.map((one) => ordered.take(one, () => {})));
  await new Promise(setImmediate);
  assert.deepEqual(begun, ["t1 1", "t2 2"]);
  release.get("t1 1")?.();
  await new Promise(setImmediate);
  assert.deepEqual(begun, ["t1 1", "t2 2", "t1 3"]);
  release.get("t2 2")?.();
  release.get("t1 3")?.();
  await all;
});

test("one that fails lets the next of its task through", async () => {
  const taken: string[] = [];
  const ordered = inOrder({ Records: [record(1, "t1"), record(2, "t1")] }, async ({ messageId }) => {
    taken.push(messageId);
    if (messageId === "t1 1") throw new Error("no");
  });
  const results = await Promise.allSettled(ordered.event.Records.map((one) => ordered.take(one, () => {})));
  assert.deepEqual(
    results.map(({ status }) => status),
    ["rejected", "fulfilled"],
  );
  assert.deepEqual(taken, ["t1 1", "t1 2"]);
});

test("a record that nobody can read fails alone", async () => {
  for (const body of ["no JSON", "{}", '{"seq":"1","subject":2}']) {
    const taken: string[] = [];
    const broken = { ...record(1, "broken"), body };
    const ordered = inOrder({ Records: [record(2, "t1"), broken] }, async ({ messageId, body }) => {
      taken.push(messageId);
      JSON.parse(body).subject.split(".");
    });
    const results = await Promise.allSettled(ordered.event.Records.map((one) => ordered.take(one, () => {})));
    assert.deepEqual(
      results.map(({ status }) => status),
      ["rejected", "fulfilled"],
    );
    assert.deepEqual(taken, ["broken 1", "t1 2"]);
  }
});
