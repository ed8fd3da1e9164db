import assert from "node:assert/strict";
import { test } from "node:test";
import type { BatchGetCommand, DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { CONFLICT_TRIES } from "../../shared/tasks/conflicts.ts";
import { readItems } from "../../shared/tasks/dynamodb-batch.ts";

const keysOf = (count: number) => Array.from({ length: count }, (_, n) => ({ pk: `p${n}`, sk: "slots" }));

/** A table where everything is there, and which reads so many items of a request. */
function tableOf(most: number) {
  const requests: number[] = [];
  const pauses: number[] = [];
  const client = {
    send: async ({ input }: BatchGetCommand) => {
      const { Keys = [], ConsistentRead } = input.RequestItems?.tasks ?? {};
      assert.equal(ConsistentRead, true);
      requests.push(Keys.length);
      const left = Keys.slice(most);
      return {
        Responses: { tasks: Keys.slice(0, most) },
        UnprocessedKeys: left.length > 0 ? { tasks: { Keys: left } } : {},
      };
    },
  };
  return {
    requests,
    pauses,
    access: {
      // Nothing else of a client is called.
      client: client as unknown as DynamoDBDocumentClient,
      table: "tasks",
      pause: async (ms: number) => pauses.push(ms),
    },
  };
}

test("a hundred keys go into a request, and none makes none", async () => {
  const { access, requests, pauses } = tableOf(100);
  assert.deepEqual(await readItems(access, keysOf(250)), keysOf(250));
  assert.deepEqual(requests, [100, 100, 50]);
  assert.deepEqual(await readItems(access, []), []);
  assert.equal(requests.length, 3);
  assert.deepEqual(pauses, []);
});

test("what DynamoDB leaves out is asked for again, after growing pauses", async () => {
  const { access, requests, pauses } = tableOf(40);
  assert.deepEqual(await readItems(access, keysOf(100)), keysOf(100));
  assert.deepEqual(requests, [100, 60, 20]);
  assert.equal(pauses.length, 2);
  for (const [n, ms] of pauses.entries()) assert.ok(ms >= 0 && ms <= 50 * 2 ** n, `${ms}`);
});

test("what is left out ten times over is not waited for any longer", async () => {
  const { access, requests } = tableOf(0);
  await assert.rejects(readItems(access, keysOf(3)), /3 items were not read in 10 tries/);
  assert.equal(requests.length, CONFLICT_TRIES);
});
