import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import * as z from "zod";
import { ensureStreams, eventsConsumer, getObject, putObject } from "../../shared/nats/index.ts";
import {
  acceptedEvent,
  artifactEvent,
  artifactRef,
  resultEvent,
  statusEvent,
  type TaskRef,
} from "../../shared/wire/index.ts";
import { Executor } from "../support/executor.ts";
import type { Point } from "../support/proxy/points.ts";
import { killCaller } from "../support/proxy/proxies.ts";
import { assertWhole, readTraces, STEPPER, type Stage, startStage } from "../support/stage.ts";
import { inTime, until } from "../support/until.ts";

const BOSS = "acme-boss";
const BOB = "bob-lobby";
const MALLORY = "mallory-lobby";
const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const now = () => new Date().toISOString();

let stage: Stage;
let bob: Executor;
/** The messages of the events' stream that were terminated, and why. */
const terminated: { readonly seq: number; readonly reason: string }[] = [];
const advisory = z.object({ stream: z.string(), stream_seq: z.int(), reason: z.string().default("") });

before(async () => {
  stage = await startStage({ timeScale: 60 });
  const { nc } = stage.sluice.peer;
  await ensureStreams(await jetstreamManager(nc));
  bob = new Executor(nc, BOB);
  nc.subscribe("$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>", {
    callback: (_error, message) => {
      const { stream, stream_seq: seq, reason } = advisory.parse(message.json());
      if (stream === "A2A_EVENTS") terminated.push({ seq, reason });
    },
  });
  await nc.flush();
});
after(() => stage.stop());

/** Has `boss` delegate. */
function ask(to: string, options: { skill?: string; message?: unknown; depth?: number } = {}) {
  const { depth = 1, message = "hello", ...rest } = options;
  const a2a = { parts: [{ data: { to, message, ...rest } }] };
  const delivery = { timeoutSec: 600, maxDelegationDepth: depth };
  return stage.sluice.peer.ask(BOSS, { a2a, channelRef: "boss", delivery }, { traceparent: TRACE });
}

/** Has `boss` delegate to Bob, who gets it. */
async function askBob() {
  const { taskId } = await ask(BOB, { skill: "lobby/task" });
  return { taskId, ...(await bob.handedBy(taskId)) };
}

/** The task's events when it is over, whole; the last as `<state> <text, or the error>`. */
async function outcome(taskId: string) {
  const events = await stage.sluice.peer.outcome(taskId);
  assertWhole(events);
  const last = events.at(-1)?.event;
  const said = last?.error ? `${last.error.code}: ${last.error.message}` : last?.content;
  return { events, end: `${last?.state.replace("TASK_STATE_", "")} ${said}` };
}

/** How many messages a stream holds on a subject. */
async function onStream(stream: string, subject: string): Promise<number> {
  const jsm = await jetstreamManager(stage.sluice.peer.nc);
  const { state } = await jsm.streams.info(stream, { subjects_filter: subject });
  return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
}

/** Waits until no event for `boss` is undecided. */
async function allHeard(): Promise<void> {
  const jsm = await jetstreamManager(stage.sluice.peer.nc);
  const left = async () => {
    const { num_pending, num_ack_pending } = await jsm.consumers.info("A2A_EVENTS", eventsConsumer(BOSS));
    return num_pending + num_ack_pending;
  };
  await until("every event is decided", async () => (await left()) === 0, { seen: left });
}

test("another agent does the work: its progress, its text and its artifact come back, and the hops are counted", async () => {
  const file = join(stage.sluice.dataDir, "delegated.jsonl");
  const { taskId } = await ask(STEPPER, { message: { file, steps: 2, stepMs: 1_500 } });
  const { events, end } = await outcome(taskId);
  assert.equal(end, "COMPLETED 2 steps");
  const runs = readTraces(file).map(({ run }) => run);
  assert.equal(runs.length, 2);
  const artifact = events.find(({ event }) => event.kind === "artifact")?.event.artifact;
  assert.equal(artifact?.name, "runs.json");
  assert.ok(artifact?.key.startsWith(`tasks/${taskId}/`));
  const bytes = await getObject(stage.sluice.peer.nc, artifact.key);
  assert.deepEqual(JSON.parse(Buffer.from(bytes ?? "").toString()), runs);
  assert.match(events.map(({ event }) => event.content).join("\n"), /step \d of 2 is done/);
  await allHeard();
  assert.deepEqual(terminated, []);
});

