import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DeleteItemCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { S3Client } from "@aws-sdk/client-s3";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { type Erased, openErasing } from "../../cli/erase/open.ts";
import { CliError } from "../../cli/errors.ts";
import type { Home } from "../../cli/home.ts";
import { awsSettings } from "../../infra/local/aws.ts";
import type { Endpoints } from "../../infra/local/host.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import type { Head } from "../../shared/tasks/items.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { s3Values, type Values } from "../../shared/tasks/values.ts";
import { everything, type Kept } from "../support/everything.ts";
import { startNats, type TestNats } from "../support/nats-server.ts";
import { type RunningParts, startTestParts } from "../support/parts.ts";
import type { Point } from "../support/proxy/points.ts";
import { Proxies } from "../support/proxy/proxies.ts";
import { type FullTask, putFullTask, SECRET } from "./full-task.ts";

const dataDir = mkdtempSync(join(tmpdir(), "sluice-erase-"));
let nats: TestNats;
let nc: NatsConnection;
let running: RunningParts;
let real: Endpoints;
let kept: Kept;
let store: Store;
let values: Values;
before(async () => {
  nats = await startNats();
  nc = await connect({ servers: nats.url });
  await ensureStreams(await jetstreamManager(nc));
  running = await startTestParts(dataDir, [nats.url]);
  real = { ...running.parts.endpoints, nats: nats.url };
  const { tables, buckets } = running.parts.stack;
  kept = {
    dynamodb: new DynamoDBClient(awsSettings(real.dynamodb)),
    table: tables[0]?.name ?? "",
    s3: new S3Client({ ...awsSettings(real.s3), forcePathStyle: true }),
    bucket: buckets[0] ?? "",
    nc,
  };
  const client = DynamoDBDocumentClient.from(kept.dynamodb, {
    marshallOptions: { removeUndefinedValues: true },
  });
  store = dynamoStore({ client, table: kept.table });
  values = s3Values({ bucket: kept.bucket, client: async () => kept.s3 });
});
after(async () => {
  kept.dynamodb.destroy();
  kept.s3.destroy();
  await running?.[Symbol.asyncDispose]();
  await nc?.close();
  await nats?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

/** The folder of an operator whose host has its parts there. */
function homeAt({ dynamodb, s3, sqs, nats: url }: Endpoints): Home {
  const { table, bucket } = kept;
  return {
    config: join(dataDir, "agents.yaml"),
    agentsDir: join(dataDir, "agents"),
    deployment: "acme",
    agents: [],
    host: { servers: [url], credentials: "none" },
    stack: { pid: process.pid, dynamodb, s3, sqs, table, bucket, outputs: {}, timeScale: 1 },
    operator: { servers: [url], credentials: "none" },
  };
}

const put = (messageId: string) => putFullTask({ store, values, nc }, messageId);

/** `sluice erase TASK --by … --streams`. */
async function erase(taskId: string, by: string, at = real): Promise<Erased> {
  await using erasing = await openErasing(homeAt(at), { nats: at.nats });
  return await erasing.erase(await erasing.find(taskId), { by, streams: true });
}

/**
 * The same, by a command that dies at its n-th write: nothing that it does from then on reaches anything.
 *
 * @returns the write at which it has died; nothing when there are less
 */
async function eraseAndDie(taskId: string, n: number, when: "before" | "after"): Promise<Point | undefined> {
  const proxies = new Proxies(() => []);
  const died = Promise.withResolvers<Point>();
  let writes = 0;
  let last: Point | undefined;
  const die = (point: Point) => {
    void proxies.stop();
    died.resolve(point);
    return "cut" as const;
  };
  proxies.points.on({
    before(point) {
      if (last !== undefined) return "cut";
      if (++writes !== n) return undefined;
      last = point;
      return when === "before" ? die(point) : undefined;
    },
    after: (point) => (point === last ? die(point) : undefined),
  });
  const erased = erase(taskId, "the first", await proxies.route(real)).then(() => undefined);
  erased.catch(() => {}); // what a dead process says is heard by nobody
  const end = await Promise.race([died.promise, erased]);
  await proxies.stop();
  return end;
}

/** What there is: what names it, and its digest. */
function digests(all: Iterable<readonly [string, string]>): string[] {
  const digest = (text: string) => createHash("sha256").update(text).digest("hex");
  return Array.from(all, ([name, text]) => `${name} ${digest(text)}`).sort();
}

/**
 * Asserts that only the record is left of a task, and that what others there were is as it was.
 *
 * @returns all that there is, as others for the next
 */
async function assertErased(task: FullTask, others: readonly string[], by: string): Promise<string[]> {
  const { head, entries, object } = task;
  const { taskId, messageId } = head;
  const all = await everything(kept);
  const isOwn = ([name, text]: [string, string]) =>
    [taskId, messageId].some((id) => name.includes(id) || text.includes(id));
  const own = [...all].filter(isOwn);
  assert.deepEqual(digests([...all].filter((of) => !isOwn(of))), others);
  const places = entries.map(({ place }) => `table ${taskId} e#${String(place).padStart(10, "0")}`);
  // The object store keeps a note that there was something of this name.
  const note = `OBJ_a2a-artifacts $O.a2a-artifacts.M.${Buffer.from(object).toString("base64url")}`;
  const left = own.map(([name]) => name.replace(/=* \d+$/, ""));
  assert.deepEqual(left.sort(), [note, ...places, `table ${taskId} head`].sort());
  assert.doesNotMatch(own.flat().join("\n"), new RegExp(SECRET));
  const { input: _, running: __, ...rest } = head;
  const { erased, ...now } = (await store.head(taskId)) ?? {};
  assert.deepEqual(now, rest);
  assert.equal(erased?.by, by);
  return digests(all);
}

for (const when of ["before", "after"] as const)
  test(`a command that dies right ${when} its n-th write is finished by the next, for every n`, async (t) => {
    await put(`neighbour-${when}`);
    const met: string[] = [];
    let others = digests(await everything(kept));
    for (let n = 1; ; n++) {
      const task = await put(`msg-${when}-${n}`);
      const point = await eraseAndDie(task.head.taskId, n, when);
      if (point !== undefined) met.push(point.kind);
      const { by } = await erase(task.head.taskId, "the second");
      // Who has come to the end once stays the one who has done it.
      const done = point === undefined || (when === "after" && point.kind.endsWith("erased"));
      assert.equal(by, done ? "the first" : "the second");
      others = await assertErased(task, others, by);
      if (point === undefined) break;
    }
    t.diagnostic(met.join(", "));
    for (const kind of [
      "nats object info",
      "nats purge stream",
      "dynamodb DeleteItem child",
      "dynamodb UpdateItem empty end",
      "dynamodb UpdateItem empty",
      "dynamodb DeleteItem input",
      "s3 DELETE value",
      "dynamodb UpdateItem erased",
    ])
      assert.ok(met.includes(kind), kind);
  });

test("a task that is at work, waits for a person or for another agent, or whose end is not told, is left", async () => {
  const { head } = await put("msg-over");
  const { state: _, input: __, running: ___, ...rest } = head;
  const input = { text: SECRET };
  const cases: [state: Head["state"], more: Partial<Head>][] = [
    ["TASK_STATE_SUBMITTED", { epoch: 0 }],
    ["TASK_STATE_WORKING", { owner: "somebody", beat: 3 }],
    ["TASK_STATE_WORKING", { waiting: true }],
    ["TASK_STATE_INPUT_REQUIRED", { waiting: true }],
    ["TASK_STATE_AUTH_REQUIRED", { waiting: true }],
  ];
  for (const [index, [state, more]] of cases.entries()) {
    const taskId = `task_${String(index).repeat(24)}`;
    await store.admit({ ...rest, taskId, messageId: `m-${index}`, state, input, ...more });
    await refused(taskId, /it is not over; \.\/sluice cancel/);
  }
  const taskId = `task_${"e".repeat(24)}`;
  await store.admit({ ...rest, taskId, messageId: "m-e", state: "TASK_STATE_WORKING", input });
  const [end] = (await store.entries(head.taskId, 6)) ?? [];
  assert.ok(end);
  await store.append(taskId, { ...end, place: 1 }, head.expiresAt);
  await refused(taskId, /its end is not published yet/);
});

async function refused(taskId: string, said: RegExp): Promise<void> {
  const before = await everything(kept);
  const error = await erase(taskId, "eve").catch((reason: unknown) => reason);
  assert.ok(error instanceof CliError && error.exitCode === 1);
  assert.match(error.message, said);
  assert.deepEqual(digests(await everything(kept)), digests(before));
}

test("a record that expires meanwhile does not come back", async () => {
  const task = await put("msg-gone");
  await using erasing = await openErasing(homeAt(real), { nats: real.nats });
  const record = await erasing.find(task.head.taskId);
  await kept.dynamodb.send(
    new DeleteItemCommand({
      TableName: kept.table,
      Key: { pk: { S: task.head.taskId }, sk: { S: "head" } },
    }),
  );
  await assert.rejects(erasing.erase(record, { by: "eve", streams: false }), /its record has expired/);
  assert.equal(await store.head(task.head.taskId), undefined);
});
