import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { awsSettings } from "../../infra/local/aws.ts";
import { dynamoPeers } from "../../shared/cards/dynamodb-peers.ts";
import { keepLook } from "../../shared/cards/peer-keeping.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { traceOf } from "../../shared/policy/choosing/hops.ts";
import { putAt } from "../cards/support/records.ts";
import { Executor, type Handed } from "../support/executor.ts";
import { readTraces, STEPPER, type Stage, startStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

/** Each rule of docs/choosing.md once through the whole chain: peers on NATS, the host, its table. */

const BOSS = "acme-boss";
const NAMESPACE = "Sluice/sluice-acme";
/** The metrics' clock stands still, so that all that is counted is in one minute. */
const NOON = 30_000;

let stage: Stage;
let table: DynamoDBDocumentClient;
let sam: Executor;
let tom: Executor;

/** Sam fails at whatever is to be scanned, and Tom does all that he is asked. */
async function fail({ task }: Handed): Promise<void> {
  await sam.accept(task);
  await sam.result(task, { revision: 2, content: "", state: "TASK_STATE_FAILED" });
}
async function succeed({ task }: Handed): Promise<void> {
  await tom.accept(task);
  await tom.result(task, { revision: 2, content: `done by ${tom.id}` });
}

/** What a peer's card says of it. */
function card(id: string, slugs: readonly string[]) {
  const at = Date.now();
  const skills = slugs.map((slug) => ({ id: `scans/${slug}`, name: slug, description: "", tags: ["a"] }));
  const { card: rest, extendedCard } = recordOf(id, at);
  return putAt(id, at, {
    card: { ...rest, skills },
    extendedCard: { ...extendedCard, channel_ref: "scans", display_name: id.slice(0, 3) },
  });
}

function recordOf(id: string, at: number) {
  return JSON.parse(Buffer.from(putAt(id, at).bytes).toString());
}

/** Puts the peers' cards where peers put them, and what a look through them finds into the table. */
async function show(): Promise<void> {
  const entries = [card("sam-scans", ["scan", "task"]), card("tom-scans", ["scan", "task", "audit"])];
  const js = jetstream(stage.sluice.peer.nc);
  for (const { key, bytes } of entries) await js.publish(`$KV.A2A_PEERS.${key}`, bytes);
  await keepLook(dynamoPeers({ client: table, table: stage.sluice.host.tableName }), {
    at: Date.now(),
    entries,
  });
}

before(async () => {
  stage = await startStage({ timeScale: 20, metricsClock: () => NOON });
  const { nc } = stage.sluice.peer;
  const jsm = await jetstreamManager(nc);
  await ensureStreams(jsm);
  await until("the bucket of cards is there", () =>
    jsm.streams.info("KV_A2A_PEERS").then(
      () => true,
      () => false,
    ),
  );
  table = DynamoDBDocumentClient.from(new DynamoDBClient(awsSettings(stage.sluice.host.endpoints.dynamodb)));
  sam = new Executor(nc, "sam-scans", fail);
  tom = new Executor(nc, "tom-scans", succeed);
  await nc.flush();
});
beforeEach(show);
after(async () => {
  table.destroy();
  await stage.stop();
});

/** Has `boss` hand on what it is told to, and tells how that has ended. */
async function ask(of: { to?: string; skill?: string; subject?: string; message?: unknown; hops?: unknown }) {
  const { hops, message = "go", ...rest } = of;
  const metadata = hops === undefined ? {} : { metadata: { "a2a.trace": { hops } } };
  const a2a = { message: { parts: [{ data: { message, ...rest } }], ...metadata } };
  const delivery = { timeoutSec: 600, maxDelegationDepth: 1 };
  const { taskId } = await stage.sluice.peer.ask(BOSS, { a2a, channelRef: "boss", delivery });
  await until("it has ended", () => stage.log.ended(taskId));
  const last = stage.log.of(taskId).at(-1)?.event;
  return { taskId, end: last?.error ? `${last.error.code}: ${last.error.message}` : (last?.content ?? "") };
}

/** What the function `work` has counted of a refusal. */
function counted(name: string, outcome: string): number {
  const key = { namespace: NAMESPACE, name, dimensions: { service: "work", runtime: BOSS, outcome } };
  return stage.sluice.host.metrics.store.statistic(key, "Sum", 0, 2 * NOON) ?? 0;
}

const lines = (...words: string[]) =>
  stage.sluice.lines.filter((line) => words.every((word) => line.includes(word)));

test("the target guard: a name that nobody has is refused to the caller, told, counted, and nobody else is asked", async () => {
  const { taskId, end } = await ask({ to: "sam-sacns", skill: "scan" });
  assert.match(end, /^unknown_agent: step "work": target_unresolved: .*nearest are "sam-scans"/);
  await until("it is told", () => lines("nobody was chosen", taskId, "target_unresolved").length === 1);
  await until("it is counted", () => counted("ChoicesRefused", "target_unresolved") === 1);
  const both = await ask({ to: "scans", skill: "scan" });
  assert.match(both.end, /^unknown_agent: .*target_ambiguous: "scans" may be "sam-scans", "tom-scans"/);
  assert.deepEqual([sam.handed.length, tom.handed.length], [0, 0]);
  assert.equal((await ask({ to: "tom", skill: "scan" })).end, "done by tom-scans");
});

test("priority: of those that have a skill the file's are asked, and no card", async () => {
  const file = join(stage.sluice.dataDir, "chosen.jsonl");
  const earlier = tom.handed.length;
  const { end, taskId } = await ask({ skill: "task", message: { file, steps: 1 } });
  assert.equal(end, "1 steps");
  assert.equal(readTraces(file).length, 1);
  assert.deepEqual([sam.handed.length, tom.handed.length], [0, earlier]);
  const [line = ""] = lines("an agent is chosen", taskId);
  assert.match(line, new RegExp(`"executor":"${STEPPER}".*sam-scans: outranked`));
});

test("weight: who has failed is not drawn any more", async () => {
  for (let asked = 0; sam.handed.length === 0; asked++) {
    assert.ok(asked < 30, "one of two is drawn");
    await ask({ skill: "scan" });
  }
  const ends = await Promise.all(Array.from({ length: 4 }, () => ask({ skill: "scan" })));
  assert.deepEqual(new Set(ends.map(({ end }) => end)), new Set(["done by tom-scans"]));
  assert.equal(sam.handed.length, 1);
});

test("cooldown: a skill is asked for a subject once, and for another all the same", async () => {
  assert.equal((await ask({ skill: "audit", subject: "repo@1" })).end, "done by tom-scans");
  const again = await ask({ skill: "audit", subject: "repo@1" });
  assert.match(again.end, /^overloaded: .*cooldown: "audit" for "repo@1" rests until/);
  assert.equal((await ask({ skill: "audit", subject: "repo@2" })).end, "done by tom-scans");
});

test("hops: they are counted on, and what was handed on twelve times is handed on no more", async () => {
  const { taskId, end } = await ask({ to: "tom-scans", skill: "scan", hops: 11 });
  assert.equal(end, "done by tom-scans");
  const { request } = await tom.handedBy(taskId);
  assert.deepEqual(request.a2a, { kind: "text", text: "go", metadata: traceOf(12) });
  const earlier = tom.handed.length;
  assert.match((await ask({ to: "tom-scans", hops: 12 })).end, /^policy_denied: .*hop_limit/);
  assert.equal(tom.handed.length, earlier);
});

test("escalation: of refusals that come again and again an operator is told once", async () => {
  const ends = await Promise.all(Array.from({ length: 12 }, () => ask({ to: "nobody" })));
  for (const { end } of ends) assert.match(end, /^unknown_agent: .*target_unresolved/);
  await until("it is counted", () => counted("RefusalsEscalated", "target_unresolved") === 1);
  assert.equal(lines("refused again and again", "target_unresolved").length, 1);
});
