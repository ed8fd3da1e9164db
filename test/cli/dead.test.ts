import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  DeleteMessageCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import * as z from "zod";
import { letterOf } from "../../cli/dead/letter.ts";
import { meantLetter } from "../../cli/dead/open.ts";
import { pairsOf } from "../../cli/dead/pairs.ts";
import { forwardedOf, outgoing } from "../../functions/bridge/forward.ts";
import { awsSettings } from "../../infra/local/aws.ts";
import { type Host, startHost } from "../../infra/local/host.ts";
import { timing } from "../../shared/config/timing.ts";
import {
  controlsConsumer,
  ensureConsumers,
  ensureStreams,
  tasksConsumer,
  term,
} from "../../shared/nats/index.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import type { Head } from "../../shared/tasks/items.ts";
import type { Forwarded } from "../../shared/tasks/messages.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { type PlayedAws, playAws } from "../support/aws.ts";
import { startNats, type TestNats } from "../support/nats-server.ts";
import { Peer } from "../support/peer.ts";
import { SENDER, testAssembly } from "../support/sluice.ts";
import { until } from "../support/until.ts";
import { onTerminal, skip } from "./on-terminal.ts";
import { run } from "./run.ts";

/** The folder of an operator, in which the local host runs. */
const cwd = mkdtempSync(join(tmpdir(), "sluice-dead-"));
const SUPPORT = "acme-support";
const ASKER = "acme-asker";

let nats: TestNats;
let peer: Peer;
let host: Host;
let aws: PlayedAws;
let sqs: SQSClient;
let store: Store;
/** What the bridge would have forwarded before there was a host: JetStream has given it up since. */
let lost: { poisonous: Forwarded; plain: Forwarded; large: Forwarded; cancel: Forwarded };

before(async () => {
  nats = await startNats();
  peer = await Peer.connect(nats.url, SENDER);
  const jsm = await jetstreamManager(peer.nc);
  await ensureStreams(jsm);
  for (const runtime of [SUPPORT, ASKER])
    await ensureConsumers(jsm, { runtime, delegates: false }, timing(20));
  const tasks = [];
  for (const messageId of ["msg_poisonous", "msg_plain", "msg_large"]) {
    await peer.ask(SUPPORT, { channelRef: "support" }, { messageId });
    tasks.push(await pulled("A2A_TASKS", tasksConsumer(SUPPORT)));
  }
  const [poisonous, plain, large] = tasks;
  await peer.control(ASKER, peer.taskId(ASKER, "msg_asked"), "cancel", 9);
  const cancel = await pulled("A2A_CONTROLS", controlsConsumer(ASKER));
  assert.ok(poisonous && plain && large);
  // Or it would be delivered again before its function gives it up.
  for (const { ackSubject } of [poisonous, plain, large, cancel]) await term(peer.nc, ackSubject, "given up");
  const { body: _, ...withoutBody } = large;
  lost = { poisonous, plain, large: withoutBody, cancel };

  const dataDir = join(cwd, ".sluice");
  mkdirSync(dataDir);
  host = await startHost({
    dataDir,
    assemblyDir: await testAssembly(),
    nats: { servers: [nats.url] },
    timeScale: 20,
  });
  sqs = new SQSClient(awsSettings(host.endpoints.sqs));
  store = dynamoStore({
    client: DynamoDBDocumentClient.from(new DynamoDBClient(awsSettings(host.endpoints.dynamodb)), {
      marshallOptions: { removeUndefinedValues: true },
    }),
    table: host.tableName,
  });
  aws = await playAws(host.endpoints);
});
after(async () => {
  await aws?.[Symbol.asyncDispose]();
  await host?.stop();
  await peer?.close();
  await nats?.stop();
  rmSync(cwd, { recursive: true, force: true });
});

/** The next message of a durable, as the bridge forwards it. */
async function pulled(stream: string, durable: string): Promise<Forwarded> {
  const consumer = await jetstream(peer.nc).consumers.get(stream, durable);
  const message = await consumer.next({ expires: 10_000 });
  assert.ok(message);
  return forwardedOf(message);
}

