import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import { awsSettings } from "../../infra/local/aws.ts";
import type { HostEvent } from "../../infra/local/host-options.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import { isTerminal } from "../../shared/wire/index.ts";
import { TASK_LOG_BYTES } from "../bench/prices.ts";
import { documentedCosts } from "../support/documented.ts";
import { Meter, ofPart, type Passed, usageOf } from "../support/meter.ts";
import { type Sluice, startSluice } from "../support/sluice.ts";
import { until } from "../support/until.ts";

/** What docs/table.md says a task costs, counted between the functions and all that they use. */

const meter = new Meter();
/** What the functions have logged, each line with its function's name. */
const lines: { readonly functionName: string; readonly line: string }[] = [];
let sluice: Sluice;
let ddb: DynamoDBClient;
before(async () => {
  // In real time: no worker needs to show that it lives, and `sweep` comes once a minute.
  const log = (event: HostEvent) => void (event.type === "line" && lines.push(event));
  sluice = await startSluice({ timeScale: 1, route: meter.route, log });
  await ensureStreams(await jetstreamManager(sluice.peer.nc));
  ddb = new DynamoDBClient(awsSettings(sluice.host.endpoints.dynamodb));
});
after(async () => {
  ddb.destroy();
  await sluice.stop();
  meter.stop();
});

const documented = documentedCosts();

/**
 * What no single task costs: the bridge looks how full its queues are, each sandbox at times how an agent stands, and `cards`
 * whose cards there are.
 */
const isIdle = ({ kind, body }: Passed) =>
  kind === "sqs GetQueueAttributes" ||
  (kind === "dynamodb BatchGetItem" && body.includes('"pause"')) ||
  (kind.startsWith("dynamodb ") && body.includes('"pk":{"S":"cards"}'));
const isSweep = ({ kind, body }: Passed) => kind === "dynamodb Query" && body.includes('"IndexName":"due"');
const acknowledged = () => meter.passed.some(({ kind }) => kind === "nats ack");

/** All that passes while something is done, done again if `sweep` came between. */
async function counted(act: () => Promise<void>): Promise<Passed[]> {
  for (let tries = 1; ; tries++) {
    meter.reset();
    await act();
    // What is done is not counted until it is answered.
    await until("all is answered", () => meter.settled);
    if (!meter.passed.some(isSweep)) return meter.passed.filter((passed) => !isIdle(passed));
    assert.ok(tries < 5, "sweep runs once a minute");
  }
}

/** Gives an agent a task and waits until it is over for its peer, for the table and for JetStream. */
async function done(agent: string, input: { steps: number; bytes: number }): Promise<string> {
  const store = dynamoStore({ client: DynamoDBDocumentClient.from(ddb), table: sluice.host.tableName });
  const message = { parts: [{ data: input }] };
  const { taskId } = await sluice.peer.ask(`acme-${agent}`, { channelRef: agent, a2a: { message } });
  await until("the task is over", async () => {
    const head = await store.head(taskId);
    return head !== undefined && isTerminal(head.state) && head.dueAt === undefined;
  });
  await until("its message is acknowledged", acknowledged);
  const last = (await sluice.peer.events(taskId)).at(-1)?.event;
  assert.equal(last?.state, "TASK_STATE_COMPLETED");
  return taskId;
}

const task = (agent: string, input: { steps: number; bytes: number }) =>
  counted(async () => void (await done(agent, input)));

/** How often each kind of request was made. */
function kinds(passed: readonly Passed[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind } of passed) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

