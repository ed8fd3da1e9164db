import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient, TransactWriteCommand } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import { awsSettings } from "../../infra/local/aws.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import { LINE, SLOTS_KEY, slotsPartition } from "../../shared/tasks/slots.ts";
import { type Sluice, startSluice } from "../support/sluice.ts";
import { until } from "../support/until.ts";

const NARROW = "acme-narrow";
const TASKS = 20;

const folder = mkdtempSync(join(tmpdir(), "sluice-slots-"));
let sluice: Sluice;
let client: DynamoDBDocumentClient;
before(async () => {
  sluice = await startSluice();
  client = DynamoDBDocumentClient.from(new DynamoDBClient(awsSettings(sluice.host.endpoints.dynamodb)));
  await ensureStreams(await jetstreamManager(sluice.peer.nc));
});
after(async () => {
  client.destroy();
  await sluice.stop();
  rmSync(folder, { recursive: true });
});

test("an agent with two slots works on twenty tasks, never on three at once", async () => {
  const file = join(folder, "log");
  const { peer } = sluice;
  const asked = await Promise.all(
    Array.from({ length: TASKS }, () =>
      peer.ask(NARROW, { channelRef: "narrow", a2a: { parts: [{ data: { file, workMs: 50 } }] } }),
    ),
  );
  for (const { taskId } of asked) {
    const events = await peer.outcome(taskId);
    assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
  }
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  assert.equal(lines.length, 2 * TASKS);
  let working = 0;
  let most = 0;
  for (const line of lines) {
    working += line.startsWith("begin") ? 1 : -1;
    most = Math.max(most, working);
  }
  assert.equal(most, 2);
});

test("a task that is cancelled gives up its slot, or its place in the line", async () => {
  const file = join(folder, "cancelled");
  const { peer } = sluice;
  const store = dynamoStore({ client, table: sluice.host.tableName });
  const ask = (workMs: number) =>
    peer.ask(NARROW, { channelRef: "narrow", a2a: { parts: [{ data: { file, workMs } }] } });
  const cancelled = async ({ taskId }: { taskId: string }) => {
    await peer.control(NARROW, taskId, "cancel", 2);
    assert.equal((await peer.outcome(taskId)).at(-1)?.event.state, "TASK_STATE_CANCELED");
  };
  const running = await Promise.all([ask(30_000), ask(30_000)]);
  const begun = () => existsSync(file) && readFileSync(file, "utf8").split("begin").length - 1;
  await until("both run", () => begun() === 2);
  const [left, goesOn] = await Promise.all([ask(0), ask(0)]);
  for (const { taskId } of [left, goesOn])
    await until("it stands in line", async () => (await store.head(taskId))?.queued !== undefined);
  await cancelled(left);
  for (const task of running) await cancelled(task);
  assert.equal((await peer.outcome(goesOn.taskId)).at(-1)?.event.state, "TASK_STATE_COMPLETED");
});

test("a place in the line whose task is gone is cleared away by sweep", async () => {
  const TableName = sluice.host.tableName;
  const pk = slotsPartition(NARROW);
  const one = { ":one": 1 };
  const count = { UpdateExpression: "ADD queued :one", ExpressionAttributeValues: one };
  await client.send(
    new TransactWriteCommand({
      TransactItems: [
        { Put: { TableName, Item: { pk, sk: `${LINE}left`, taskId: "task_gone" } } },
        { Update: { TableName, Key: { pk, sk: SLOTS_KEY }, ...count } },
      ],
    }),
  );
  const store = dynamoStore({ client, table: TableName });
  await until("nobody waits", async () => (await store.slots(NARROW)).queued === 0);
});

test("it has a work function and a queue of its own, and a hint that lies in the others' queue gets there", async () => {
  const { host, peer, lines } = sluice;
  const pidsOf = (name: string) => host.functions().find((of) => of.name === name)?.pids.length ?? 0;
  assert.ok(pidsOf("work-narrow") > 0);
  assert.equal(pidsOf("work"), 0);
  // As if the task had been admitted before the agent got its function.
  const { taskId } = await peer.ask(NARROW, {
    channelRef: "narrow",
    a2a: { parts: [{ data: { file: join(folder, "other"), workMs: 50 } }] },
  });
  const sqs = new SQSClient(awsSettings(host.endpoints.sqs));
  const hint = JSON.stringify({ taskId: "task_nobody", epoch: 0, beat: 0, to: NARROW });
  await sqs.send(new SendMessageCommand({ QueueUrl: host.queueUrls.work, MessageBody: hint }));
  sqs.destroy();
  const events = await peer.outcome(taskId);
  assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
  await until("the others' function", () => pidsOf("work") > 0);
  const said = lines.filter((line) => /^work: .*"level":"(ERROR|WARN)"/.test(line));
  assert.deepEqual(said, []);
});
