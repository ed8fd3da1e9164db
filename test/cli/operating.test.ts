import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import * as z from "zod";
import { awsSettings } from "../../infra/local/aws.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { dynamoPauses } from "../../shared/tasks/dynamodb-pauses.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import type { PauseStore } from "../../shared/tasks/pauses.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { SENDER, type Sluice, startSluice } from "../support/sluice.ts";
import { until } from "../support/until.ts";
import { run } from "./run.ts";

/** The folder of an operator, in which the local host runs. */
const cwd = mkdtempSync(join(tmpdir(), "sluice-operating-"));
const SUPPORT = "acme-support";
const ASKER = "acme-asker";

let sluice: Sluice;
let ddb: DynamoDBClient;
let store: Store;
let pauses: PauseStore;
before(async () => {
  mkdirSync(join(cwd, ".sluice"));
  writeFileSync(
    join(cwd, "agents.yaml"),
    "deployment: acme\nagents: { support: {}, asker: {}, faulty: {}, maker: {}, narrow: {} }\n",
  );
  sluice = await startSluice({ dataDir: join(cwd, ".sluice") });
  await ensureStreams(await jetstreamManager(sluice.peer.nc));
  ddb = new DynamoDBClient(awsSettings(sluice.host.endpoints.dynamodb));
  const client = DynamoDBDocumentClient.from(ddb, { marshallOptions: { removeUndefinedValues: true } });
  const access = { client, table: sluice.host.tableName };
  store = dynamoStore(access);
  pauses = dynamoPauses(access);
});
after(async () => {
  ddb?.destroy();
  await sluice?.stop();
  rmSync(cwd, { recursive: true, force: true });
});

const sluiceDo = (...args: string[]) => run(args, { cwd });
/** What a command that succeeds writes under `--json`, which is one object. */
const told = async (...args: string[]) => {
  const { code, stderr, json } = await sluiceDo(...args, "--json");
  assert.equal(code, 0, stderr);
  return z.tuple([z.looseObject({})]).parse(json())[0];
};
const ask = (runtime: string, a2a: unknown = "hello") =>
  sluice.peer.ask(runtime, { channelRef: runtime.slice("acme-".length), a2a });
const headOf = async (taskId: string) => {
  const head = await store.head(taskId);
  assert.ok(head);
  return head;
};
/** Waits until a task's head is in a state, or its task waits. */
const reaches = (taskId: string, state: string) =>
  until(`it is ${state}`, async () => {
    const head = await store.head(taskId);
    return head?.state === `TASK_STATE_${state}` || (state === "waiting" && head?.waiting === true);
  });
const isHeld = async (runtime: string, taskId: string) => {
  for await (const held of pauses.held(runtime)) if (held === taskId) return true;
  return false;
};

