import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  SendMessageBatchCommand,
  SendMessageCommand,
  SetQueueAttributesCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection, nanos } from "@nats-io/transport-node";
import * as z from "zod";
import { checkAlarms, checkStackAlarms } from "../../cli/doctor/alarms.ts";
import { bridgeAdvice } from "../../cli/doctor/bridge.ts";
import { checkBucket } from "../../cli/doctor/bucket.ts";
import { clockFinding } from "../../cli/doctor/clock.ts";
import { checkDisk } from "../../cli/doctor/disk.ts";
import { amissWith } from "../../cli/doctor/durables.ts";
import { examineAll } from "../../cli/doctor/examine.ts";
import type { Finding } from "../../cli/doctor/finding.ts";
import { checkFunctions, checkSchedules } from "../../cli/doctor/functions.ts";
import { checkNats, serverFinding } from "../../cli/doctor/nats.ts";
import { checkPauses } from "../../cli/doctor/pauses.ts";
import { checkQueues } from "../../cli/doctor/queues.ts";
import { checkReaders } from "../../cli/doctor/roles.ts";
import { checkSecrets, inSecretsManager } from "../../cli/doctor/secrets.ts";
import { checkService } from "../../cli/doctor/service.ts";
import { checkTable } from "../../cli/doctor/storage.ts";
import { nodeFinding, sluiceFinding, stackFinding } from "../../cli/doctor/versions.ts";
import { readHome } from "../../cli/home.ts";
import { natsTrouble } from "../../cli/nats.ts";
import { findPlace, type Place } from "../../cli/place.ts";
import { awsSettings } from "../../infra/local/aws.ts";
import { ensurePeersBucket } from "../../shared/cards/bucket.ts";
import { dynamoPeers } from "../../shared/cards/dynamodb-peers.ts";
import { ownCards } from "../../shared/cards/own.ts";
import { keepLook } from "../../shared/cards/peer-keeping.ts";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { loadAgents } from "../../shared/config/load-agents.ts";
import { timing } from "../../shared/config/timing.ts";
import { NatsError } from "../../shared/nats/errors.ts";
import { ensureConsumers, ensureStreams, tasksConsumer } from "../../shared/nats/index.ts";
import { eventsConsumer } from "../../shared/nats/streams.ts";
import { dynamoPauses } from "../../shared/tasks/dynamodb-pauses.ts";
import { putAt } from "../cards/support/records.ts";
import { type PlayedAws, type PlayedResource, playAws } from "../support/aws.ts";
import { startNats, type TestNats } from "../support/nats-server.ts";
import { type RunningParts, startTestParts } from "../support/parts.ts";
import { type Reached, watchReached } from "../support/reached.ts";
import { run } from "./run.ts";

/** The folder of an operator. */
const cwd = mkdtempSync(join(tmpdir(), "sluice-doctor-"));
const dataDir = join(cwd, ".sluice");
const FIXTURES = join(import.meta.dirname, "../fixtures/deployment");

let nats: TestNats;
let nc: NatsConnection;
let running: RunningParts;
let aws: PlayedAws;
let local: Place;
let sqs: SQSClient;
let reached: Reached;
before(async () => {
  reached = await watchReached();
  mkdirSync(dataDir);
  for (const name of ["agents", "agents.yaml"]) symlinkSync(join(FIXTURES, name), join(cwd, name));
  nats = await startNats();
  nc = await connect({ servers: nats.url });
  running = await startTestParts(dataDir, [nats.url]);
  const { endpoints, stack } = running.parts;
  writeFileSync(
    join(dataDir, "host.json"),
    JSON.stringify({
      pid: process.pid,
      dataDir,
      ...endpoints,
      natsCredentials: "none",
      table: stack.tables[0]?.name,
      bucket: stack.buckets[0],
      outputs: stack.outputs,
      timeScale: 1,
    }),
  );
  local = await findPlace(readHome(cwd));
  sqs = new SQSClient(awsSettings(endpoints.sqs));
  aws = await playAws(endpoints);
  Object.assign(process.env, aws.env); // where clients without an endpoint of their own find AWS
});
after(async () => {
  reached?.[Symbol.dispose]();
  await aws?.[Symbol.asyncDispose]();
  await running?.[Symbol.asyncDispose]();
  await nc?.close();
  await nats?.stop();
  rmSync(cwd, { recursive: true, force: true });
});

const SUPPORT = { runtime: "acme-support", delegates: true };
const RUNTIMES = [SUPPORT];

/** One finding as `level part: says`, or the first of those of a part. */
const textOf = ({ level, part, says }: Finding) => `${level} ${part}: ${says}`;
/** Asserts what is found to be not as it should be: nothing else is, and each says what to do. */
function assertFound(findings: readonly Finding[], ...expected: readonly RegExp[]): void {
  const found = findings.filter(({ level }) => level !== "ok");
  const told = found.map(textOf);
  assert.equal(found.length, expected.length, told.join("\n"));
  for (const [index, pattern] of expected.entries()) assert.match(told[index] ?? "", pattern);
  for (const { todo } of found) assert.ok(todo !== undefined && todo !== "");
}

/** Pulls from every durable there is, as the bridge does; gives what ends it. */
async function pullAll(servers: string): Promise<() => Promise<void>> {
  const own = await connect({ servers });
  const jsm = await jetstreamManager(own);
  for (const stream of ["A2A_TASKS", "A2A_CONTROLS", "A2A_EVENTS"])
    for await (const { name } of jsm.consumers.list(stream)) {
      const consumer = await jetstream(own).consumers.get(stream, name);
      await consumer.consume({ callback: () => {} });
    }
  return () => own.close();
}

const record = z.strictObject({
  level: z.enum(["ok", "warning", "wrong"]),
  part: z.string(),
  says: z.string(),
  todo: z.string().nullable(),
});

/** Whom the fixtures let `boss` hand tasks on to outside of the deployment. */
const TARGETS = ["bob-lobby", "sam-scans", "tom-scans"];