test("what is handed on says for whom, has less time and less depth, and comes with the trace", async () => {
  const { task, request, taskId, traceparent } = await askBob();
  assert.equal(traceparent, TRACE);
  assert.deepEqual(
    { ...request, delivery: { ...request.delivery, timeoutSec: 0 } },
    {
      a2a: { kind: "text", text: "hello", metadata: { "a2a.trace": { hops: 1 } } },
      channelRef: "lobby",
      skillId: "lobby/task",
      clientTaskRef: taskId,
      delivery: { timeoutSec: 0, maxDelegationDepth: 0 },
      originRuntimeRef: { runtimeAgentId: BOSS },
    },
  );
  const { timeoutSec = 0 } = request.delivery;
  assert.ok(timeoutSec > 0 && timeoutSec < 600, String(timeoutSec));
  await bob.accept(task);
  await bob.status(task, 2, "looking");
  await until("the progress is passed on", async () =>
    (await stage.sluice.peer.events(taskId)).some(({ event }) => event.content === "looking"),
  );
  const artifacts = [await bob.artifact(task, 3, "found.txt", Buffer.from("treasure"))];
  const content = `found it${".".repeat(40_000)}`; // too large for an item of the table
  await bob.result(task, { revision: 4, content, artifacts });
  const { events, end } = await outcome(taskId);
  assert.equal(end, `COMPLETED ${content}`);
  const key = events.find(({ event }) => event.kind === "artifact")?.event.artifact?.key ?? "";
  assert.equal(Buffer.from((await getObject(stage.sluice.peer.nc, key)) ?? "").toString(), "treasure");
});

test("artifacts that the result does not list come back, though all is told at once", async () => {
  const { task, taskId } = await askBob();
  const { nc } = stage.sluice.peer;
  const bytes = Buffer.from("treasure");
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  const artifacts = [1, 2, 3].map((n) =>
    artifactRef(task.taskId, {
      id: `a-${n}`,
      name: `${n}.txt`,
      mediaType: "text/plain",
      digest,
      sizeBytes: bytes.byteLength,
    }),
  );
  for (const artifact of artifacts) await putObject(nc, { ...artifact, bytes });
  await bob.accept(task);
  // As existing executors number them: above the result.
  for (const [n, artifact] of artifacts.entries())
    await bob.say(artifactEvent(task, { artifact, revision: 3 + n }, now()));
  await bob.result(task, { revision: 2, content: "found them" });
  const { events, end } = await outcome(taskId);
  assert.equal(end, "COMPLETED found them");
  assert.deepEqual(
    events
      .at(-1)
      ?.event.result?.artifacts.map(({ name }) => name)
      .sort(),
    artifacts.map(({ name }) => name),
  );
});

test("who may not delegate is told so, and nothing is sent", async () => {
  const before = bob.handed.length;
  const shallow = await ask(BOB, { skill: "lobby/task", depth: 0 });
  assert.match((await outcome(shallow.taskId)).end, /^FAILED policy_denied: .*maxDelegationDepth/);
  const stranger = await ask("acme-support");
  assert.match(
    (await outcome(stranger.taskId)).end,
    /^FAILED unauthorized_target: .*acme-boss has no delegateTargets/,
  );
  assert.equal(bob.handed.length, before);
});

test("a refusal and a failure of the other agent's end the task with the reason", async () => {
  const refused = await askBob();
  await bob.reject(refused.task, "overloaded", "overloaded: come back later");
  assert.match((await outcome(refused.taskId)).end, /^FAILED internal: .*overloaded.*come back later/);
  const failed = await askBob();
  await bob.accept(failed.task);
  await bob.say(
    resultEvent(
      failed.task,
      {
        revision: 2,
        state: "TASK_STATE_FAILED",
        error: { code: "internal", message: "it broke" },
        metrics: {},
      },
      now(),
    ),
  );
  assert.match((await outcome(failed.taskId)).end, /^FAILED internal: .*it broke/);
});