describe("a paused agent", () => {
  test("takes tasks and does none, until it is resumed", async () => {
    const paused = await sluiceDo("pause", "support");
    assert.equal(paused.code, 0, paused.stderr);
    assert.equal(paused.stdout, `${SUPPORT} is paused: new tasks wait; go on with ./sluice resume support\n`);
    const { taskId } = await ask(SUPPORT);
    await until("the task is held back", () => isHeld(SUPPORT, taskId));
    const { epoch, state } = await headOf(taskId);
    assert.deepEqual([epoch, state], [0, "TASK_STATE_SUBMITTED"]);

    const agents = await sluiceDo("agents");
    assert.match(agents.stdout, /^support +acme-support +paused; listening/m);
    assert.match(agents.stdout, /^asker +acme-asker +listening/m);
    const doctor = await sluiceDo("doctor");
    assert.match(doctor.stdout, /^warning {2}agent acme-support: paused since .* by \S+: new tasks wait$/m);

    assert.deepEqual(await told("resume", SUPPORT), {
      agent: "support",
      runtime: SUPPORT,
      paused: false,
      wasPaused: true,
      offered: 1,
    });
    const events = await sluice.peer.outcome(taskId);
    assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
    assert.equal(await isHeld(SUPPORT, taskId), false);
    assert.equal((await sluiceDo("resume", "support")).stdout, `${SUPPORT} was not paused\n`);
  });

  test("refuses new tasks when it is told to; whoever has paused it first stays", async () => {
    const first = z.looseObject({ since: z.string(), by: z.string() }).parse(await told("pause", "asker"));
    const second = await told("pause", "asker", "--refuse");
    assert.deepEqual(second, { ...first, refuse: true });
    const { messageId } = await ask(ASKER);
    const [rejected] = await sluice.peer.outcome(`msg_${messageId}`);
    assert.equal(rejected?.event.error?.code, "overloaded");
    assert.equal(rejected?.event.error?.message, `overloaded: ${ASKER} is paused, and takes no tasks`);
    assert.equal((await sluiceDo("resume", "asker")).code, 0);
  });

  test("that has a queue of its own is resumed by way of it", async () => {
    await told("pause", "narrow");
    const { taskId } = await ask("acme-narrow", { parts: [{ data: { file: join(cwd, "log"), workMs: 1 } }] });
    await until("the task is held back", () => isHeld("acme-narrow", taskId));
    await told("resume", "narrow");
    const events = await sluice.peer.outcome(taskId);
    assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
  });

  test("must be one of the deployment", async () => {
    for (const [name, said] of [
      ["suport", /no agent "suport", did you mean support\?; known here are asker, /],
      ["a b", /expected an agent's short id, or its runtime id acme-…/],
    ] as const) {
      const { code, stderr } = await sluiceDo("pause", name);
      assert.equal(code, 2);
      assert.match(stderr, said);
    }
    const folder = mkdtempSync(join(tmpdir(), "sluice-none-"));
    writeFileSync(join(folder, "agents.yaml"), "deployment: acme\n");
    const elsewhere = await run(["pause", "echo"], { cwd: folder });
    rmSync(folder, { recursive: true });
    assert.equal(elsewhere.code, 3);
    assert.match(elsewhere.stderr, /no local host runs in this folder/);
  });
});

describe("a task that is run again", () => {
  const retried = z.strictObject({
    task: z.string(),
    taskId: z.string(),
    messageId: z.string(),
    from: z.string(),
    to: z.string(),
    attempt: z.int(),
    sent: z.boolean(),
    state: z.string().nullable(),
  });
  const retry = async (...args: string[]) => retried.parse(await told("retry", ...args));
  const refused = async (taskId: string, said: RegExp) => {
    const { code, stderr } = await sluiceDo("retry", taskId);
    assert.equal(code, 1);
    assert.match(stderr, said);
  };

  test("is a new one of the same sender, and one only for however many commands", async () => {
    const { taskId } = await ask("acme-faulty", { parts: [{ data: { fault: "throw" } }] });
    await reaches(taskId, "FAILED");
    const { code, stdout, stderr } = await sluiceDo("retry", taskId);
    assert.equal(code, 0, stderr);
    const first = /^sent +(task_\w+) to acme-faulty as (\S+), a retry of (\S+)\n$/.exec(stdout)?.slice(1, 4);
    assert.deepEqual(first, [first?.[0], SENDER, taskId]);
    const again = await sluice.peer.outcome(first?.[0] ?? "");
    assert.equal(again[0]?.event.messageId, `retry_${taskId.slice("task_".length)}_1`);
    assert.equal(again.at(-1)?.event.error?.message, "Error: it went wrong");
    await reaches(first?.[0] ?? "", "FAILED");

    const same = await retry(taskId);
    assert.deepEqual([same.taskId, same.sent, same.state], [first?.[0], false, "TASK_STATE_FAILED"]);
    const second = await retry(taskId, "--again");
    assert.deepEqual([second.attempt, second.sent], [2, true]);
    assert.notEqual(second.taskId, first?.[0]);
    await sluice.peer.outcome(second.taskId);
  });

  for (const [where, length] of [
    ["in the head", 10],
    ["in an item", 5_000],
    ["in the bucket", 50_000],
  ] as const)
    test(`has the input that it had, ${where}`, async () => {
      const { taskId } = await ask(ASKER, "x".repeat(length));
      await reaches(taskId, "waiting");
      await refused(taskId, /it is not over; .\/sluice cancel/);
      await sluice.peer.control(ASKER, taskId, "cancel", 9);
      await reaches(taskId, "CANCELED");
      const { taskId: next } = await retry(taskId);
      const asked = await until("it asks", async () =>
        (await sluice.peer.events(next)).find(({ event }) => event.state === "TASK_STATE_INPUT_REQUIRED"),
      );
      assert.equal(asked.event.content, `Which colour for the ${"x".repeat(length)}?`);
      const busy = await sluiceDo("retry", taskId, "--again");
      assert.equal(busy.code, 1);
      assert.match(busy.stderr, /its retry task_\w+ is not over yet/);
    });

  test("is not one that is unknown, has completed, was rejected, or was handed on", async () => {
    await refused("task_nobody", /has no record of it/);
    const { taskId } = await ask(SUPPORT);
    await reaches(taskId, "COMPLETED");
    await refused(taskId, /it has not failed: completed/);
    const rejected = await sluice.peer.ask(SUPPORT, { channelRef: "support", skillId: "none" });
    await sluice.peer.outcome(`msg_${rejected.messageId}`);
    await refused(rejected.taskId, /it was rejected, and its input is not kept/);

    const delegated = `task_${"d".repeat(24)}`;
    const clientTaskRef = `task_${"e".repeat(24)}`;
    const { queued: _, dueAt: __, ...over } = await headOf(taskId);
    const failed = { ...over, state: "TASK_STATE_FAILED" as const, clientTaskRef };
    await store.admit({ ...failed, taskId: delegated, messageId: "dlg_1" });
    await refused(delegated, new RegExp(`task ${clientTaskRef} had handed it on`));
    const own = await retry(delegated, "--from", "eve-room");
    const [answer] = await sluice.peer.outcome(`msg_${own.messageId}`, { from: "eve-room" });
    assert.equal(answer?.event.error?.code, "sender_not_allowed");
  });
});
