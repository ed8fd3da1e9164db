import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { ListObjectsV2Command, S3Client } from "@aws-sdk/client-s3";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import * as z from "zod";
import { awsSettings } from "../../infra/local/aws.ts";
import { ensureStreams, getObject } from "../../shared/nats/index.ts";
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
let s3: S3Client;
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
  s3 = new S3Client({ ...awsSettings(sluice.host.endpoints.s3), forcePathStyle: true });
  ddb = new DynamoDBClient(awsSettings(sluice.host.endpoints.dynamodb));
  const client = DynamoDBDocumentClient.from(ddb, { marshallOptions: { removeUndefinedValues: true } });
  const access = { client, table: sluice.host.tableName };
  store = dynamoStore(access);
  pauses = dynamoPauses(access);
});
after(async () => {
  ddb?.destroy();
  s3?.destroy();
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
    const pausedJson = z
      .array(z.looseObject({ shortId: z.string().optional(), paused: z.unknown().optional() }))
      .parse((await sluiceDo("agents", "--json")).json())
      .find(({ shortId }) => shortId === "support")?.paused;
    z.strictObject({ since: z.iso.datetime(), by: z.string(), refuse: z.literal(false) }).parse(pausedJson);
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
    assert.match((await sluiceDo("retry", taskId)).stdout, /: failed; add --again to run it once more$/m);
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
      const { stdout } = await sluiceDo("retry", taskId);
      assert.match(stdout, new RegExp(`retried as ${next}: .*; \\./sluice status ${next} follows it$`, "m"));
    });

  test("is not one that is unknown, has completed, was rejected, or was handed on", async () => {
    await refused(`task_${"f".repeat(24)}`, /has no record of it/);
    await refused("task_nobody", /expected the whole id/);
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

describe("a task that is erased", () => {
  const valuesOf = async (taskId: string) => {
    const { Contents = [] } = await s3.send(
      new ListObjectsV2Command({ Bucket: sluice.host.bucketName, Prefix: `values/${taskId}/` }),
    );
    return Contents.length;
  };
  const made = async () => {
    const asked = await sluice.peer.ask("acme-maker", {
      channelRef: "maker",
      skillId: "artifact",
      a2a: { parts: [{ data: { bytes: 100_000 } }, { text: "secret".repeat(10_000) }] },
    });
    await reaches(asked.taskId, "COMPLETED");
    return asked;
  };

  test("has left nothing but that it was, and a repeated message runs nothing", async () => {
    const { taskId, subject, msgId, body } = await made();
    assert.equal(await valuesOf(taskId), 2);
    const key = `tasks/${taskId}/blob/blob.bin`;
    assert.equal((await getObject(sluice.peer.nc, key))?.byteLength, 100_000);
    const before = await headOf(taskId);

    const unasked = await sluiceDo("erase", taskId);
    assert.deepEqual([unasked.code, /without a terminal --yes is required/.test(unasked.stderr)], [2, true]);
    const { code, stdout, stderr } = await sluiceDo("erase", taskId, "--yes", "--by", "eve");
    assert.equal(code, 0, stderr);
    assert.equal(stdout, `${taskId} is erased: its payload and results, 2 values, 1 artifact\n`);
    assert.match(stderr, /^sluice: its messages are on the streams .* --streams deletes them$/m);

    assert.equal(await valuesOf(taskId), 0);
    assert.equal(await getObject(sluice.peer.nc, key), null);
    const { stdout: status } = await sluiceDo("status", taskId);
    assert.match(status, /^ {2}blob\.bin .* {2}erased$/m);
    assert.doesNotMatch(status, /sluice artifact/);
    const artifact = await sluiceDo("artifact", taskId);
    assert.equal(artifact.code, 1);
    assert.match(artifact.stderr, /^sluice: artifact "blob\.bin": it was erased; a2a-artifacts keeps a note/);
    const { input: _, ...kept } = before;
    const { erased, ...head } = await headOf(taskId);
    assert.deepEqual(head, kept);
    assert.equal(erased?.by, "eve");
    const entries = await store.entries(taskId, 1);
    assert.deepEqual(
      entries.map(({ place }) => place),
      entries.map((__, index) => index + 1),
    );
    for (const { steps, opens, answer, heard, events = [], end } of entries) {
      assert.deepEqual([steps, opens, answer, heard], [undefined, undefined, undefined, undefined]);
      assert.equal(events.length, end === undefined ? 0 : 1);
    }
    const shown = await sluiceDo("steps", taskId);
    assert.match(shown.stdout, /^erased +\d{4}-.* by eve\n\nits steps are erased$/m);

    await sluice.peer.publish(subject, `${msgId}-again`, body.replace("secret", "public"));
    await until("the repeated message is known", () =>
      sluice.lines.some(
        (line) => line.includes("another body under a known message id") && line.includes(taskId),
      ),
    );
    const repeated = await sluice.peer.events(taskId);
    assert.ok(repeated.every(({ event }) => event.revision <= (before.published ?? 0)));
    assert.equal((await headOf(taskId)).epoch, before.epoch);

    // What the repeated message has brought again goes, too, and the messages of the streams.
    const again = z
      .looseObject({ by: z.string(), messages: z.int() })
      .parse(await told("erase", taskId, "--yes", "--streams"));
    assert.deepEqual([again.by, again.messages > 3], ["eve", true]);
    assert.equal(await valuesOf(taskId), 0);
    assert.deepEqual(await sluice.peer.events(taskId), []);
    // Nothing is left on the stream: so what a control is answered by is what is left.
    await sluice.peer.control("acme-maker", taskId, "status", 99);
    const [last] = await sluice.peer.outcome(taskId);
    assert.deepEqual(
      [last?.event.kind, last?.event.state, last?.event.content, last?.event.revision],
      ["result", "TASK_STATE_COMPLETED", "", before.published],
    );
    assert.equal((await headOf(taskId)).epoch, before.epoch);
  });

  test("is over; one that has failed cannot be retried any more", async () => {
    const { taskId } = await ask(ASKER);
    await reaches(taskId, "waiting");
    const live = await sluiceDo("erase", taskId, "--yes");
    assert.deepEqual([live.code, /it is not over; .\/sluice cancel/.test(live.stderr)], [1, true]);
    assert.ok((await headOf(taskId)).input);
    await sluice.peer.control(ASKER, taskId, "cancel", 9, "a secret reason");
    await reaches(taskId, "CANCELED");
    await told("erase", taskId, "--yes");
    const left = JSON.stringify(await store.entries(taskId, 1));
    assert.doesNotMatch(left, /secret|Which colour/);
    const { code, stderr } = await sluiceDo("retry", taskId);
    assert.deepEqual([code, /its input is gone: it was erased/.test(stderr)], [1, true]);
    assert.equal((await sluiceDo("erase", "task_nobody", "--yes")).code, 1);
  });
});