/** What the function `cards` does: our cards lie in the bucket, and the peers that are named there were seen. */
async function playCards(): Promise<void> {
  const { config, agentsDir } = readHome(cwd);
  const { deployment } = readAgentsYaml(config, await loadAgents(agentsDir));
  const now = Date.now();
  const bucket = await ensurePeersBucket(nc);
  const { cards } = ownCards(deployment, { servers: [nats.url], instance: "i", now });
  for (const { runtime, bytes } of cards) await bucket.put(runtime, bytes);
  const client = DynamoDBDocumentClient.from(
    new DynamoDBClient(awsSettings(running.parts.endpoints.dynamodb)),
  );
  const store = dynamoPeers({ client, table: local.outputs.TableName });
  await keepLook(store, { at: now, entries: TARGETS.map((runtime) => putAt(runtime, now)) });
  client.destroy();
}

test("all is well, then NATS is not there, then no host is", async () => {
  const jsm = await jetstreamManager(nc);
  await ensureStreams(jsm);
  const agents = [
    "asker",
    "boss",
    "counted",
    "counted-limited",
    "exec",
    "faulty",
    "maker",
    "narrow",
    "stepper",
    "support",
  ];
  for (const id of agents)
    await ensureConsumers(jsm, { runtime: `acme-${id}`, delegates: id === "boss" }, timing());
  await playCards();
  const stop = await pullAll(nats.url);
  const { code, stdout, stderr } = await run(["doctor"], { cwd });
  assert.equal(code, 0, stdout + stderr);
  for (const line of [
    "^ok {7}node: v",
    "^ok {7}agents: 10 in ",
    "^ok {7}credentials: none are needed$",
    "^ok {7}NATS: reached at nats://127.0.0.1:\\d+, nats-server 2\\.",
    "^ok {7}JetStream: enabled$",
    "^ok {7}clock of NATS: within 10.0 s of ours$",
    "^ok {7}stream A2A_TASKS: as documented, 0 messages$",
    "^ok {7}durables: 21 of 21 as configured, and pulled from$",
    `^ok {7}local host: runs as process ${process.pid}$`,
    "^ok {7}sluice: .*, here and there$",
    "^ok {7}table: .* is ACTIVE$",
    "^ok {7}table index: due is ACTIVE$",
    "^ok {7}bucket: .* is there$",
    "^ok {7}queue tasks: holds 0 messages$",
    "^ok {7}dead letters of work: none$",
    "^ok {7}disk: .* free for ",
    "^A2A: whether peers can work with our agents",
    "^ok {7}policies: 10 of 10 agents take tasks, 10 of them are to be found$",
    "^ok {7}discovery: peers of the guild 101234567890123456 list the agents$",
    "^ok {7}permissions of the command: may do all that can be tried",
    "^ok {7}cards: 10 as peers expect them$",
    "^ok {7}peers: 3 live, 0 stale$",
    "^all is well$",
  ])
    assert.match(stdout, new RegExp(line, "m"));
  await stop();

  const closed = await run(["doctor", "--json", "--nats", "nats://127.0.0.1:1"], { cwd });
  assert.equal(closed.code, 1, closed.stderr);
  const found = closed.json().map((value) => record.parse(value));
  assert.deepEqual(
    found.filter(({ level }) => level !== "ok").map(({ part, level }) => [part, level]),
    [["NATS", "wrong"]],
  );
  assert.match(found.find(({ part }) => part === "NATS")?.says ?? "", /^cannot reach NATS at nats:\/\/127/);

  const elsewhere = mkdtempSync(join(tmpdir(), "sluice-doctor-none-"));
  mkdirSync(join(elsewhere, ".sluice"));
  const none = await run(["doctor", "--nats", nats.url], { cwd: elsewhere });
  assert.equal(none.code, 1);
  assert.match(
    none.stdout,
    /^wrong {4}stack: no local host runs in this folder.*\n {9}→ cd .* && npm start -- --data .*\/\.sluice$/m,
  );
  assert.match(none.stdout, /^ok {7}stream A2A_TASKS/m);
  rmSync(elsewhere, { recursive: true });
  assert.equal((await run(["doctor", "x"], { cwd })).code, 2);
});

