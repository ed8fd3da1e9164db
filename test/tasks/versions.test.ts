import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import * as z from "zod";
import { ROOT } from "../../infra/bundle.ts";
import { awsSettings } from "../../infra/local/aws.ts";
import type { Step } from "../../shared/agents/index.ts";
import { entry, entryKey, HEAD_KEY, head } from "../../shared/tasks/items.ts";
import { forwarded, workHint } from "../../shared/tasks/messages.ts";
import { Probe } from "../support/probe.ts";

/** What docs/deploying.md says of versions before and after this one (upgrade and rollback). */

const HOUR_MS = 3_600_000;
const item = z.record(z.string(), z.unknown());
type Item = z.infer<typeof item>;

let table: DynamoDBDocumentClient | undefined;
const probe = new Probe(
  { timeoutSec: { default: 86_400, max: 86_400 } },
  {
    route: async (real) => {
      table = DynamoDBDocumentClient.from(new DynamoDBClient(awsSettings(real.dynamodb)));
      return real;
    },
  },
);
after(() => table?.destroy());

/** Changes an item as it lies in the table, behind this version's back. */
async function rewrite(pk: string, sk: string, change: (stored: Item) => Item): Promise<void> {
  await table?.send(new PutCommand({ TableName: "tasks", Item: change(await raw(pk, sk)) }));
}

async function raw(pk: string, sk: string): Promise<Item> {
  const read = await table?.send(new GetCommand({ TableName: "tasks", Key: { pk, sk } }));
  return item.parse(read?.Item);
}

/** A task that has done a step and sleeps; how often its steps have run. */
async function sleeping() {
  const ran = { before: 0, after: 0 };
  const taskId = await probe.start(async (step: Step) => {
    await step.run("before", () => ++ran.before);
    await step.sleep("pause", "1h");
    await step.run("after", () => ++ran.after);
    return "done";
  });
  const [first] = await probe.world.store.entries(taskId, 1);
  assert.deepEqual(
    first?.steps?.map(({ name }) => name),
    ["before"],
  );
  return { taskId, ran, first: entryKey(first?.place ?? 0) };
}

/** The first of an entry's steps with other fields. */
const withStep = (stored: Item, fields: Item): Item => {
  const [step, ...rest] = z.array(item).parse(stored.steps);
  return { ...stored, steps: [{ ...step, ...fields }, ...rest] };
};

test("a field that a newer version has stored is passed over, and the head keeps it", async () => {
  const { taskId, ran, first } = await sleeping();
  const newer = { since: "a later version" };
  await rewrite(taskId, HEAD_KEY, (stored) => ({ ...stored, newer }));
  await rewrite(taskId, first, (stored) => withStep({ ...stored, newer }, { newer }));
  await probe.pass(HOUR_MS);
  assert.equal((await probe.last(taskId))?.state, "TASK_STATE_COMPLETED");
  assert.deepEqual(ran, { before: 1, after: 1 });
  assert.deepEqual((await raw(taskId, HEAD_KEY)).newer, newer);
});

test("a kind of step that this version does not know holds its task up, until the newer version is back", async () => {
  const { taskId, ran, first } = await sleeping();
  await rewrite(taskId, first, (stored) => withStep(stored, { kind: "vote" }));
  await assert.rejects(probe.pass(HOUR_MS), z.core.$ZodError);
  await assert.rejects(probe.pass(HOUR_MS / 4), z.core.$ZodError);
  assert.equal((await probe.last(taskId))?.kind, "accepted");
  await rewrite(taskId, first, (stored) => withStep(stored, { kind: "run" }));
  await probe.pass(HOUR_MS / 4);
  assert.equal((await probe.last(taskId))?.state, "TASK_STATE_COMPLETED");
  assert.deepEqual(ran, { before: 1, after: 1 });
});

test("a field that a newer version has put into a message in a queue is passed over", () => {
  const hint = { taskId: "task_0", epoch: 1, beat: 2 };
  assert.deepEqual(workHint().parse({ ...hint, newer: 1 }), hint);
  const message = {
    ...{ stream: "A2A_TASKS", consumer: "c", seq: 1, ackSubject: "$JS.ACK.x", subject: "a2a.v1.task.a.b.c" },
    ...{ headers: {}, deliveries: 1, storedAt: 1 },
  };
  assert.deepEqual(forwarded().parse({ ...message, newer: 1 }), message);
});

test("all that version 0.1.0 has stored is read, every field of it", () => {
  const file = join(ROOT, "test/fixtures/stored/0.1.0.json");
  const stored = z.object({ heads: z.array(item), entries: z.array(item) });
  const { heads, entries } = stored.parse(JSON.parse(readFileSync(file, "utf8")));
  assert.ok(heads.length >= 3 && entries.length >= 10);
  for (const of of heads) assert.deepEqual(head().parse(of), of);
  for (const of of entries) assert.deepEqual(entry().parse(of), of);
});