test("a task with one step and no progress, of an agent without a limit", async () => {
  const passed = await task("counted", { steps: 1, bytes: 100 });
  const { requests, items, writes, reads } = usageOf(ofPart(passed, "dynamodb"));
  const said = documented.get("with one step and no progress, from its admission to its end");
  assert.deepEqual({ requests, writes, reads }, said);
  assert.equal(items, requests);
  assert.ok(requests <= 5 && writes <= 10, `${requests} requests, ${writes} write units`);
  assert.deepEqual(kinds(passed), {
    "dynamodb PutItem": 3,
    "dynamodb UpdateItem": 2,
    "nats publish accepted": 1,
    "nats publish result": 1,
    "nats ack": 1,
    "sqs SendMessageBatch": 2,
  });
});

test("the same of an agent with a limit", async () => {
  // A sandbox that has just begun looks once how many of the agent's tasks wait.
  await done("counted-limited", { steps: 1, bytes: 100 });
  const passed = await task("counted-limited", { steps: 1, bytes: 100 });
  const { requests, writes, reads } = usageOf(ofPart(passed, "dynamodb"));
  assert.deepEqual({ requests, writes, reads }, documented.get("the same with `maxConcurrent` set"));
  assert.ok(requests <= 6 && writes <= 18, `${requests} requests, ${writes} write units`);
  const { "sqs SendMessageBatch": hints, ...rest } = kinds(passed);
  assert.equal(hints, 2);
  assert.equal(Object.entries(rest).filter(([kind]) => kind.startsWith("nats ")).length, 3);
});

test("what a task with one step leaves in the logs is about as much as its price is computed of", async () => {
  // CloudWatch adds 26 bytes to each event (CloudWatch Logs User Guide, "CloudWatch Logs quotas", batch size).
  const isOfTask = ({ functionName }: { functionName: string }) => /admit|work/.test(functionName);
  const reports = () => lines.filter((of) => isOfTask(of) && of.line.startsWith("REPORT")).length;
  await counted(async () => {
    lines.splice(0);
    await done("counted-limited", { steps: 1, bytes: 100 });
    await until("both invocations are over", () => reports() >= 2);
  });
  const bytes = lines.filter(isOfTask).reduce((sum, { line }) => sum + Buffer.byteLength(line) + 26, 0);
  assert.ok(bytes > TASK_LOG_BYTES / 2 && bytes <= TASK_LOG_BYTES, `${bytes}: ${JSON.stringify(lines)}`);
});

for (const [bytes, units] of [
  [100, 1],
  [1_024, 2],
  [3_584, 4],
  [20_480, 21],
] as const)
  for (const agent of ["counted", "counted-limited"])
    test(`each further step of ${agent} with a result of ${bytes} bytes takes a request and ${units} write units`, async () => {
      const one = await task(agent, { steps: 1, bytes });
      const four = await task(agent, { steps: 4, bytes });
      const [first, all] = [one, four].map((passed) => usageOf(ofPart(passed, "dynamodb")));
      assert.ok(first && all);
      const further = {
        requests: all.requests - first.requests,
        items: all.items - first.items,
        writes: all.writes - first.writes,
        reads: all.reads - first.reads,
      };
      assert.deepEqual(further, { requests: 3, items: 3, writes: 3 * units, reads: 0 });
      const { "dynamodb PutItem": puts = 0, ...rest } = kinds(four);
      assert.deepEqual({ ...rest, "dynamodb PutItem": puts - 3 }, kinds(one));
    });

test("a control: a message to its function, an event that answers, and an acknowledgement", async () => {
  const taskId = await done("counted", { steps: 1, bytes: 100 });
  let revision = 2;
  const passed = await counted(async () => {
    await sluice.peer.control("acme-counted", taskId, "status", ++revision);
    await until("it is acknowledged", acknowledged);
  });
  const said = documented.get("any control of a task that is over");
  const { requests, writes, reads } = usageOf(ofPart(passed, "dynamodb"));
  assert.deepEqual({ requests, writes, reads }, said);
  assert.deepEqual(kinds(passed), {
    "dynamodb GetItem": 1,
    "dynamodb Query": 1,
    "nats publish result": 1,
    "nats ack": 1,
    "sqs SendMessageBatch": 1,
  });
});
