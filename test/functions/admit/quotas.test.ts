import assert from "node:assert/strict";
import { test } from "node:test";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { Quotas, UNPUT_MS } from "../../../functions/admit/quotas.ts";
import { quotaNotes } from "../../../shared/policy/quota-notes.ts";
import { HEAD_KEY } from "../../../shared/tasks/items.ts";
import { simulatedAccess } from "../../support/simulated-store.ts";

const TO = "acme-support";

/** A sandbox of `admit`, and a table in which tasks begin and end. */
function sandbox() {
  const access = simulatedAccess();
  let now = 1_000_000;
  const state = (taskId: string, of: string) =>
    access.client.send(
      new PutCommand({ TableName: access.table, Item: { pk: taskId, sk: HEAD_KEY, state: of } }),
    );
  const quotas = new Quotas({ notes: quotaNotes(access), now: () => now });
  return {
    skip(ms: number) {
      now += ms;
    },
    end: (taskId: string) => state(taskId, "TASK_STATE_COMPLETED"),
    /** Admits a task, and puts its head unless that fails. */
    async admit(
      taskId: string,
      limits: { open?: number; openPerPeer?: number },
      from = "peer-a",
      dies = false,
    ) {
      const task = { to: TO, from, taskId, expiresAt: 2_000 };
      const refusal = await quotas.refuses({ open: 0, openPerPeer: 0, ...limits }, task);
      if (refusal === undefined && !dies) await state(taskId, "TASK_STATE_INPUT_REQUIRED");
      return refusal;
    },
  };
}

test("a peer may have as many open tasks as the quota says, and one more when one has ended", async () => {
  const { admit, end, skip } = sandbox();
  const limits = { openPerPeer: 2 };
  assert.equal(await admit("task_1", limits), undefined);
  assert.equal(await admit("task_2", limits), undefined);
  const full = "overloaded: peer-a has 2 open tasks here already (quotas.openPerPeer)";
  assert.equal(await admit("task_3", limits), full);
  assert.equal(await admit("task_3", limits, "peer-b"), undefined, "another peer has its own");
  assert.equal(await admit("task_3", limits, "peer-a-2"), undefined, "nor does a longer name count");
  await end("task_1");
  assert.equal(await admit("task_4", limits), full, "what was full is taken for granted for a second");
  skip(1_000);
  assert.equal(await admit("task_4", limits), undefined);
});

test("all peers together may have as many as the other says", async () => {
  const { admit, end, skip } = sandbox();
  const limits = { open: 2, openPerPeer: 2 };
  assert.equal(await admit("task_1", limits, "peer-a"), undefined);
  assert.equal(await admit("task_2", limits, "peer-b"), undefined);
  assert.equal(
    await admit("task_3", limits, "peer-c"),
    `overloaded: ${TO} has 2 open tasks already (quotas.open)`,
  );
  for (const taskId of ["task_1", "task_2"]) await end(taskId);
  skip(1_000);
  assert.equal(await admit("task_3", limits, "peer-c"), undefined);
});

test("a message that comes again does not count twice", async () => {
  const { admit } = sandbox();
  const limits = { openPerPeer: 1 };
  for (let n = 0; n < 3; n++) assert.equal(await admit("task_1", limits), undefined);
});

test("a task that was noted and never put counts for five minutes", async () => {
  const { admit, skip } = sandbox();
  const limits = { openPerPeer: 1 };
  await admit("task_1", limits, "peer-a", true);
  skip(UNPUT_MS - 1);
  assert.match((await admit("task_2", limits)) ?? "", /^overloaded/);
  skip(1_001);
  assert.equal(await admit("task_2", limits), undefined);
});

test("many that have ended are all forgotten", async () => {
  const { admit, end } = sandbox();
  for (let n = 0; n < 12; n++) {
    await admit(`task_${n}`, { openPerPeer: 1_000 });
    await end(`task_${n}`);
  }
  assert.equal(await admit("task_next", { openPerPeer: 1 }), undefined);
});