/** Puts a message into a dead-letter queue; gives its id. */
async function dies(queue: string, body: string, attributes?: Record<string, string>): Promise<string> {
  const { deadUrl } = pairsOf(host.outputs).find(({ name }) => name === queue) ?? {};
  const given = Object.entries(attributes ?? {}).map(([key, StringValue]) => [
    key,
    { DataType: "String", StringValue },
  ]);
  const { MessageId = "" } = await sqs.send(
    new SendMessageCommand({
      QueueUrl: deadUrl,
      MessageBody: body,
      MessageAttributes: Object.fromEntries(given),
    }),
  );
  return MessageId;
}

const dead = (...args: string[]) => run(["dead", ...args], { cwd });

const record = z.strictObject({
  id: z.string(),
  queue: z.string(),
  task: z.string().nullable(),
  message: z.string().nullable(),
  from: z.string().nullable(),
  to: z.string().nullable(),
  sentAt: z.iso.datetime(),
  receives: z.int().positive(),
  stream: z.string().nullable(),
  seq: z.int().nullable(),
  why: z.string().nullable(),
});
const listed = async (...args: string[]) => {
  const { code, stderr, json } = await dead("list", "--json", ...args);
  assert.equal(code, 0, stderr);
  return z.array(record).parse(json());
};

/** A head in the table, of a task that nobody has claimed and no sweep looks at. */
async function headOf(more: Partial<Head> & { taskId: string }): Promise<void> {
  const now = Date.now();
  await store.admit({
    messageId: more.taskId,
    from: SENDER,
    to: SUPPORT,
    digest: "d",
    state: "TASK_STATE_SUBMITTED",
    epoch: 0,
    beat: 0,
    published: 1,
    decidedAt: now,
    deadline: now + 3_600_000,
    expiresAt: Math.ceil(now / 1_000) + 86_400,
    skill: "task",
    input: { text: JSON.stringify({ a2a: "hello", channelRef: "support", skillId: "task" }) },
    ...more,
  });
}