describe("NATS", () => {
  let own: TestNats;
  let on: NatsConnection;
  let jsm: JetStreamManager;
  before(async () => {
    own = await startNats();
    on = await connect({ servers: own.url });
    jsm = await jetstreamManager(on);
  });
  after(async () => {
    await on.close();
    await own.stop();
  });
  const check = () =>
    checkNats(
      { servers: [own.url], credentials: "none" },
      { deployment: "acme", runtimes: RUNTIMES, timing: timing(), bridge: bridgeAdvice(local) },
    );

  test("streams that are missing, take other subjects, or differ", async () => {
    const missing = (part: string) => new RegExp(`^wrong ${part}: does not exist`);
    assertFound(
      await check(),
      missing("stream A2A_TASKS"),
      missing("stream A2A_CONTROLS"),
      missing("stream A2A_EVENTS"),
      /^wrong durables: 3 of 3 durables: do not exist$/,
    );
    await ensureStreams(jsm);
    await ensureConsumers(jsm, SUPPORT, timing());
    const stop = await pullAll(own.url);
    assertFound(await check());
    await stop();
    await jsm.streams.update("A2A_TASKS", { max_age: nanos(360_000_000), max_msg_size: 1_000 });
    await jsm.streams.update("A2A_EVENTS", { subjects: ["a2a.v1.event.acme.>"] });
    const [tasks, events] = (await check()).filter(
      ({ part, level }) => part.startsWith("stream") && level !== "ok",
    );
    assert.ok(tasks && events);
    assert.match(
      textOf(tasks),
      /^warning stream A2A_TASKS: differs: max_age is 360000000000000 instead of 0, max_msg_size is 1000 instead of 1048576$/,
    );
    assert.match(textOf(events), /^wrong stream A2A_EVENTS: does not take a2a\.v1\.event\.>$/);
    // What an operator has set is told, and not changed.
    assert.equal((await jsm.streams.info("A2A_TASKS")).config.max_msg_size, 1_000);
    await jsm.streams.update("A2A_TASKS", { max_age: 0, max_msg_size: 1_048_576 });
    await jsm.streams.update("A2A_EVENTS", { subjects: ["a2a.v1.event.>"] });
  });

  test("a stream that is full", async () => {
    await jsm.streams.update("A2A_EVENTS", { max_msgs: 1 });
    const events = async () => (await check()).filter(({ part }) => part === "stream A2A_EVENTS");
    assertFound(await events(), /^warning stream A2A_EVENTS: differs: max_msgs is 1 instead of -1$/);
    await jetstream(on).publish("a2a.v1.event.a.b.c.1", "{}");
    await assert.rejects(jetstream(on).publish("a2a.v1.event.a.b.c.2", "{}"), /maximum messages exceeded/);
    const full = (bound: string) => new RegExp(`^wrong stream A2A_EVENTS: is full, .*: it has ${bound}$`);
    assertFound(await events(), full("1 of max_msgs 1"));
    const { bytes } = (await jsm.streams.info("A2A_EVENTS")).state;
    await jsm.streams.update("A2A_EVENTS", { max_msgs: -1, max_bytes: bytes });
    assertFound(await events(), full(`${bytes} of max_bytes ${bytes}`));
    await jsm.streams.purge("A2A_EVENTS");
    await jsm.streams.update("A2A_EVENTS", { max_bytes: -1 });
  });

  test("durables that differ, are paused, are full, or from which nobody pulls", async () => {
    const name = tasksConsumer(SUPPORT.runtime);
    const tasks = async () => (await check()).filter(({ part }) => part === `durable ${name}`);
    const nobody = async () => (await check()).filter(({ part }) => part === "durables");
    assertFound(await nobody(), /^wrong durables: 3 of 3 durables: nobody pulls$/);
    // A single one of them that somebody pulls from, and the others have lines of their own.
    const events = await jetstream(on).consumers.get("A2A_EVENTS", eventsConsumer(SUPPORT.runtime));
    await events.consume({ callback: () => {} });
    assertFound(await tasks(), /^warning durable .*: nobody pulls right now$/);
    const publish = () =>
      jetstream(on).publish("a2a.v1.task.a.acme-support.m", "{}", { msgID: String(Math.random()) });
    await publish();
    assertFound(await tasks(), /^wrong durable .*: 1 message waits, and nobody pulls$/);
    const drift = { max_ack_pending: 1, ack_wait: nanos(5_000) };
    await jsm.consumers.update("A2A_TASKS", name, drift);
    assertFound(
      await tasks(),
      /^warning durable .*: differs: ack_wait is 5000000000 instead of 120000000000, max_ack_pending is 1 instead of 1000$/,
    );
    assert.equal((await jsm.consumers.info("A2A_TASKS", name)).config.max_ack_pending, 1);
    await ensureConsumers(jsm, SUPPORT, timing());
    await Promise.all(Array.from({ length: 999 }, publish));
    const consumer = await jetstream(on).consumers.get("A2A_TASKS", name);
    let got = 0;
    for await (const _ of await consumer.fetch({ max_messages: 1_000, expires: 10_000 })) got++;
    assert.equal(got, 1_000);
    assertFound(await tasks(), /^warning durable .*: 1000 messages are unacknowledged, as many as may be$/);
    // Only a server of 2.11 or newer can be told to pause one; it then says so.
    const paused = { ...(await jsm.consumers.info("A2A_TASKS", name)), paused: true };
    const finding = amissWith(`durable ${name}`, paused, {});
    assertFound(finding ? [finding] : [], /^wrong durable .*: is paused: nothing is delivered$/);
  });

  test("servers without JetStream, nearly full, or that refuse us", async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "sluice-doctor-nats-"));
    const conf = join(dir, "nats.conf");
    writeFileSync(
      conf,
      `jetstream: {}
       accounts: {
         NONE: { users: [{ user: none, password: none }] }
         SMALL: { jetstream: { max_file: 100K }, users: [
           { user: small, password: small }
           { user: narrow, password: narrow, permissions: { publish: { deny: ["$JS.API.STREAM.INFO.>"] } } }
         ] }
       }`,
    );
    const server = await startNats(["-c", conf]);
    t.after(() => server.stop());
    const as = (user: string) => {
      const file = join(dir, user);
      writeFileSync(file, JSON.stringify({ user, password: user }));
      return checkNats(
        { servers: [server.url], credentials: `file:${file}` },
        { deployment: "acme", runtimes: [], timing: timing(), bridge: bridgeAdvice(local) },
      );
    };
    assertFound(await as("none"), /^wrong JetStream: does not answer/);
    assertFound(await as("stranger"), /^wrong NATS: cannot reach NATS at nats:\/\/127/);
    const small = await connect({ servers: server.url, user: "small", pass: "small" });
    t.after(() => small.close());
    await ensureStreams(await jetstreamManager(small));
    await jetstream(small).publish("a2a.v1.task.a.b.c", "x".repeat(85_000));
    assertFound(await as("small"), /^warning JetStream: 8\d % of the account's storage is taken$/);
    const narrow = (await as("narrow")).map(textOf);
    const isRefusal = (says: string) => /^wrong .*: cannot be asked: .*\$JS\.API\.STREAM\.INFO/.test(says);
    assert.ok(narrow.some(isRefusal), narrow.join("\n"));
    rmSync(dir, { recursive: true });
  });

  test("of a stack that cannot be read it is not known", async () => {
    assertFound(await examineAll(readHome(cwd), undefined, undefined), /^warning NATS: not looked at/);
  });

  test("what to do depends on where the server, and the bridge, should be", () => {
    const todo = (server: string, start?: string) => {
      const where = { servers: [server], credentials: "none", ...(start !== undefined && { start }) };
      return natsTrouble(where, new NatsError("nats_unreachable", "no")).todo;
    };
    assert.match(todo("nats://127.0.0.1:4222"), /^start Sluice with `npm start`, or name/);
    assert.match(
      todo("nats://127.0.0.1:4222", "npm start -- --data x"),
      /^start Sluice with `.* x`, or name/,
    );
    assert.match(todo("nats://acme.example:4222"), /^see that a server runs there/);
    const here = bridgeAdvice(local);
    assert.match(here.renew, /restart of `npm start`/);
    assert.ok(here.look.includes(join(dataDir, "logs", "bridge.log")), here.look);
    const there = bridgeAdvice({ deployed: { name: "sluice-acme", status: "CREATE_COMPLETE" } });
    assert.match(there.renew, /deploy again/);
    assert.match(there.look, /log group/);
    assert.match(bridgeAdvice(undefined).look, /npm start/);
    const elsewhere = bridgeAdvice(undefined, "npm start -- --data x");
    for (const advice of [elsewhere.begin, elsewhere.renew, elsewhere.look])
      assert.match(advice, /^start the bridge \(`npm start -- --data x`/);
  });

  test("an old server, and clocks that differ", () => {
    const version = (text: string) => serverFinding({ servers: ["nats://a:4222"] }, text).level;
    assert.deepEqual(["2.9.25", "1.4.0", "2.10.0", "2.14.1", "3.0.0"].map(version), [
      "wrong",
      "wrong",
      "ok",
      "ok",
      "ok",
    ]);
    const clock = (ms: number) => clockFinding("NATS", ms).level;
    assert.deepEqual([9_999, 10_000, 59_999, 60_000].map(clock), ["ok", "warning", "warning", "wrong"]);
    assert.equal(textOf(clockFinding("AWS", -61_000)), "wrong clock of AWS: ours is 1 min 1 s behind");
  });
});

