import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import * as z from "zod";
import { awsSettings } from "../../infra/local/aws.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import type { Entry, Head } from "../../shared/tasks/items.ts";
import { playAws } from "../support/aws.ts";
import { SENDER, type Sluice, startSluice } from "../support/sluice.ts";
import { until } from "../support/until.ts";
import { run } from "./run.ts";

/** The folder of an operator, in which the local host runs. */
const cwd = mkdtempSync(join(tmpdir(), "sluice-steps-"));
let sluice: Sluice;
before(async () => {
  mkdirSync(join(cwd, ".sluice"));
  sluice = await startSluice({ dataDir: join(cwd, ".sluice") });
  await ensureStreams(await jetstreamManager(sluice.peer.nc));
});
after(async () => {
  await sluice.stop();
  rmSync(cwd, { recursive: true, force: true });
});

const steps = (...args: string[]) => run(["steps", ...args], { cwd });

const told = z.object({
  task: z.string(),
  executor: z.string(),
  delegator: z.string(),
  skill: z.string().nullable(),
  state: z.string(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  erased: z.null(),
  acceptedAt: z.iso.datetime().nullable(),
  deadline: z.iso.datetime().nullable(),
  epoch: z.int(),
  fruitlessClaims: z.int(),
  worker: z.enum(["unclaimed", "working", "waiting", "over"]),
  waitsForSlot: z.object({ taken: z.int(), waiting: z.int() }).nullable(),
  paused: z.object({ since: z.iso.datetime(), by: z.string(), refuse: z.boolean() }).nullable(),
  dueAt: z.iso.datetime().nullable(),
  question: z
    .object({
      step: z.string(),
      kind: z.string(),
      prompt: z.string().nullable(),
      mustAnswer: z.string(),
      until: z.iso.datetime().nullable(),
    })
    .nullable(),
  steps: z.array(
    z.strictObject({
      name: z.string(),
      kind: z.string(),
      state: z.enum(["done", "failed", "asked", "waiting", "running", "dropped"]),
      beganAt: z.iso.datetime().nullable(),
      endedAt: z.iso.datetime().nullable(),
      ms: z.number().nullable(),
      attempts: z.int().positive(),
      until: z.iso.datetime().nullable(),
      waitsFor: z.string().nullable(),
      skill: z.string().nullable(),
      error: z.object({ name: z.string(), message: z.string(), code: z.string().optional() }).nullable(),
    }),
  ),
});
const jsonOf = async (...args: string[]) => {
  const { code, stderr, json } = await steps(...args, "--json");
  assert.equal(code, 0, stderr);
  return z.tuple([z.strictObject(told.shape)]).parse(json())[0];
};

const tableOf = (endpoint: string) =>
  dynamoStore({
    client: DynamoDBDocumentClient.from(new DynamoDBClient(awsSettings(endpoint)), {
      marshallOptions: { removeUndefinedValues: true },
    }),
    table: sluice.host.tableName,
  });

/** A task of `asker` that waits for its answer. */
async function asked(): Promise<string> {
  const { taskId } = await sluice.peer.ask("acme-asker", { a2a: "wall", channelRef: "asker" });
  const store = tableOf(sluice.host.endpoints.dynamodb);
  await until("the task waits", async () => (await store.head(taskId))?.waiting === true);
  return taskId;
}

test("the steps of a task that asks, and who must answer", async () => {
  const taskId = await asked();
  const { code, stdout, stderr } = await steps(taskId);
  assert.equal(code, 0, stderr);
  const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`;
  for (const line of [
    `^${taskId}  input required$`,
    `^${SENDER} → acme-asker  task$`,
    `^accepted   ${time}$`,
    "^deadline   stands still while the question is open$",
    String.raw`^claims     1 \(epoch 1\)$`,
    `^worker     none: the task waits, to be woken at ${time} at the latest$`,
    "^BEGAN +STEP +KIND +STATE +ATTEMPTS +TOOK +ERROR$",
    String.raw`^${time}  find the wall  run   done  +1  +\d+ ms$`,
    `^${time}  colour +ask   asks ${SENDER} until ${time}  1$`,
    String.raw`^input required  Which colour for the wall\?$`,
    `^${SENDER} must answer: ./sluice reply ${taskId} TEXT$`,
  ])
    assert.match(stdout, new RegExp(line, "m"));

  const {
    task,
    executor,
    delegator,
    state,
    epoch,
    worker,
    deadline,
    question,
    steps: lines,
  } = await jsonOf(taskId);
  assert.deepEqual(
    [task, executor, delegator, state, epoch, worker, deadline],
    [taskId, "acme-asker", SENDER, "TASK_STATE_INPUT_REQUIRED", 1, "waiting", null],
  );
  assert.deepEqual(
    [question?.step, question?.kind, question?.prompt, question?.mustAnswer],
    ["colour", "ask", "Which colour for the wall?", SENDER],
  );
  assert.deepEqual(
    lines.map(({ name, state, waitsFor }) => [name, state, waitsFor]),
    [
      ["find the wall", "done", null],
      ["colour", "asked", SENDER],
    ],
  );
});

test("a task that is over, and one that was rejected", async () => {
  const { taskId } = await sluice.peer.ask("acme-faulty", {
    a2a: { parts: [{ data: { fault: "throw" } }] },
    channelRef: "faulty",
  });
  const store = tableOf(sluice.host.endpoints.dynamodb);
  await until("the task is over", async () => (await store.head(taskId))?.state === "TASK_STATE_FAILED");
  const { stdout } = await steps(taskId);
  assert.match(stdout, /^worker {5}none$/m);
  assert.match(stdout, /^internal: Error: it went wrong$/m);
  const over = await jsonOf(taskId);
  assert.deepEqual([over.state, over.worker, over.error?.code], ["TASK_STATE_FAILED", "over", "internal"]);

  const refused = await sluice.peer.ask("acme-asker", {
    a2a: "x",
    channelRef: "asker",
    skillId: "asker/none",
  });
  await until("the task is rejected", async () => (await store.head(refused.taskId)) !== undefined);
  const rejected = await steps(refused.taskId);
  assert.equal(rejected.code, 0);
  assert.match(
    rejected.stdout,
    / {2}rejected\n.*\nrejected {3}\d{4}-[^\n]*\n\nit was rejected before any step\n\nunknown_skill: /,
  );
  assert.equal((await jsonOf(refused.taskId)).state, "TASK_STATE_REJECTED");

  assert.equal((await run(["erase", refused.taskId, "--yes"], { cwd })).code, 0);
  const { stdout: erased } = await steps(refused.taskId);
  assert.match(erased, /\nerased [^\n]+\n\nit was rejected before any step\n\nunknown_skill\n$/);

  const head = await store.head(taskId);
  assert.ok(head);
  const stepless = `task_${"0".repeat(24)}`;
  await store.admit({ ...head, taskId: stepless, messageId: "stepless" });
  assert.match((await steps(stepless)).stdout, /\n\nit has ended without a step\n/);
});

test("a task that waits for a slot of its agent", async () => {
  const store = tableOf(sluice.host.endpoints.dynamodb);
  const now = Date.now();
  const head = (taskId: string): Head => ({
    taskId,
    messageId: taskId,
    from: SENDER,
    to: "acme-slots-only-here",
    digest: "d",
    state: "TASK_STATE_SUBMITTED",
    epoch: 0,
    beat: 0,
    published: 1,
    decidedAt: now,
    deadline: now + 3_600_000,
    expiresAt: Math.ceil(now / 1_000) + 86_400,
  });
  const [holder, waiter, next] = ["task_holder", "task_waiter", "task_next"].map(head);
  assert.ok(holder && waiter && next);
  for (const one of [holder, waiter, next]) await store.admit(one);
  await store.claimSlot(holder, "n", now + 60_000, 1);
  assert.equal(await store.queue(waiter, 1), "queued");
  assert.match(
    (await steps("task_waiter")).stdout,
    /^worker {5}none: waits for a slot of its agent \(1 taken, 1 task waits in the line\)$/m,
  );
  assert.equal(await store.queue(next, 1), "queued");
  assert.deepEqual((await jsonOf("task_waiter")).waitsForSlot, { taken: 1, waiting: 2 });
  assert.equal((await jsonOf("task_holder")).waitsForSlot, null);
});

test("names and errors that a handler has made reach no terminal as they are", async () => {
  const store = tableOf(sluice.host.endpoints.dynamodb);
  const now = Date.now();
  const head: Head = {
    taskId: "task_hostile",
    messageId: "m",
    from: SENDER,
    to: "acme-asker",
    digest: "d",
    state: "TASK_STATE_WORKING",
    epoch: 4,
    beat: 0,
    published: 1,
    decidedAt: now,
    deadline: now + 3_600_000,
    expiresAt: Math.ceil(now / 1_000) + 86_400,
    running: "\u001b]0;owned\u0007next",
  };
  await store.admit(head);
  const of = { nonce: "n", epoch: 4, at: now + 50, revision: 1 };
  const message = `\u001b[2Jgone\r\n${"long ".repeat(100)}`;
  await store.append(
    head.taskId,
    {
      ...of,
      place: 1,
      steps: [
        {
          name: `\u001b[31mred\nname ${"n".repeat(100)}`,
          kind: "run",
          value: { text: "" },
          ms: 50,
          attempts: 3,
          error: { name: "Err\u0007or", message },
        },
      ],
    },
    head.expiresAt,
  );
  for (const [index, epoch] of [2, 3, 4].entries())
    await store.append(
      head.taskId,
      { nonce: `c${epoch}`, place: 2 + index, epoch, at: now + 60, revision: 1, claim: true },
      head.expiresAt,
    );
  const { stdout } = await steps(head.taskId);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  assert.doesNotMatch(stdout, /[\u0000-\u0009\u000b-\u001f\u007f]/);
  assert.match(stdout, / {2}red name n+ {2}run {3}failed +3 +50 ms +Error: gone (long ?){100}$/m);
  assert.match(stdout, /^ +next +run +running +1$/m);
  assert.match(stdout, /^claims {5}4 \(epoch 4\), the last 3 without a new step$/m);
  const raw = (await steps(head.taskId, "--json")).stdout;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  assert.doesNotMatch(raw.trimEnd(), /[\u0000-\u001f\u007f]/);
  assert.equal((await jsonOf(head.taskId)).steps[0]?.error?.message, message);
});

test("what a task ended without, and its fruitless claims, are told after its end as well", async () => {
  const store = tableOf(sluice.host.endpoints.dynamodb);
  const now = Date.now();
  const begun = async (taskId: string): Promise<Head> => {
    const head: Head = {
      taskId,
      messageId: taskId,
      from: SENDER,
      to: "acme-asker",
      digest: "d",
      state: "TASK_STATE_WORKING",
      epoch: 3,
      beat: 0,
      published: 1,
      decidedAt: now,
      deadline: now + 3_600_000,
      expiresAt: Math.ceil(now / 1_000) + 86_400,
      running: "die",
    };
    await store.admit(head);
    for (const epoch of [2, 3])
      await store.append(
        taskId,
        { nonce: `c${epoch}`, place: epoch - 1, epoch, at: now, revision: 1, claim: true },
        head.expiresAt,
      );
    return head;
  };
  const ended = async (head: Head, end: NonNullable<Entry["end"]>) => {
    const place = { nonce: "e", place: 3, epoch: 3, at: now, revision: 2 };
    await store.append(head.taskId, { ...place, end }, head.expiresAt);
    return (await steps(head.taskId)).stdout;
  };
  const timedOut = { state: "TASK_STATE_FAILED", code: "timeout", message: "too late" } as const;
  const head = await begun("task_died");
  const put = await ended(head, timedOut);
  await store.settle(head, 2, timedOut.state);
  for (const stdout of [put, (await steps("task_died")).stdout]) {
    assert.match(stdout, /^claims {5}3 \(epoch 3\), the last 3 without a new step$/m);
    assert.match(stdout, /^ +die +run +dropped +1$/m);
  }
  assert.equal((await jsonOf("task_died")).fruitlessClaims, 3);
  const completed = await ended(await begun("task_lived"), { state: "TASK_STATE_COMPLETED" });
  assert.match(completed, /^claims {5}3 \(epoch 3\)$/m);
});

test("of a task that is not over it is told that its agent is paused, and how it goes on", async () => {
  const taskId = await asked();
  assert.equal((await jsonOf(taskId)).paused, null);
  assert.equal((await run(["pause", "asker"], { cwd })).code, 0);
  const { stdout } = await steps(taskId);
  assert.match(stdout, /^agent {6}paused since \S+ \S+ by .+; go on with \.\/sluice resume acme-asker$/m);
  assert.equal((await jsonOf(taskId)).paused?.refuse, false);
  assert.equal((await run(["resume", "acme-asker"], { cwd })).code, 0);
  assert.doesNotMatch((await steps(taskId)).stdout, /paused/);
});

const UNKNOWN = `task_${"f".repeat(24)}`;

test("a task that nobody knows, a wrong command line, and a host that is not there", async () => {
  const unknown = await steps(UNKNOWN);
  assert.equal(unknown.code, 1);
  assert.match(
    unknown.stderr,
    /^sluice: task task_f{24}: the local host has no record of it; records are kept for 30 days/,
  );
  const short = await steps(UNKNOWN.slice(0, -1));
  assert.equal(short.code, 1);
  assert.match(short.stderr, /^sluice: task task_f{23}: expected the whole id, .* \.\/sluice status shows/);
  const approved = await run(["approve", UNKNOWN.slice(0, -1)], { cwd });
  assert.deepEqual([approved.code, approved.stderr], [1, short.stderr]);
  for (const args of [
    [],
    ["a b"],
    ["task_1", "--nats", "nats://127.0.0.1:1"],
    ["task_1", "--stack", ""],
    ["task_1", "--stack", "s".repeat(129)],
  ])
    assert.equal((await steps(...args)).code, 2, args.join(" "));

  const elsewhere = mkdtempSync(join(tmpdir(), "sluice-steps-none-"));
  mkdirSync(join(elsewhere, ".sluice"));
  const none = await run(["steps", "task_1"], { cwd: elsewhere });
  assert.equal(none.code, 3);
  assert.match(
    none.stderr,
    /no local host runs in this folder: start Sluice with `cd .* && npm start -- --data .*`, or .* --stack/,
  );
  const gone = { pid: process.pid, nats: "nats://127.0.0.1:1", table: "t", bucket: "b" };
  const closed = { dynamodb: "http://127.0.0.1:1", s3: "http://127.0.0.1:1" };
  writeFileSync(join(elsewhere, ".sluice", "host.json"), JSON.stringify({ ...gone, ...closed }));
  const dead = await run(["steps", "task_1"], { cwd: elsewhere });
  assert.equal(dead.code, 3);
  assert.match(dead.stderr, /^sluice: cannot read the local host: .*ECONNREFUSED/);
  rmSync(elsewhere, { recursive: true });
});

test("a deployed stack is found by its outputs", async () => {
  const taskId = await asked();
  const { host } = sluice;
  await using aws = await playAws(host.endpoints);
  aws.played.stacks["sluice-acme"] = {
    outputs: { TableName: host.tableName, BucketName: host.bucketName },
  };
  aws.played.stacks.other = { outputs: { Url: "https://x.example" } };
  // Called from a folder in which no host runs.
  const deployed = (task: string, stack: string, more = {}) =>
    run(["steps", task, "--stack", stack], { cwd: tmpdir(), env: { ...aws.env, ...more } });

  const found = await deployed(taskId, "sluice-acme");
  assert.equal(found.code, 0, found.stderr);
  assert.match(found.stdout, /^\S+ \S+ {2}colour +ask +asks /m);
  const unknown = await deployed(UNKNOWN, "sluice-acme");
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /task task_f{24}: the stack sluice-acme has no record of it/);
  const none = await deployed(taskId, "sluice-none");
  assert.equal(none.code, 2);
  assert.match(none.stderr, /--stack sluice-none: there is no stack of this name/);
  const strange = await deployed(taskId, "other");
  assert.equal(strange.code, 2);
  assert.match(
    strange.stderr,
    /--stack other: expected a stack of Sluice, with the outputs TableName and BucketName/,
  );
  const closed = await deployed(taskId, "sluice-acme", { AWS_ENDPOINT_URL: "http://127.0.0.1:1" });
  assert.equal(closed.code, 3);
  assert.match(closed.stderr, /cannot read the stack sluice-acme: .*ECONNREFUSED/);
});