test("a task message that its function has given up is shown with its reason, and admitted once redriven", async () => {
  const body = outgoing(lost.poisonous).body;
  const messageId = "11111111-1111-4111-8111-111111111111";
  const answer = await host.invoke("admit", {
    Records: [{ messageId, body, attributes: { ApproximateReceiveCount: "5" } }],
  });
  assert.ok(answer.ok && answer.payload.includes(messageId), JSON.stringify(answer));
  const taskId = peer.taskId(SUPPORT, "msg_poisonous");
  assert.equal(await store.head(taskId), undefined);
  const id = await dies("tasks", body, { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` });

  const why = "a message has ended its function on every receive";
  const [letter] = await listed();
  assert.deepEqual(
    { ...letter, sentAt: "", receives: 0 },
    {
      id,
      queue: "tasks",
      task: taskId,
      message: "msg_poisonous",
      from: SENDER,
      to: SUPPORT,
      sentAt: "",
      receives: 0,
      stream: "A2A_TASKS",
      seq: lost.poisonous.seq,
      why,
    },
  );
  const list = await dead("list", "--queue", "tasks");
  assert.match(list.stdout, /^ID +QUEUE +TASK OR MESSAGE +FROM → TO +AGE +RECEIVES +WHY$/m);
  assert.match(list.stdout, new RegExp(`^${id} +tasks +${taskId} +${SENDER} → ${SUPPORT} .*${why}$`, "m"));

  const shown = await dead("show", id.slice(0, 13));
  assert.equal(shown.code, 0, shown.stderr);
  for (const line of [
    `^${id}  tasks$`,
    `^task +${taskId}$`,
    "^state +unknown: the table has no record of it$",
    "^message +msg_poisonous$",
    `^stream +A2A_TASKS ${lost.poisonous.seq}, delivered 1 time, still there$`,
    `^why +${why}$`,
    "a2a.v1.task",
    `^./sluice dead redrive ${id}  sends it back`,
  ])
    assert.match(shown.stdout, new RegExp(line, "m"));
  const whole = await dead("show", id, "--json");
  const told = z
    .looseObject({
      body: z.string(),
      onStream: z.literal(true),
      log: z.array(z.looseObject({ message: z.string() })),
    })
    .parse(whole.json()[0]);
  assert.equal(told.body, body);
  assert.ok(told.log.some(({ message }) => message === why));

  const { code, stdout, stderr } = await dead("redrive", id.slice(0, 8));
  assert.equal(code, 0, stderr);
  assert.equal(stdout, `${id}  tasks  ${taskId}  redriven\n`);
  const events = await peer.outcome(taskId);
  assert.equal(events.at(-1)?.event.content, "1 part");
  assert.equal(
    (await store.head(taskId))?.traceparent?.slice(3, 35),
    lost.poisonous.headers.traceparent?.slice(3, 35),
  );
  assert.deepEqual(await listed(), []);
});

test("a redriven task message is worked from the stream when its body did not travel", async () => {
  await dies("tasks", outgoing(lost.large).body);
  const gone = await dies("tasks", outgoing({ ...lost.large, seq: 999 }).body);
  const { code, json } = await dead("redrive", "--all", "--json");
  assert.equal(code, 1, "one was kept");
  const outcomes = z
    .array(z.looseObject({ id: z.string(), outcome: z.string(), why: z.string().nullable() }))
    .parse(json());
  assert.deepEqual(outcomes.map(({ outcome }) => outcome).sort(), ["kept", "redriven"]);
  assert.match(outcomes.find(({ id }) => id === gone)?.why ?? "", /its body has left the stream A2A_TASKS/);
  await peer.outcome(peer.taskId(SUPPORT, "msg_large"));
  // What is kept can be had again at once, and dropped.
  const { code: dropped, stdout } = await dead("drop", gone, "--yes");
  assert.deepEqual([dropped, stdout.includes("dropped")], [0, true]);
  assert.equal((await dead("list")).stdout, "no dead letters\n");
});

test("a redriven control takes effect", async () => {
  const { taskId } = await peer.ask(ASKER, { a2a: "wall", channelRef: "asker" }, { messageId: "msg_asked" });
  await until("the task waits", async () => (await store.head(taskId))?.waiting === true);
  const id = await dies("controls", outgoing(lost.cancel).body);
  const { code, stdout, stderr } = await dead("redrive", id, "--queue", "controls");
  assert.equal(code, 0, stderr);
  assert.match(stdout, new RegExp(`controls {2}${taskId} {2}redriven`));
  const events = await peer.outcome(taskId);
  assert.equal(events.at(-1)?.event.state, "TASK_STATE_CANCELED");
});

test("a redriven hint works, however stale it was", async () => {
  const taskId = `task_${"1".repeat(24)}`;
  await headOf({ taskId });
  const id = await dies("work", JSON.stringify({ taskId, epoch: 7, beat: 3, to: SUPPORT }));
  const [letter] = await listed("--queue", "work");
  assert.deepEqual([letter?.id, letter?.task, letter?.to], [id, taskId, SUPPORT]);
  assert.equal((await dead("redrive", id)).code, 0);
  const events = await peer.outcome(taskId);
  assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
});

test("a hint at a task that is over, or that nobody knows, is kept and the reason told", async () => {
  const over = `task_${"2".repeat(24)}`;
  await headOf({ taskId: over, state: "TASK_STATE_CANCELED" });
  await dies("work", JSON.stringify({ taskId: over, epoch: 0, beat: 0 }));
  await dies("work", JSON.stringify({ taskId: "task_nobody", epoch: 0, beat: 0 }));
  const { code, stdout } = await dead("redrive", "--all");
  assert.equal(code, 1);
  assert.match(stdout, new RegExp(`${over}  kept: its task is over: canceled`));
  assert.match(stdout, /task_nobody {2}kept: the table has no record of its task/);
  assert.equal((await dead("drop", "--all", "--yes")).code, 0);
});

test("what no function can read is kept, and a terminal sees no control characters of it", async () => {
  const id = await dies("events", "not \u202eours");
  const { stdout } = await dead("show", id);
  assert.match(stdout, /^not ours$/m);
  assert.match(stdout, /^why +no line in .*logs tells$/m);
  const { stdout: all } = await dead("list");
  assert.match(all, new RegExp(`^${id} +events +- +- .*no log tells$`, "m"));
  const hint = await dies("work", "not json at all");
  const nobodys = [];
  for (const taskId of ["", "t".repeat(3_000)])
    nobodys.push(await dies("work", JSON.stringify({ taskId, epoch: 1, beat: 1 })));
  for (const of of nobodys) {
    const { code, stderr } = await dead("show", of);
    assert.equal(code, 0, stderr);
  }
  const { code, stdout: kept } = await dead("redrive", "--all");
  assert.equal(code, 1);
  assert.match(
    kept,
    new RegExp(`^${id} {2}events {2}kept: its body is no message of JetStream: expected `, "m"),
  );
  for (const of of [hint, ...nobodys]) {
    assert.match(kept, new RegExp(`^${of} {2}work {2}kept: its body is no hint at a task: expected `, "m"));
    assert.equal((await dead("drop", of, "--yes")).code, 0);
  }
  assert.equal((await dead("drop", id.slice(0, 13), "--yes")).code, 0);
});

test("of several letters that begin as the text does none is meant", () => {
  const letters = ["abcdefgh-1", "abcdefgh-2", "bbcdefgh-3"].map((MessageId) =>
    letterOf({ name: "tasks", url: "", deadUrl: "" }, { MessageId }),
  );
  assert.equal(meantLetter(letters, "bbcdefgh").id, "bbcdefgh-3");
  assert.throws(
    () => meantLetter(letters, "abcdefgh"),
    /^CliError: dead letter abcdefgh: several begin so: abcdefgh-1, abcdefgh-2$/,
  );
});

test("drop asks at a terminal, and anything but yes leaves the letter where it is", { skip }, async () => {
  const id = await dies("controls", "none of ours");
  for (const [typed, exitCode, said] of [
    ["no\r", 1, /nothing is dropped/],
    ["\u0004", 1, /nothing is dropped/],
    ["Y\r", 0, new RegExp(`${id}  controls  dropped`)],
  ] as const) {
    const terminal = onTerminal(`dead drop ${id}`, cwd);
    const question = "Delete a dead letter of controls for good? (yes or no): ";
    await until("it asks", () => terminal.shown().includes(question), { seen: terminal.shown });
    terminal.type(typed);
    assert.equal(await terminal.exitCode(), exitCode, terminal.shown());
    assert.match(terminal.shown(), said);
  }
  assert.deepEqual(await listed("--queue", "controls"), []);
});

test("a task whose hint is dropped is offered again by sweep", async () => {
  const taskId = `task_${"3".repeat(24)}`;
  const id = await dies("work", JSON.stringify({ taskId, epoch: 0, beat: 0, to: SUPPORT }));
  assert.equal((await dead("drop", id, "--yes")).code, 0);
  await headOf({ taskId, dueAt: Date.now() });
  const events = await peer.outcome(taskId);
  assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
});

test("wrong command lines, and letters that are not there", async () => {
  const wrong = [
    ["redrive"],
    ["redrive", "ffffffff", "--all"],
    ["drop", "--yes"],
    ["show"],
    ["show", "a b"],
    ["show", "ffffeee"],
    ["list", "--queue", "nowhere"],
    ["bury"],
    ["drop", "--all"],
  ];
  const ended = await Promise.all(wrong.map((args) => dead(...args)));
  for (const [at, { code }] of ended.entries()) assert.equal(code, 2, wrong[at]?.join(" "));
  assert.match(ended.at(-1)?.stderr ?? "", /without a terminal --yes is required/);
  const known = [
    ["show", "ffffeeee"],
    ["redrive", "ffffeeee"],
    ["drop", "ffffeeee", "--yes"],
  ].map((args) => dead(...args));
  for (const { code, stderr } of await Promise.all(known)) {
    assert.equal(code, 1);
    assert.match(stderr, /^sluice: no dead letter ffffeeee: it is gone, or somebody else has it in hand/);
  }
});

test("the dead letters of a deployed stack, with what its log groups tell", async () => {
  const { TasksQueueUrl = "", TasksDeadQueueUrl = "" } = host.outputs;
  const own = { TableName: host.tableName, BucketName: host.bucketName };
  aws.played.stacks["sluice-acme"] = {
    outputs: {
      ...own,
      TasksQueueUrl,
      TasksDeadQueueUrl,
      AgentQueueUrls: JSON.stringify({
        support: { queue: TasksQueueUrl, dead: host.outputs.WorkDeadQueueUrl },
      }),
    },
    resources: [["admitLogs0A1B2C3D", "AWS::Logs::LogGroup", "sluice-acme-admitLogs"]],
  };
  aws.played.stacks["sluice-old"] = { outputs: own };
  aws.played.logs["sluice-acme-admitLogs"] = [];
  const id = await dies("tasks", outgoing(lost.plain).body);
  aws.played.logs["sluice-acme-admitLogs"].push({
    eventId: "1",
    timestamp: Date.now(),
    message: JSON.stringify({
      level: "ERROR",
      message: "a record has failed",
      timestamp: new Date().toISOString(),
      service: "admit",
      sqsMessageId: "another",
      stream: "A2A_TASKS",
      seq: lost.plain.seq,
      errorName: "PoisonMessage",
      errorMessage: "the function died 4 times on it",
    }),
  });
  const deployed = (...args: string[]) => run(["dead", ...args], { cwd: tmpdir(), env: aws.env });
  const list = await deployed("list", "--stack", "sluice-acme");
  assert.equal(list.code, 0, list.stderr);
  assert.match(
    list.stdout,
    new RegExp(`^${id} +tasks .*a record has failed: PoisonMessage: the function died 4 times on it$`, "m"),
  );
  const [{ stderr }, old] = await Promise.all([
    deployed("list", "--stack", "sluice-acme", "--queue", "x"),
    deployed("list", "--stack", "sluice-old"),
  ]);
  assert.match(stderr, /there is no such queue; there are tasks, work-support/);
  assert.deepEqual([old.code, /does not tell its queues/.test(old.stderr)], [1, true]);
  const redriven = await deployed("redrive", id, "--stack", "sluice-acme");
  assert.equal(redriven.code, 0, redriven.stderr);
  await peer.outcome(peer.taskId(SUPPORT, "msg_plain"));
});

test("what an earlier look has released is not said to be hidden, nor is what was dropped", async () => {
  const id = await dies("events", "x");
  for (const args of [["list"], ["list"], ["drop", "--all", "--yes"]]) {
    const { stdout, stderr } = await dead(...args, "--queue", "events");
    assert.match(stdout, new RegExp(`^${id} `, "m"));
    assert.doesNotMatch(stderr, /hidden/);
  }
});

test("what somebody else has in hand is said to be hidden", async () => {
  const id = await dies("events", "x");
  const deadUrl = host.outputs.EventsDeadQueueUrl;
  const { Messages } = await sqs.send(
    new ReceiveMessageCommand({ QueueUrl: deadUrl, VisibilityTimeout: 600 }),
  );
  assert.equal(Messages?.[0]?.MessageId, id);
  const { stdout, stderr } = await dead("list");
  assert.equal(stdout, "no dead letter can be seen now\n");
  assert.match(stderr, /1 more is hidden for up to a minute, by another look/);
  // Whoever means all has not dropped it.
  const dropped = await dead("drop", "--all", "--yes", "--queue", "events");
  assert.deepEqual([dropped.code, dropped.stdout], [1, "no dead letter can be seen now\n"]);
  assert.ok(Messages?.[0]?.ReceiptHandle);
  await sqs.send(new DeleteMessageCommand({ QueueUrl: deadUrl, ReceiptHandle: Messages[0].ReceiptHandle }));
});
