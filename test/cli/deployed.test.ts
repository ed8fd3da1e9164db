import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { S3Client } from "@aws-sdk/client-s3";
import { ReceiveMessageCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import * as z from "zod";
import { openDeadLetters } from "../../cli/dead/open.ts";
import { redrive } from "../../cli/dead/redrive.ts";
import { openErasing } from "../../cli/erase/open.ts";
import { CliError, EXIT } from "../../cli/errors.ts";
import { type Home, readHome } from "../../cli/home.ts";
import { openLogs } from "../../cli/logs/source.ts";
import { linesAbout } from "../../cli/logs/task.ts";
import { openPauses } from "../../cli/pauses.ts";
import { findPlace } from "../../cli/place.ts";
import { retryTask } from "../../cli/retry/retry-task.ts";
import { openStack } from "../../cli/stack.ts";
import { stackHome } from "../../cli/stack-home.ts";
import { awsSettings } from "../../infra/local/aws.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { dynamoPauses } from "../../shared/tasks/dynamodb-pauses.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import type { PauseStore } from "../../shared/tasks/pauses.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { s3Values, type Values } from "../../shared/tasks/values.ts";
import { type PlayedAws, playAws } from "../support/aws.ts";
import { startNats, type TestNats } from "../support/nats-server.ts";
import { type RunningParts, startTestParts } from "../support/parts.ts";
import { putFullTask } from "./full-task.ts";
import { run } from "./run.ts";

/** The folder of an operator: another local host, and another NATS, run in it. */
const cwd = mkdtempSync(join(tmpdir(), "sluice-deployed-"));
const STACK = "sluice-acme";
const BOSS = "acme-boss";

let nats: TestNats;
let nc: NatsConnection;
let running: RunningParts;
let aws: PlayedAws;
let sqs: SQSClient;
let store: Store;
let pauses: PauseStore;
let values: Values;
let home: Home;
let queues: Readonly<Record<string, string>>;
before(async () => {
  nats = await startNats();
  nc = await connect({ servers: nats.url });
  await ensureStreams(await jetstreamManager(nc));
  const dataDir = join(cwd, "parts");
  mkdirSync(dataDir);
  running = await startTestParts(dataDir, [nats.url]);
  const { endpoints, stack } = running.parts;
  const [table = "", bucket = ""] = [stack.tables[0]?.name, stack.buckets[0]];
  aws = await playAws(endpoints);
  Object.assign(process.env, aws.env); // where clients without an endpoint of their own find AWS
  // A queue's URL tells the SDK where SQS is.
  const outputs = JSON.stringify(stack.outputs).replaceAll(endpoints.sqs, aws.env.AWS_ENDPOINT_URL ?? "");
  queues = { ...z.record(z.string(), z.string()).parse(JSON.parse(outputs)), NatsServers: nats.url };
  aws.played.stacks[STACK] = {
    outputs: queues,
    resources: [["workLogs0A1B2C3D", "AWS::Logs::LogGroup", "acme-work"]],
  };
  aws.played.stacks["sluice-old"] = { outputs: { TableName: table, BucketName: bucket } };
  aws.played.stacks.other = { outputs: { TableName: table } };
  aws.played.logs["acme-work"] = [];

  writeFileSync(
    join(cwd, "agents.yaml"),
    `deployment: acme\nagents: { boss: {} }\nnats: { servers: ["nats://127.0.0.1:1"] }\n`,
  );
  mkdirSync(join(cwd, ".sluice"));
  const nobody = "http://127.0.0.1:1";
  writeFileSync(
    join(cwd, ".sluice/host.json"),
    JSON.stringify({
      ...{ pid: process.pid, nats: "nats://127.0.0.1:1", dynamodb: nobody, s3: nobody, sqs: nobody },
      ...{ table, bucket, outputs: {} },
    }),
  );
  home = readHome(cwd);
  assert.ok(home.stack && home.host);

  sqs = new SQSClient(awsSettings(aws.env.AWS_ENDPOINT_URL ?? ""));
  const client = DynamoDBDocumentClient.from(new DynamoDBClient(awsSettings(endpoints.dynamodb)), {
    marshallOptions: { removeUndefinedValues: true },
  });
  store = dynamoStore({ client, table });
  pauses = dynamoPauses({ client, table });
  const s3 = new S3Client({ ...awsSettings(endpoints.s3), forcePathStyle: true });
  values = s3Values({ bucket, client: async () => s3 });
});
after(async () => {
  await aws?.[Symbol.asyncDispose]();
  await running?.[Symbol.asyncDispose]();
  await nc?.close();
  await nats?.stop();
  rmSync(cwd, { recursive: true, force: true });
});

const task = (messageId: string) => putFullTask({ store, values, nc }, messageId);
const received = async (url: string | undefined) => {
  const { Messages } = await sqs.send(new ReceiveMessageCommand({ QueueUrl: url, WaitTimeSeconds: 5 }));
  return Messages?.map(({ Body }) => Body);
};

test("pause and resume", async () => {
  const paused = await run(["pause", "boss", "--stack", STACK], { cwd, env: aws.env });
  assert.equal(paused.code, 0, paused.stderr);
  assert.ok(await pauses.pauseOf(BOSS));
  const { head } = await task("msg-held");
  const taskId = `task_${"a".repeat(24)}`;
  await store.admit({ ...head, taskId, messageId: "m-held", state: "TASK_STATE_SUBMITTED", epoch: 0 });
  await pauses.hold(BOSS, taskId, head.expiresAt);
  using open = await openPauses(home, STACK);
  assert.deepEqual(await open.resume(open.agent("boss")), { wasPaused: true, offered: 1 });
  assert.equal(await pauses.pauseOf(BOSS), undefined);
  assert.match(String(await received(queues.WorkQueueUrl)), new RegExp(taskId));
});

test("retry and erase, by way of the NATS that the stack names", async () => {
  const { head } = await task("msg-again");
  const payload = { channelRef: "boss", skillId: "boss/task", a2a: "hello" };
  const taskId = `task_${"b".repeat(24)}`;
  const input = { text: JSON.stringify(payload) };
  await store.admit({ ...head, taskId, messageId: "m-again", input, state: "TASK_STATE_FAILED" });
  const env = { ...aws.env, NATS_URL: "nats://127.0.0.1:1" };
  const retried = await run(["retry", taskId, "--stack", STACK], { cwd, env });
  assert.equal(retried.code, 0, retried.stderr);
  const message = `a2a.v1.task.${head.from}.${BOSS}.retry_${"b".repeat(24)}_1`;
  const jsm = await jetstreamManager(nc);
  assert.ok(await jsm.streams.getMessage("A2A_TASKS", { last_by_subj: message }));

  await using erasing = await openErasing(home, { stack: STACK });
  const record = await erasing.find(head.taskId);
  const { values: count, objects } = await erasing.erase(record, { by: "eve", streams: false });
  assert.deepEqual([count, objects], [2, 1]);
  assert.equal((await store.head(head.taskId))?.erased?.by, "eve");
});

test("dead letters, whose bodies are looked up in that NATS, and logs", async () => {
  const { head } = await task("msg-dead");
  const subject = `a2a.v1.task.${head.from}.${BOSS}.msg-dead`;
  const stored = await (await jetstreamManager(nc)).streams.getMessage("A2A_TASKS", {
    last_by_subj: subject,
  });
  const forwarded = (seq: number) =>
    JSON.stringify({
      ...{ stream: "A2A_TASKS", consumer: "c", seq, ackSubject: "$JS.ACK.x", subject, headers: {} },
      ...{ deliveries: 5, storedAt: 1 },
    });
  for (const seq of [stored?.seq ?? 0, 999])
    await sqs.send(
      new SendMessageCommand({ QueueUrl: queues.TasksDeadQueueUrl, MessageBody: forwarded(seq) }),
    );
  await using dead = await openDeadLetters(home, { stack: STACK, queue: "tasks" });
  const outcomes: unknown[] = [];
  await dead.look(async (page) => {
    for (const letter of page) outcomes.push(await redrive(dead, letter));
    return [];
  });
  const why = "its body has left the stream A2A_TASKS: there is nothing to work on";
  assert.deepEqual(
    new Set(outcomes.map((of) => JSON.stringify(of))),
    new Set([JSON.stringify({ sent: true }), JSON.stringify({ sent: false, why })]),
  );

  // Credentials that somebody names must be readable: without them a message would pass for one that is not known.
  await using unread = await openDeadLetters(home, { stack: STACK, creds: "/nonexistent" });
  const plain = { stream: "A2A_TASKS", consumer: "c", seq: 1, ackSubject: "x", subject, headers: {} };
  await assert.rejects(
    unread.onStream({ ...plain, deliveries: 1, storedAt: 1 }),
    /nonexistent: cannot be read/,
  );

  const line = { level: "INFO", message: "a task has ended", timestamp: "2026-08-01T12:00:00Z" };
  const message = JSON.stringify({ ...line, taskId: head.taskId });
  aws.played.logs["acme-work"]?.push({ eventId: "1", timestamp: Date.now(), message });
  using logs = await openLogs(await findPlace(home, STACK));
  const lines = await linesAbout(logs, [head.taskId], 0).next();
  assert.deepEqual(
    lines.map(({ function: name, message }) => [name, message]),
    [["work", "a task has ended"]],
  );
});

test("a letter whose queue is gone, or may not be sent to, stays a dead letter", async () => {
  const url = `${queues.ControlsQueueUrl}-gone`;
  aws.played.stacks["sluice-gone"] = { outputs: { ...queues, ControlsQueueUrl: url } };
  const MessageBody = JSON.stringify({
    ...{ stream: "A2A_CONTROLS", consumer: "c", seq: 1, ackSubject: "$JS.ACK.x", deliveries: 5, storedAt: 1 },
    ...{ subject: `a2a.v1.control.eve.${BOSS}.task_1.cancel`, headers: {}, body: "x" },
  });
  await sqs.send(new SendMessageCommand({ QueueUrl: queues.ControlsDeadQueueUrl, MessageBody }));
  const settle = async (stack: string) => {
    await using dead = await openDeadLetters(home, { stack, queue: "controls" });
    const said: string[] = [];
    await dead.look(async (page) => {
      for (const letter of page) said.push(await redrive(dead, letter).then(String, String));
      return page;
    });
    return said.join();
  };
  assert.match(await settle("sluice-gone"), /queue does not exist/);
  aws.played.refused.add("SendMessage");
  assert.match(await settle(STACK), /you are not allowed to do this/);
  aws.played.refused.clear();
  assert.match(await settle(STACK), /object Object/);
});

test("a stack of another deployment than the folder's is not taken for this one", async () => {
  aws.played.stacks["sluice-other"] = { outputs: { ...queues, DeploymentName: "eve" } };
  const task = `task_${"c".repeat(24)}`;
  for (const verb of [["retry", task], ["doctor"], ["erase", task, "--yes"], ["dead", "redrive", "--all"]]) {
    const { code, stderr } = await run([...verb, "--stack", "sluice-other"], { cwd, env: aws.env });
    assert.equal(code, EXIT.usage, verb.join(" "));
    assert.match(stderr, /^sluice: --stack sluice-other: it is of the deployment eve, but .* is of acme: /);
  }
});

test("an output of a stack that is not as expected is named", async () => {
  const place = await findPlace(home, STACK);
  for (const [output, value, said] of [
    ["NatsServers", "http://x", /output NatsServers: expected a URL/],
    ["NatsCredentials", "mine", /output NatsCredentials: expected none, file:PATH or secret:NAME$/],
  ] as const) {
    const outputs = { ...place.outputs, [output]: value };
    assert.throws(() => stackHome(home, { ...place, outputs }), { exitCode: EXIT.failed, message: said });
  }
  const { NatsServers: _, ...old } = place.outputs;
  const older = stackHome(home, { ...place, outputs: { ...old, TableName: "t", BucketName: "b" } });
  assert.deepEqual([older.operator, older.host], [home.operator, undefined]);
});

describe("each verb says what is wrong with", () => {
  /** What a verb does with a stack; by which action of AWS it is refused; whether it needs the queues. */
  const verbs: Record<string, { does: (stack: string) => Promise<unknown>; action: string; queues?: true }> =
    {
      pause: {
        action: "PutItem",
        async does(stack) {
          using open = await openPauses(home, stack);
          await open.pause(open.agent("boss"), { at: 1, by: "eve", refuse: false });
        },
      },
      resume: {
        action: "DeleteItem",
        queues: true,
        async does(stack) {
          using open = await openPauses(home, stack);
          await open.resume(open.agent("boss"));
        },
      },
      retry: {
        action: "GetItem",
        async does(stack) {
          using open = await openStack(home, stack);
          await retryTask({ nc, stack: open }, taskId, { again: false });
        },
      },
      erase: {
        action: "UpdateItem",
        async does(stack) {
          await using erasing = await openErasing(home, { stack });
          await erasing.erase(await erasing.find(taskId), { by: "eve", streams: false });
        },
      },
      dead: {
        action: "ReceiveMessage",
        queues: true,
        async does(stack) {
          await using dead = await openDeadLetters(home, { stack });
          await dead.look();
        },
      },
      logs: {
        action: "FilterLogEvents",
        async does(stack) {
          using logs = await openLogs(await findPlace(home, stack));
          await linesAbout(logs, [taskId], 0).next();
        },
      },
    };
  let taskId = "";
  before(async () => {
    ({ taskId } = (await task("msg-refused")).head);
  });

  async function fails(doing: Promise<unknown>, exitCode: number, said: RegExp): Promise<void> {
    const error = await doing.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof CliError, String(error));
    assert.match(error.message, said);
    assert.equal(error.exitCode, exitCode);
  }
  async function refusing(action: string, doing: () => Promise<unknown>): Promise<void> {
    aws.played.refused.add(action);
    await fails(
      doing(),
      EXIT.unreachable,
      /^cannot read .*stack sluice-acme: you are not allowed to do this$/,
    );
    aws.played.refused.clear();
  }

  for (const [name, { does, action, queues: needsQueues }] of Object.entries(verbs))
    test(`the stack of ${name}`, async () => {
      await fails(does("sluice-none"), EXIT.usage, /^--stack sluice-none: there is no stack of this name$/);
      await fails(does("other"), EXIT.usage, /^--stack other: expected .* outputs TableName and BucketName$/);
      await refusing("DescribeStacks", () => does(STACK));
      await refusing(action, () => does(STACK));
      if (needsQueues) await fails(does("sluice-old"), EXIT.failed, /does not tell its queues/);
      if (name === "logs") await refusing("ListStackResources", () => does(STACK));
    });
});
