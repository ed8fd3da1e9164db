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