test("cancelling a task cancels what it has handed on, accepted before or only afterwards", async () => {
  const early = await askBob();
  await bob.accept(early.task);
  await bob.status(early.task, 2, "at it");
  await allHeard();
  await stage.sluice.peer.control(BOSS, early.taskId, "cancel", 2);
  assert.match((await outcome(early.taskId)).end, /^CANCELED/);
  const cancel = await bob.cancelled(early.task);
  assert.deepEqual([cancel.from, cancel.clientTaskRef], [BOSS, early.taskId]);
  assert.ok(cancel.revision > 1);

  const late = await askBob();
  await stage.sluice.peer.control(BOSS, late.taskId, "cancel", 2);
  assert.match((await outcome(late.taskId)).end, /^CANCELED/);
  await bob.accept(late.task);
  await bob.cancelled(late.task);
  await stage.over(late.taskId);
});

test("a cancel goes down to the handler of the other agent", async () => {
  const file = join(stage.sluice.dataDir, "cancelled.jsonl");
  const { taskId } = await ask(STEPPER, { message: { file, gate: `${file}.open` } });
  const { task } = await until("the step runs", () => readTraces(file)[0]);
  await stage.sluice.peer.control(BOSS, taskId, "cancel", 2);
  assert.match((await outcome(taskId)).end, /^CANCELED/);
  const events = await stage.sluice.peer.outcome(task, { from: BOSS });
  assert.equal(events.at(-1)?.event.state, "TASK_STATE_CANCELED");
  assert.notEqual(task, taskId);
});

test("foreign, doubled, late, malformed and unknown events change nothing; only what nobody can mean is terminated", async () => {
  await allHeard();
  terminated.length = 0;
  const { task, taskId } = await askBob();
  const forged: TaskRef = { ...task, to: MALLORY };
  const end = { state: "TASK_STATE_COMPLETED", content: "all yours", metrics: {} } as const;
  const seqOf = async (subject: string) =>
    (
      await (
        await jetstreamManager(stage.sluice.peer.nc)
      ).streams.getMessage("A2A_EVENTS", { last_by_subj: subject })
    )?.seq ?? 0;

  await bob.say(acceptedEvent(forged, now()));
  await bob.say(resultEvent(forged, { ...end, revision: 9 }, now()));
  await bob.accept(task);
  await bob.say(acceptedEvent(task, now()), ":again");
  await bob.say(statusEvent(task, { revision: 2, state: "TASK_STATE_WORKING", content: "one" }, now()));
  await bob.say(
    statusEvent(task, { revision: 2, state: "TASK_STATE_WORKING", content: "other" }, now()),
    ":2",
  );
  const malformed = `a2a.v1.event.${BOB}.${BOSS}.${task.taskId}.status`;
  await bob.say({ ...acceptedEvent(task, now()), subject: malformed, msgId: "malformed", body: "{" });
  const malformedSeq = await seqOf(malformed);
  await bob.result(task, { revision: 3, content: "mine" });
  await bob.say(resultEvent(task, { ...end, content: "mine", revision: 3 }, now()), ":again");
  assert.equal((await outcome(taskId)).end, "COMPLETED mine");
  await bob.say(resultEvent(task, { ...end, revision: 4 }, now()), ":late");

  const unknown: TaskRef = { ...task, taskId: "task_unknown" };
  await bob.status(unknown, 2, "of what?");
  const jsm = await jetstreamManager(stage.sluice.peer.nc);
  await until("what is unknown is given back", async () => {
    const { num_redelivered } = await jsm.consumers.info("A2A_EVENTS", eventsConsumer(BOSS));
    return num_redelivered > 0;
  });
  await allHeard();
  await stage.over(taskId);
  const seqs = await Promise.all([
    seqOf(`a2a.v1.event.${MALLORY}.${BOSS}.${task.taskId}.accepted`),
    seqOf(`a2a.v1.event.${MALLORY}.${BOSS}.${task.taskId}.result`),
    malformedSeq,
    seqOf(`a2a.v1.event.${BOB}.${BOSS}.task_unknown.status`),
  ]);
  await until("the advisories", () => seqs.every((of) => terminated.some(({ seq }) => seq === of)), {
    seen: () => terminated,
  });
  // A slow machine may be given one of them twice.
  const ended = [...new Set(terminated.map(({ seq }) => seq))].toSorted((a, b) => a - b);
  assert.deepEqual(ended, seqs, JSON.stringify(terminated));
  assert.equal(terminated.find(({ seq }) => seq === seqs[3])?.reason, "no such delegation");
  assert.equal(
    (await stage.sluice.peer.events(taskId)).filter(({ event }) => event.kind === "result").length,
    1,
  );
});

