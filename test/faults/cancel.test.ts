import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Point } from "../support/proxy/points.ts";
import { killCaller } from "../support/proxy/proxies.ts";
import { assertWhole, type Published, STEPPER, type Stage, startStage } from "../support/stage.ts";
import { inTime, until } from "../support/until.ts";

let stage: Stage;
before(async () => {
  stage = await startStage({ timeScale: 40 });
});
after(() => stage.stop());

const STEP = "dynamodb PutItem entry steps";
const END = "dynamodb PutItem entry events+end";
const CANCEL = "dynamodb PutItem entry control+events+end";

/** Whether a point is a task's and its kind begins so. */
const is = (taskId: string, kind: string) => (point: Point) =>
  point.tasks.includes(taskId) && point.kind.startsWith(kind);

function newGate(): { path: string; open: () => void } {
  const path = join(stage.sluice.dataDir, `gate-${crypto.randomUUID()}`);
  return { path, open: () => writeFileSync(path, "") };
}

async function running(taskId: string): Promise<void> {
  await until("a step runs", () => stage.traces(taskId).length > 0, { seen: () => stage.log.of(taskId) });
}

function cancel({ taskId }: Published, reason = "changed my mind"): Promise<void> {
  return stage.sluice.peer.control(STEPPER, taskId, "cancel", 1, reason);
}

async function endsOf(taskId: string) {
  return (await stage.store.entries(taskId, 1)).flatMap(({ end }) => end ?? []);
}

/** The names of the steps that are stored. */
async function stepsOf(taskId: string): Promise<string[]> {
  const entries = await stage.store.entries(taskId, 1);
  return entries.flatMap(({ steps = [] }) => steps.map(({ name }) => name));
}

async function assertCancelled(taskId: string): Promise<void> {
  await stage.over(taskId);
  await stage.drained();
  const events = stage.log.of(taskId);
  assertWhole(events);
  const last = events.at(-1)?.event;
  assert.equal(last?.state, "TASK_STATE_CANCELED");
  assert.deepEqual(last.error, { code: "canceled", message: "changed my mind" });
  assert.deepEqual(
    (await endsOf(taskId)).map(({ state }) => state),
    ["TASK_STATE_CANCELED"],
  );
}

/** Waits until no worker is at the task any more: nothing that it could still say is to come. */
async function left(taskId: string): Promise<void> {
  const said = (text: string) =>
    stage.sluice.lines.some((line) => line.includes(text) && line.includes(taskId));
  await until("the worker leaves the task", () => said("a task is left"));
}

test("a cancel fires the signal of the step that runs, and nothing follows", async () => {
  const task = await stage.step({ gate: newGate().path });
  await running(task.taskId);
  await cancel(task);
  await until("the step's signal fires", () => stage.traces(task.taskId).some(({ aborted }) => aborted));
  await left(task.taskId);
  await assertCancelled(task.taskId);
  assert.deepEqual(await stepsOf(task.taskId), [], "the step stored nothing");
});

test("the late result of a step that does not listen changes nothing", async () => {
  const gate = newGate();
  const task = await stage.step({ gate: gate.path, deaf: true });
  await running(task.taskId);
  await cancel(task);
  await stage.over(task.taskId);
  gate.open();
  await left(task.taskId);
  await assertCancelled(task.taskId);
  assert.deepEqual(await stepsOf(task.taskId), [], "the step stored nothing");
});

test("a step whose commit comes after the cancel's finds its place taken", async () => {
  const gate = newGate();
  const task = await stage.step({ gate: gate.path });
  const { points } = stage.proxies;
  const step = points.hold("before", is(task.taskId, STEP), "commit of the step");
  await running(task.taskId);
  gate.open();
  await step.reached;
  const landed = points.next("after", is(task.taskId, CANCEL), "cancel's end");
  await cancel(task);
  await landed;
  step.release();
  await left(task.taskId);
  await assertCancelled(task.taskId);
  assert.deepEqual(await stepsOf(task.taskId), [], "the step stored nothing");
});

test("a cancel whose commit comes after a step's takes the next place", async () => {
  const gate = newGate();
  const task = await stage.step({ gate: gate.path, deaf: true });
  const { points } = stage.proxies;
  await running(task.taskId);
  const end = points.hold("before", is(task.taskId, CANCEL), "cancel's end");
  await cancel(task);
  await end.reached;
  const stored = points.hold("after", is(task.taskId, STEP), "commit of the step");
  gate.open();
  await stored.reached; // what follows the step must wait for the cancel, too
  const landed = points.next("after", is(task.taskId, CANCEL), "cancel's end at another place");
  end.release();
  await landed;
  stored.release();
  await left(task.taskId);
  await assertCancelled(task.taskId);
  assert.deepEqual(await stepsOf(task.taskId), ["step 1"]);
});

test("a cancel whose commit comes after the task's end is answered by that end again", async () => {
  const gate = newGate();
  const task = await stage.step({ gate: gate.path, steps: 1, deaf: true });
  const { points } = stage.proxies;
  await running(task.taskId);
  const cancelled = points.hold("before", is(task.taskId, CANCEL), "cancel's end");
  await cancel(task);
  await cancelled.reached;
  const ended = points.next("after", is(task.taskId, END), "the task's end");
  gate.open();
  await ended;
  cancelled.release();
  await stage.over(task.taskId);
  await stage.drained();

  const events = stage.log.of(task.taskId);
  const [result, again, ...more] = events.filter(({ kind }) => kind === "result");
  assert.equal(result?.event.state, "TASK_STATE_COMPLETED");
  assert.equal(again?.body, result.body, "the same bytes");
  assert.ok(again.msgId.startsWith(`${result.msgId}:`), again.msgId);
  assert.deepEqual(more, []);
  assertWhole(events.slice(0, -1));
  assert.deepEqual(
    (await endsOf(task.taskId)).map(({ state }) => state),
    ["TASK_STATE_COMPLETED"],
  );
});

/** What the end of a cancelled task writes. */
const WAY = [
  "sqs send controls",
  CANCEL,
  "nats publish status",
  "dynamodb TransactWriteItems settled",
  "nats ack",
];

test("a cancel takes effect although its process is killed right before or after any of its writes", async () => {
  const tasks: string[] = [];
  for (const when of ["before", "after"] as const)
    for (const kind of WAY) {
      const task = await stage.step({ gate: newGate().path, steps: 1 });
      tasks.push(task.taskId);
      await running(task.taskId);
      await until("the task's message is done with", async () => (await stage.depth("tasks")) === 0);
      const killed = Promise.withResolvers<void>();
      const off = stage.proxies.points.on({
        [when]: (point: Point) => {
          if (!is(task.taskId, kind)(point) || point.caller?.name === "work") return undefined;
          off();
          killed.resolve();
          return killCaller(point);
        },
      });
      await cancel(task);
      await inTime(`a kill right ${when} ${kind}`, killed.promise);
    }
  await Promise.all(tasks.map(assertCancelled));
});
