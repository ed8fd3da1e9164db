import assert from "node:assert/strict";
import { test } from "node:test";
import { eachRecord } from "../../functions/batch.ts";
import { recordOf } from "../support/sqs-record.ts";

test("what went wrong with a hint's task is told with the task's id, so that its logs have it", async () => {
  const hint = JSON.stringify({ taskId: "task_1", epoch: 0, beat: 0, to: "acme-exec" });
  const lines: unknown[] = [];
  const telemetry = { error: (message: string, fields: object = {}) => lines.push({ message, ...fields }) };
  const failing = () => Promise.reject(new Error("its agent cannot be loaded"));
  const Records = [recordOf("a", hint), recordOf("b", '{ "seq": 1 }'), recordOf("c", "no JSON")];
  const { batchItemFailures } = await eachRecord({ Records }, telemetry, failing);
  assert.deepEqual(
    batchItemFailures.map(({ itemIdentifier }) => itemIdentifier),
    ["a", "b", "c"],
  );
  const told = {
    message: "a record has failed",
    errorName: "Error",
    errorMessage: "its agent cannot be loaded",
  };
  assert.deepEqual(lines, [
    { ...told, sqsMessageId: "a", taskId: "task_1", to: "acme-exec" },
    { ...told, sqsMessageId: "b" },
    { ...told, sqsMessageId: "c" },
  ]);
});

test("of a batch that was received before each is taken when the one before it is done", async () => {
  const order: string[] = [];
  const Records = ["a", "b", "c"].map((id) => recordOf(id, "{}", id === "b" ? "2" : "1"));
  await eachRecord({ Records }, { error() {} }, async ({ messageId }) => {
    order.push(`begins ${messageId}`);
    await new Promise(setImmediate);
    order.push(`ends ${messageId}`);
    if (messageId === "a") throw new Error("the next one is taken all the same");
  });
  const begun = order.filter((what) => what.startsWith("begins"));
  assert.deepEqual(begun.toSorted(), ["begins a", "begins b", "begins c"]);
  assert.deepEqual(
    order,
    begun.flatMap((what) => [what, what.replace("begins", "ends")]),
  );
});

test("of a batch that was received before none waits for long for one that meets what cannot be reached", async () => {
  const begun: string[] = [];
  const all = Promise.withResolvers<void>();
  // Ends the test without the mend.
  const patience = setTimeout(() => all.reject(new Error("the other one was not taken meanwhile")), 20_000);
  const Records = ["a", "b"].map((id) => recordOf(id, "{}", "2"));
  const { batchItemFailures } = await eachRecord({ Records }, { error() {} }, async ({ messageId }) => {
    begun.push(messageId);
    if (begun.length === Records.length) all.resolve();
    await all.promise;
  });
  clearTimeout(patience);
  assert.deepEqual(batchItemFailures, []);
});