describe("the parts", () => {
  const withOutputs = (more: Record<string, string>): Place => ({
    ...local,
    outputs: { ...local.outputs, ...more },
  });

  test("a table that is missing, has other keys, or no index", async () => {
    assertFound(await checkTable(withOutputs({ TableName: "none" })), /^wrong table: none does not exist$/);
    const client = new DynamoDBClient(awsSettings(running.parts.endpoints.dynamodb));
    const key = (AttributeName: string, KeyType: "HASH" | "RANGE") => ({ AttributeName, KeyType });
    const create = (TableName: string, names: readonly string[]) =>
      client.send(
        new CreateTableCommand({
          TableName,
          BillingMode: "PAY_PER_REQUEST",
          AttributeDefinitions: names.map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
          KeySchema: names.map((name, index) => key(name, index === 0 ? "HASH" : "RANGE")),
        }),
      );
    await create("bare", ["pk", "sk"]);
    await create("other", ["id"]);
    client.destroy();
    const index = /^wrong table index: due does not exist: nothing that is due is found$/;
    assertFound(await checkTable(withOutputs({ TableName: "bare" })), index);
    assertFound(
      await checkTable(withOutputs({ TableName: "other" })),
      /^wrong table: its keys are id HASH instead of pk HASH, sk RANGE$/,
      index,
    );
    assertFound(
      await checkBucket(withOutputs({ BucketName: "none" })),
      /^wrong bucket: none does not exist: large values are lost$/,
    );
  });

  test("queues that are missing, full, lose their dead letters, or have some", async () => {
    const { TasksQueueUrl: url = "", TasksDeadQueueUrl: deadUrl = "" } = local.outputs;
    assertFound(
      await checkQueues({ ...local, outputs: { TableName: "t", BucketName: "b" } }),
      /^wrong queues: the stack does not tell/,
    );
    assertFound(
      await checkQueues(withOutputs({ TasksQueueUrl: `${url}-none`, WorkDeadQueueUrl: `${deadUrl}-none` })),
      /^wrong queue tasks: does not exist$/,
      /^wrong dead letters of work: the queue does not exist$/,
    );
    const setPolicy = (policy: string) =>
      sqs.send(new SetQueueAttributesCommand({ QueueUrl: url, Attributes: { RedrivePolicy: policy } }));
    const arn = (name: string) => `arn:aws:sqs:us-east-1:000000000000:${name}`;
    const dead = new URL(deadUrl).pathname.split("/").at(-1) ?? "";
    const events = new URL(local.outputs.EventsDeadQueueUrl ?? "").pathname.split("/").at(-1) ?? "";
    const policy = (name: string, maxReceiveCount: number) =>
      JSON.stringify({ deadLetterTargetArn: arn(name), maxReceiveCount });
    await setPolicy("");
    assertFound(await checkQueues(local), /^wrong queue tasks: has no dead-letter queue/);
    await setPolicy(policy(events, 5));
    assertFound(
      await checkQueues(local),
      /^wrong queue tasks: its dead letters go to arn.*, where nobody looks$/,
    );
    await setPolicy(policy(dead, 4));
    assertFound(
      await checkQueues(local),
      /^wrong queue tasks: gives a message up after 4 receives; .* on 5$/,
    );
    await setPolicy(policy(dead, 5));
    await sqs.send(new SendMessageCommand({ QueueUrl: deadUrl, MessageBody: "x" }));
    assertFound(await checkQueues(local), /^wrong dead letters of tasks: 1$/);
    const fill = (count: number) =>
      sqs.send(
        new SendMessageBatchCommand({
          QueueUrl: url,
          Entries: Array.from({ length: count }, (_, index) => ({ Id: String(index), MessageBody: "x" })),
        }),
      );
    for (let lot = 0; lot < 99; lot++) await fill(10);
    await fill(9);
    assertFound(await checkQueues(local), /^wrong dead letters/);
    await fill(1);
    assertFound(
      await checkQueues(local),
      /^warning queue tasks: holds 1000 messages$/,
      /^wrong dead letters/,
    );
  });

  test("an agent that is paused", async () => {
    const client = DynamoDBDocumentClient.from(
      new DynamoDBClient(awsSettings(running.parts.endpoints.dynamodb)),
    );
    const pauses = dynamoPauses({ client, table: local.outputs.TableName });
    const look = () => checkPauses(local, readHome(cwd), RUNTIMES);
    assert.deepEqual(await look(), []);
    await pauses.pause(SUPPORT.runtime, { at: 1, by: "eve", refuse: true });
    assertFound(await look(), /^warning agent acme-support: paused since .* by eve: new tasks are rejected$/);
    await pauses.resume(SUPPORT.runtime);
    client.destroy();
  });

  test("a part that does not answer, and agents that cannot be read", async () => {
    assert.ok(local.local);
    const closed = { ...local, local: { ...local.local, dynamodb: "http://127.0.0.1:1" } };
    const folder = mkdtempSync(join(tmpdir(), "sluice-doctor-agents-"));
    mkdirSync(join(folder, "agents"));
    writeFileSync(join(folder, "agents.yaml"), "deployment: acme\nagents: { nobody: {} }\n");
    const where = { servers: ["nats://127.0.0.1:1"], credentials: "file:/none" };
    const findings = await examineAll(readHome(folder), closed, where);
    rmSync(folder, { recursive: true });
    const says = (part: string) =>
      findings
        .filter((of) => of.part === part)
        .map(textOf)
        .join("\n");
    assert.match(says("table"), /^wrong table: cannot be asked: .*ECONNREFUSED/);
    assert.match(says("agents"), /^wrong agents: .*agents\.yaml:2: .*nobody/);
    assert.match(says("credentials"), /^wrong credentials: .*file:\/none: cannot be read$/);
    // They are not to be read for NATS either, which is not said twice.
    assert.equal(says("NATS"), "");
  });

  test("an alarm of the local host that is in ALARM, with its runbook", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-doctor-alarms-"));
    const look = (text?: string, timeScale = 1) => {
      if (text !== undefined) writeFileSync(join(folder, "alarms.json"), text);
      return checkAlarms({ local: { ...parts, pid: 1, outputs: {}, dataDir: folder, timeScale } });
    };
    const alarm = (id: string, state: string) => ({
      name: `sluice-local-${id}`,
      description: `Something is \u001b[2Jamiss. Runbook: docs/runbooks/${id}.md`,
      state,
      since: "2026-08-01T12:00:00.000Z",
    });
    const of = (...alarms: object[]) => JSON.stringify({ alarms });

    assert.deepEqual(await look(), [], "a host that keeps none");
    const calm = [alarm("no-results", "OK"), alarm("queue-age", "INSUFFICIENT_DATA")];
    assert.deepEqual(await look(of(...calm)), [
      { level: "ok", part: "alarms", says: "none of 2 is in ALARM" },
    ]);

    const text = of(...calm, alarm("dead-letters", "ALARM"));
    const [found, ...others] = await look(text);
    assert.deepEqual(others, []);
    assert.deepEqual(
      [found?.level, found?.part, found?.todo],
      ["warning", "alarm sluice-local-dead-letters", "see docs/runbooks/dead-letters.md"],
    );
    assert.match(found?.says ?? "", /^in ALARM since 2026-08-0\d \d\d:\d\d:\d\d: Something is amiss\.$/);
    assert.match((await look(text, 60))[0]?.says ?? "", /^in ALARM: Something/);

    const [broken] = await look("{");
    assert.deepEqual([broken?.level, broken?.part], ["wrong", "alarms"]);
    rmSync(folder, { recursive: true });
  });

  test("a disk that is full, or nearly, and a data folder that is gone", async () => {
    const look = (free: number) => checkDisk(local, async () => free);
    const MiB = 1_048_576;
    assertFound(await look(256 * MiB));
    assertFound(await look(256 * MiB - 1), /^warning disk: 268\.4 MB free for \//);
    assertFound(await look(32 * MiB), /^warning disk/);
    assertFound(await look(32 * MiB - 1), /^wrong disk: 33\.6 MB free for \//);
    assertFound(await look(0), /^wrong disk: 0 bytes free/);
    assert.deepEqual(await checkDisk({}), [], "a stack in AWS");
    const gone = { ...parts, pid: 1, outputs: {}, dataDir: join(cwd, "gone"), timeScale: 1 };
    assertFound(await checkDisk({ local: gone }), /^wrong disk: cannot be asked: ENOENT/);
  });
});

/** Of a local host of which no more is looked at. */
const parts = { dynamodb: "http://127.0.0.1:1", s3: "http://127.0.0.1:1", table: "t", bucket: "b" };

describe("a deployed stack", () => {
  const RESOURCES: PlayedResource[] = [
    ["bridge0A1B2C3D", "AWS::Lambda::Function", "acme-bridge"],
    ["CustomHelper", "AWS::Lambda::Function", "acme-helper"],
    ["admitSource", "AWS::Lambda::EventSourceMapping", "uuid-1"],
    ["Schedulesbridge", "AWS::Events::Rule", "acme-rule"],
    ["bridgeCluster", "AWS::ECS::Cluster", "acme-cluster"],
    ["bridgeService", "AWS::ECS::Service", "arn:aws:ecs:us-east-1:0:service/acme-cluster/acme-bridge"],
    ["bridgeAlarm", "AWS::CloudWatch::Alarm", "acme-bridge-silent"],
    ["bridgeTask", "AWS::ECS::TaskDefinition", "arn:aws:ecs:us-east-1:0:task-definition/acme:1"],
  ];
  const resources = RESOURCES.map(([id, type, name]) => ({ id, type, name }));
  const ROLE = "arn:aws:iam::0:role/acme-bridge";
  const FUNCTION = { State: "Active", LastUpdateStatus: "Successful", Runtime: "nodejs24.x", Role: ROLE };
  const TASK_ROLE = "arn:aws:iam::0:role/acme-service";
  const SERVICE = {
    serviceName: "acme-bridge",
    clusterArn: "arn:aws:ecs:us-east-1:0:cluster/acme-cluster",
    status: "ACTIVE",
    desiredCount: 1,
    runningCount: 1,
  };
  const ALARM = {
    StateValue: "OK",
    StateTransitionedTimestamp: Date.parse("2026-08-01T12:00:00Z") / 1_000,
    AlarmDescription: "It is old. Runbook: docs/runbooks/queue-age.md",
    ActionsEnabled: true,
    AlarmActions: ["arn:aws:sns:us-east-1:0:acme"],
  };
  const services = (more: object) => ({ services: [{ ...SERVICE, ...more }] });
  const rule = (status: string) =>
    `<LifecycleConfiguration><Rule><ID>v</ID><Filter><Prefix>values/</Prefix></Filter><Status>${status}</Status><Expiration><Days>90</Days></Expiration></Rule></LifecycleConfiguration>`;
  const block = (policy: boolean) =>
    `<PublicAccessBlockConfiguration><BlockPublicAcls>true</BlockPublicAcls><IgnorePublicAcls>true</IgnorePublicAcls><BlockPublicPolicy>${policy}</BlockPublicPolicy><RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>`;
  const MAPPING = { UUID: "uuid-1", State: "Enabled", FunctionResponseTypes: ["ReportBatchItemFailures"] };

  before(() => {
    const { played } = aws;
    const outputs = { ...local.outputs, NatsCredentials: "secret:acme/nats" };
    played.stacks["sluice-acme"] = { outputs, resources: RESOURCES };
    const stages = { a: ["AWSCURRENT"] };
    played.secrets["acme/nats"] = { Name: "acme/nats", ARN: "arn:aws:s", VersionIdsToStages: stages };
    played.ecs.DescribeServices = services({});
    played.ecs.DescribeTaskDefinition = { taskDefinition: { taskRoleArn: TASK_ROLE } };
    played.s3.encryption =
      "<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>";
    played.s3.publicAccessBlock = block(true);
    played.s3.lifecycle = rule("Enabled");
    played.functions["acme-bridge"] = FUNCTION;
    played.mappings["uuid-1"] = MAPPING;
    played.alarms["acme-bridge-silent"] = { ...ALARM, AlarmName: "acme-bridge-silent" };
    played.rules["acme-rule"] = { Name: "acme-rule", State: "ENABLED", ScheduleExpression: "rate(1 minute)" };
    const enabled = { TimeToLiveStatus: "ENABLED", AttributeName: "expiresAt" };
    played.dynamodb.DescribeTimeToLive = { TimeToLiveDescription: enabled };
    played.dynamodb.DescribeContinuousBackups = {
      ContinuousBackupsDescription: {
        ContinuousBackupsStatus: "ENABLED",
        PointInTimeRecoveryDescription: { PointInTimeRecoveryStatus: "ENABLED" },
      },
    };
  });

  test("is looked at as a whole, with the clock of AWS", async () => {
    aws.played.aheadMs = 120_000;
    const { code, json, stderr } = await run(
      ["doctor", "--stack", "sluice-acme", "--nats", nats.url, "--json"],
      {
        cwd,
        env: aws.env,
      },
    );
    aws.played.aheadMs = 0;
    assert.equal(code, 1, stderr);
    const found = json().map((value) => record.parse(value));
    const level = (part: string) => found.find((of) => of.part === part)?.level;
    for (const part of [
      "stack sluice-acme",
      "sluice",
      "time to live",
      "backups",
      "bucket",
      "queue work",
      "function acme-bridge",
      "mapping admitSource",
      "schedule Schedulesbridge",
      "bridge service",
      "alarms",
      "roles and the secret",
      "bucket's encryption",
      "bucket's public access",
      "bucket's lifecycle",
    ])
      assert.equal(level(part), "ok", `${part}: ${JSON.stringify(found.find((of) => of.part === part))}`);
    assert.equal(level("function acme-helper"), undefined);
    const clock = found.find(({ part }) => part === "clock of AWS");
    assert.equal(clock?.level, "wrong");
    assert.match(clock?.says ?? "", /^ours is (1 min 5\d s|2 min.*) behind$/);

    const none = await run(["doctor", "--stack", "sluice-none"], { cwd, env: aws.env });
    assert.equal(none.code, 2);
    const closed = await run(["doctor", "--stack", "sluice-acme"], {
      cwd,
      env: { ...aws.env, AWS_ENDPOINT_URL: "http://127.0.0.1:1" },
    });
    assert.equal(closed.code, 1);
    assert.match(closed.stdout, /^wrong {4}stack: cannot read the stack sluice-acme: .*ECONNREFUSED/m);
  });

  /** The findings after each change of what is played; it is undone afterwards. */
  async function changed<T extends object | string>(
    of: Record<string, T | undefined>,
    key: string,
    value: T | undefined,
    look: () => Promise<readonly Finding[]>,
    ...expected: RegExp[]
  ): Promise<void> {
    const known = of[key];
    of[key] = value;
    assertFound(await look(), ...expected);
    of[key] = known;
  }

  test("functions that never run, or whose update failed", async () => {
    const { played } = aws;
    const look = () => checkFunctions(resources);
    assertFound(await look());
    const check = (value: object | undefined, expected: RegExp) =>
      changed(played.functions, "acme-bridge", value, look, expected);
    await check(undefined, /^wrong function acme-bridge: does not exist any more$/);
    await check({ ...FUNCTION, State: "Failed", StateReason: "no role" }, /^wrong .*: is Failed: no role$/);
    await check(
      { ...FUNCTION, LastUpdateStatus: "Failed", LastUpdateStatusReason: "x" },
      /^wrong .*update failed: x$/,
    );
    await check({ ...FUNCTION, LastUpdateStatus: "InProgress" }, /^warning .*: is being updated$/);
    played.concurrency["acme-bridge"] = 0;
    assertFound(await look(), /^wrong function acme-bridge: its concurrency is 0: it never runs$/);
    played.concurrency["acme-bridge"] = 2;
    assertFound(await look());
  });

  test("mappings and schedules that are disabled, gone, or not to be asked", async () => {
    const { played } = aws;
    const mappings = (value: object | undefined, expected: RegExp) =>
      changed(played.mappings, "uuid-1", value, () => checkFunctions(resources), expected);
    await mappings(
      { ...MAPPING, State: "Disabled" },
      /^wrong mapping admitSource: is Disabled: its queue is not/,
    );
    await mappings({ ...MAPPING, State: "Creating" }, /^warning .*: is Creating$/);
    await mappings({ ...MAPPING, FunctionResponseTypes: [] }, /^wrong .*: does not report single failures/);
    await mappings(
      { ...MAPPING, LastProcessingResult: "PROBLEM: Function call failed" },
      /^warning .*: PROBLEM: Function/,
    );
    await mappings(undefined, /^wrong mapping admitSource: does not exist any more$/);
    const rules = (value: object | undefined, expected: RegExp) =>
      changed(played.rules, "acme-rule", value, () => checkSchedules(resources), expected);
    await rules(
      { State: "DISABLED" },
      /^wrong schedule Schedulesbridge: is DISABLED: nothing starts its function$/,
    );
    await rules(undefined, /^wrong schedule Schedulesbridge: does not exist any more$/);
    played.refused.add("DescribeRule");
    assertFound(await checkSchedules(resources), /^wrong schedule .*: cannot be asked: you are not allowed/);
    played.refused.clear();
  });

  test("alarms that have risen, with their runbooks, that tell nobody, or are gone", async () => {
    const { alarms, refused } = aws.played;
    const names = Array.from({ length: 101 }, (_, at) => `acme-queue-age-${at}`);
    const look = () =>
      checkStackAlarms(names.map((name) => ({ id: name, type: "AWS::CloudWatch::Alarm", name })));
    for (const AlarmName of names) alarms[AlarmName] = { ...ALARM, AlarmName };
    assert.deepEqual(await checkStackAlarms(resources.slice(0, 2)), []);
    assert.deepEqual((await look()).map(textOf), ["ok alarms: none of 101 is in ALARM"]);

    const [first = "", second = "", third = ""] = names;
    const last = names.at(-1) ?? "";
    alarms[last] = { ...ALARM, AlarmName: last, StateValue: "ALARM" };
    alarms[first] = { ...ALARM, AlarmName: first, StateValue: "INSUFFICIENT_DATA", ActionsEnabled: false };
    alarms[second] = { ...ALARM, AlarmName: second, ActionsEnabled: false, AlarmActions: [] };
    delete alarms[third];
    const found = await look();
    assertFound(
      found,
      /^warning alarm acme-queue-age-100: in ALARM since 2026-08-0\d \d\d:\d\d:\d\d: It is old\.$/,
      /^warning alarms: nobody is told of 1, whose actions are disabled: acme-queue-age-0$/,
      /^warning alarms: nobody is told of 1, whose actions are none: acme-queue-age-1$/,
      /^warning alarm acme-queue-age-2: does not exist any more$/,
    );
    assert.deepEqual(
      found.map(({ todo }) => todo),
      [
        "see docs/runbooks/queue-age.md",
        "aws cloudwatch enable-alarm-actions --alarm-names acme-queue-age-0",
        "deploy the stack again",
        "deploy the stack again",
      ],
    );
    refused.add("DescribeAlarms");
    assertFound(await look(), /^wrong alarms: cannot be asked: you are not allowed/);
    refused.clear();
  });

  test("a bridge service that is gone, is to run nothing, does not run, or could not be deployed", async () => {
    const { ecs, refused } = aws.played;
    const look = () => checkService(resources);
    const check = (more: object, expected: RegExp) =>
      changed(ecs, "DescribeServices", services(more), look, expected);
    assert.deepEqual((await look()).map(textOf), ["ok bridge service: 1 of 1 task runs"]);
    assert.deepEqual(await checkService([]), []);
    await check({ status: "INACTIVE" }, /^wrong bridge service: does not exist any more: nothing is pulled$/);
    await check({ desiredCount: 0, runningCount: 0 }, /^wrong .*: is to run no task: nothing is pulled$/);
    ecs.ListTasks = { taskArns: [] };
    await check(
      { runningCount: 0 },
      /^wrong .*: 0 of 1 task runs: .*; none has stopped within the last hour$/,
    );
    ecs.ListTasks = { taskArns: ["a", "b"] };
    const stopped = (stoppedAt: number, stoppedReason: string, container: object) => ({
      ...{ stoppedAt, stoppedReason, containers: [{ name: "bridge", ...container }] },
    });
    ecs.DescribeTasks = {
      tasks: [
        stopped(1, "long ago", {}),
        stopped(2, "Essential container exited", { reason: "OutOfMemoryError", exitCode: 137 }),
      ],
    };
    await check(
      { runningCount: 0 },
      /: nothing is pulled; the last one has stopped: Essential container exited; OutOfMemoryError$/,
    );
    ecs.DescribeTasks = { tasks: [stopped(2, "exited", { exitCode: 1 })] };
    await check(
      { desiredCount: 2 },
      /^warning .*: 1 of 2 tasks run; .*: exited; its container ended with 1$/,
    );
    refused.add("ListTasks");
    await check({ runningCount: 0 }, /; allow ecs:ListTasks and ecs:DescribeTasks, to know why/);
    refused.clear();
    const failed = { rolloutState: "FAILED", rolloutStateReason: "tasks failed to start" };
    await check({ deployments: [failed] }, /^warning .*; its last deployment has failed: tasks failed to/);
    refused.add("DescribeServices");
    assertFound(await look(), /^wrong bridge service: cannot be asked: you are not allowed/);
    refused.clear();
  });

  test("roles that may not read the secret of NATS, or of which that cannot be known", async () => {
    const { decisions, functions, refused, secrets } = aws.played;
    const place = await findPlace({}, "sluice-acme");
    const look = () => checkReaders(place, resources);
    assert.deepEqual((await look()).map(textOf), ["ok roles and the secret: 2 of 2 may read it"]);
    decisions[ROLE] = "implicitDeny";
    assertFound(await look(), /^wrong role of acme-bridge: may not read the secret of NATS \(implicitDeny\)/);
    decisions[TASK_ROLE] = "explicitDeny";
    assertFound(
      await look(),
      /^wrong role of acme-bridge/,
      /^wrong role of the bridge service: .*explicitDeny/,
    );
    refused.add("SimulatePrincipalPolicy");
    const unknown =
      /^warning role of .*: it could not be checked whether .*: you are not allowed to do this$/;
    assertFound(await look(), unknown, unknown);
    refused.clear();
    refused.add("DescribeSecret");
    assertFound(await look(), /^wrong roles and the secret: cannot be asked: you are not allowed/);
    refused.clear();
    delete decisions[ROLE];
    delete decisions[TASK_ROLE];
    // What is not there has a line of its own.
    await changed(functions, "acme-bridge", undefined, look);
    await changed(secrets, "acme/nats", undefined, look);
    assert.deepEqual(await checkReaders({ outputs: { ...place.outputs, NatsCredentials: "none" } }, []), []);
  });

  test("a bucket that is not encrypted, not closed, or keeps values for ever", async () => {
    const { s3, refused } = aws.played;
    const place = await findPlace({}, "sluice-acme");
    const check = (word: string, value: string | undefined, expected: RegExp) =>
      changed(s3, word, value, () => checkBucket(place), expected);
    assertFound(await checkBucket(place));
    await check("encryption", undefined, /^wrong bucket's encryption: there is none$/);
    await check("publicAccessBlock", block(false), /^wrong bucket's public .* blocked by BlockPublicPolicy$/);
    await check(
      "publicAccessBlock",
      undefined,
      /^wrong .*: is not blocked by BlockPublicAcls, BlockPublicPol/,
    );
    await check("lifecycle", undefined, /^warning bucket's lifecycle: no rule expires values: they are kept/);
    await check("lifecycle", rule("Disabled"), /^warning bucket's lifecycle: no rule expires values/);
    refused.add("lifecycle");
    assertFound(await checkBucket(place), /^wrong bucket's lifecycle: cannot be asked: /);
    refused.clear();
  });

  test("a table that keeps what it should not, or could not be brought back, or is being changed", async () => {
    const place = await findPlace({}, "sluice-acme");
    const check = (action: string, value: object, ...expected: RegExp[]) =>
      changed(aws.played.dynamodb, action, value, () => checkTable(place), ...expected);
    await check(
      "DescribeTimeToLive",
      { TimeToLiveDescription: { TimeToLiveStatus: "DISABLED" } },
      /^warning time to live: is DISABLED: records are kept for ever$/,
    );
    await check(
      "DescribeContinuousBackups",
      { ContinuousBackupsDescription: { ContinuousBackupsStatus: "ENABLED" } },
      /^warning backups: point-in-time recovery is off/,
    );
    const keys = (...names: string[]) =>
      names.map((AttributeName, index) => ({ AttributeName, KeyType: index === 0 ? "HASH" : "RANGE" }));
    const index = { IndexName: "due", KeySchema: keys("dueShard", "dueAt"), IndexStatus: "CREATING" };
    const table = { TableName: "t", KeySchema: keys("pk", "sk"), GlobalSecondaryIndexes: [index] };
    await check(
      "DescribeTable",
      { Table: { ...table, TableStatus: "UPDATING" } },
      /^warning table: t is UPDATING$/,
      /^wrong table index: due is CREATING$/,
    );
    const other = { ...index, KeySchema: keys("dueAt") };
    await check(
      "DescribeTable",
      { Table: { ...table, TableStatus: "ARCHIVED", GlobalSecondaryIndexes: [other] } },
      /^wrong table: t is ARCHIVED$/,
      /^wrong table index: its keys are dueAt HASH instead of dueShard HASH, dueAt RANGE$/,
    );
    delete aws.played.dynamodb.DescribeTable;
  });

  test("secrets that are not there, empty, or only on this machine; they are never shown", async () => {
    const { secrets } = aws.played;
    const look = (credentials: string) => checkSecrets(credentials, true, inSecretsManager);
    assertFound(await look("none"));
    assertFound(await look("secret:nats"), /^wrong secret nats: does not exist$/);
    secrets.nats = { Name: "nats", VersionIdsToStages: { a: ["AWSPENDING"] } };
    assertFound(await look("secret:nats"), /^wrong secret nats: has no value$/);
    secrets.nats = { Name: "nats", VersionIdsToStages: { a: ["AWSCURRENT"] } };
    assert.deepEqual((await look("secret:nats")).map(textOf), ["ok secret nats: is set"]);
    secrets.nats = { Name: "nats", DeletedDate: 1_785_585_600, VersionIdsToStages: { a: ["AWSCURRENT"] } };
    assertFound(await look("secret:nats"), /^wrong secret nats: does not exist$/);
    const file = join(cwd, "creds");
    assertFound(await look(`file:${file}`), /^wrong credentials: file:.*creds is a file of this machine$/);
    writeFileSync(file, "not one token");
    const own = () => checkSecrets(`file:${file}`, false, inSecretsManager);
    await assert.rejects(own(), /expected a \.creds file/);
    writeFileSync(file, "s3cret");
    const told = (await own()).map(textOf).join();
    assert.equal(told, `ok credentials: file:${file} is set`);
  });

  test("versions that differ, and deployments that are not in force", () => {
    assert.deepEqual(
      ["v24.0.0", "v22.1.0"].map((text) => nodeFinding(text).level),
      ["ok", "wrong"],
    );
    const theirs = (Version?: string) =>
      textOf(
        sluiceFinding(
          {
            label: "the stack x",
            outputs: { TableName: "t", BucketName: "b", ...(Version && { Version }) },
          },
          "1.0.0",
        ),
      );
    assert.equal(theirs("1.0.0"), "ok sluice: 1.0.0, here and there");
    assert.equal(theirs("0.9.0"), "warning sluice: the stack x runs 0.9.0, this is 1.0.0");
    assert.equal(theirs(), "warning sluice: the stack x tells no version");
    const stack = (status: string) => stackFinding({ name: "x", status }).level;
    assert.deepEqual(
      ["UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_FAILED"].map(
        stack,
      ),
      ["ok", "warning", "warning", "wrong"],
    );
  });
});

test("every failure that doctor can name is produced here", async () => {
  const folder = join(import.meta.dirname, "../../cli/doctor");
  assert.deepEqual(await reached.unreached(folder, /(?<!function )\b(wrong|warning)\(/g), []);
});