/** The points of a delegation's life at which whoever writes is killed, once the write is done. */
const KILLS: readonly [string, (point: Point, parent: string) => boolean][] = [
  [
    "the delegation is stored",
    ({ kind, body }) => kind.startsWith("dynamodb PutItem entry") && body.includes("dlg_"),
  ],
  [
    "the message is on its stream",
    ({ kind, subject }) => kind === "nats publish task" && subject.includes(BOB),
  ],
  [
    "the acceptance is stored",
    ({ kind, tasks }, parent) => kind === "dynamodb PutItem entry heard" && tasks.includes(parent),
  ],
  [
    "the outcome is stored",
    ({ kind, body, tasks }, parent) =>
      kind === "dynamodb PutItem entry heard" && tasks.includes(parent) && body.includes("outcome"),
  ],
  ["the outcome is told", ({ kind, tasks }, parent) => kind === "nats tell" && tasks.includes(parent)],
];

for (const [when, matches] of KILLS)
  test(`a delegation goes on after kill -9 of whoever writes, when ${when}`, async () => {
    const { proxies } = stage;
    const killed = Promise.withResolvers<void>();
    let parent = "";
    const off = proxies.points.on({
      after: (point, refused) => {
        if (refused || !matches(point, parent)) return undefined;
        off();
        killed.resolve();
        return killCaller(point);
      },
    });
    const { taskId } = await ask(BOB, { skill: "lobby/task" });
    parent = taskId;
    const { task } = await bob.handedBy(taskId);
    await bob.accept(task);
    await bob.result(task, { revision: 2, content: when });
    assert.equal((await outcome(taskId)).end, `COMPLETED ${when}`);
    await inTime("the kill", killed.promise);
    await stage.over(taskId);
    await allHeard();
    assert.equal(await onStream("A2A_TASKS", `a2a.v1.task.${BOSS}.${BOB}.${task.messageId}`), 1);
    const heard = (await stage.store.entries(taskId, 1)).flatMap(({ heard: of }) => of ?? []);
    assert.equal(heard.filter((of) => of.outcome !== undefined).length, 1);
  });

test("what is handed on is cancelled though whoever has put the end is killed before", async () => {
  const { task, taskId } = await askBob();
  await bob.accept(task);
  await allHeard();
  const off = stage.proxies.points.on({
    before: (point) => {
      if (point.kind !== "nats publish cancel" || !point.tasks.includes(task.taskId)) return undefined;
      off();
      return killCaller(point);
    },
  });
  await stage.sluice.peer.control(BOSS, taskId, "cancel", 2);
  await bob.cancelled(task);
  assert.match((await outcome(taskId)).end, /^CANCELED/);
  await stage.over(taskId);
  assert.equal(await onStream("A2A_CONTROLS", `a2a.v1.control.${BOSS}.${BOB}.${task.taskId}.cancel`), 1);
});

test("nothing but what was killed on purpose has failed on the way", async () => {
  await allHeard();
  const queues = Object.keys(stage.sluice.host.queueUrls).filter((name) => name.endsWith("dead"));
  // One for each of the queues that all share, and one of the agent `narrow` alone.
  assert.equal(queues.length, 5);
  for (const queue of queues) assert.equal(await stage.depth(queue), 0, queue);
});

test("an open delegation outlives the host", async () => {
  const { task, taskId } = await askBob();
  await bob.accept(task);
  await allHeard();
  await stage.sluice.stopHost();
  await bob.result(task, { revision: 2, content: "while you slept" });
  await stage.sluice.startHost();
  assert.equal((await outcome(taskId)).end, "COMPLETED while you slept");
});
