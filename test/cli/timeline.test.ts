import assert from "node:assert/strict";
import { test } from "node:test";
import { defineAgent, FatalError, type Step, skill } from "sluice";
import * as z from "zod";
import { readRecord } from "../../cli/record.ts";
import { type StepLine, timelineOf } from "../../cli/timeline.ts";
import type { Entry } from "../../shared/tasks/items.ts";
import type { TaskState } from "../../shared/wire/index.ts";
import { Crashes } from "../../testing/crashes.ts";
import { Simulation } from "../../testing/simulation.ts";
import { TestTask } from "../../testing/task.ts";

const HOUR = 3_600_000;

const agentOf = (run: (step: Step) => Promise<unknown>) =>
  defineAgent({
    id: "probe",
    description: "Does what the test says",
    skills: {
      task: skill({
        name: "Task",
        description: "",
        input: z.unknown(),
        run: async (_, step) => String(await run(step)),
      }),
    },
  });

/** A task of this handler, and how its steps stand whenever it is asked. */
async function started(run: (step: Step) => Promise<unknown>) {
  const simulation = new Simulation(agentOf(run));
  const { taskId } = await simulation.admit({ skill: "task", a2a: "go", from: "local-cli" });
  const { store, values } = simulation;
  const read = async () => {
    const stack = { label: "the test", store, values, [Symbol.dispose]: () => {} };
    return timelineOf(await readRecord(stack, taskId), simulation.clock.now());
  };
  return { simulation, taskId, read, began: simulation.clock.now() };
}

const brief = ({ name, kind, state, attempts }: StepLine) => `${name} ${kind} ${state} ${attempts}`;
const lineOf = (lines: readonly StepLine[], name: string) => lines.find((line) => line.name === name);

test("what is done, what waits, and what has failed, in the order in which it began", async () => {
  const { simulation, read, began } = await started(async (step) => {
    await step.run("plan", () => 1);
    const bad = () => Promise.reject(new FatalError("no way"));
    await Promise.all([
      step.run("bad", bad).catch(() => {}),
      step.branch("a").sleep("rest", "2h"),
      step.branch("b").sleep("rest", "1h"),
    ]);
    await step.artifact("report", "text");
  });
  await simulation.advance(HOUR / 2);
  const early = await read();
  assert.deepEqual(early.map(brief), [
    "plan run done 1",
    "bad run failed 1",
    "a/rest sleep waiting 1",
    "b/rest sleep waiting 1",
  ]);
  const rest = lineOf(early, "a/rest");
  assert.deepEqual([rest?.beganAt, rest?.endedAt, rest?.until], [began, null, began + 2 * HOUR]);
  assert.deepEqual(lineOf(early, "bad")?.error, { name: "FatalError", message: "no way" });

  await simulation.advance(2 * HOUR);
  const late = await read();
  assert.deepEqual(late.map(brief), [
    "plan run done 1",
    "bad run failed 1",
    "a/rest sleep done 1",
    "b/rest sleep done 1",
    "report artifact done 1",
  ]);
  const slept = late.slice(2, 4).map(({ beganAt, endedAt }) => (endedAt ?? 0) - (beganAt ?? 0));
  assert.deepEqual(slept, [2 * HOUR, HOUR]);
});

test("a step between two attempts, with the last one's error; then how many it took, pauses included", async () => {
  let attempts = 0;
  const { simulation, read, began } = await started((step) =>
    step.run(
      "flaky",
      () => {
        if (++attempts < 3) throw new Error(`attempt ${attempts}`);
        return "ok";
      },
      { retry: { attempts: 5, initial: "2h", max: "9h" } },
    ),
  );
  await simulation.advance(1);
  const [open] = await read();
  assert.equal(open && brief(open), "flaky run waiting 1");
  assert.deepEqual(open?.error, { name: "Error", message: "attempt 1" });
  assert.ok((open?.until ?? 0) > began);
  await simulation.advance(20 * HOUR);
  const [done] = await read();
  assert.equal(done && brief(done), "flaky run done 3");
  assert.equal(done?.beganAt, began);
  assert.equal(done?.error, null);
});

test("what only the operator may approve waits for the operator", async () => {
  const { simulation, read } = await started(async (step) => {
    await step.approve("gate", "Go?", { by: "operator" });
  });
  await simulation.advance(1);
  assert.deepEqual(
    (await read()).map(({ state, waitsFor }) => [state, waitsFor]),
    [["asked", "the operator"]],
  );
});

test("a question: who must answer; afterwards what came of it", async () => {
  const { simulation, taskId, read } = await started(async (step) => {
    await step.ask("colour", "Which colour?");
    await step.approve("paint", "Paint it?").catch(() => {});
    await step.sleep("dry", "1h");
  });
  const reply = async (kind: "input_reply" | "auth_reply", a2a: unknown) => {
    const revision = (simulation.publisher.events(taskId).at(-1)?.event.revision ?? 0) + 1;
    await simulation.control({ taskId, from: "local-cli", kind, revision, a2a });
    await simulation.advance(1);
  };
  await simulation.advance(1);
  const [asked] = await read();
  assert.equal(asked && brief(asked), "colour ask asked 1");
  assert.equal(asked?.waitsFor, "local-cli");

  await reply("input_reply", { input: "blue" });
  assert.deepEqual((await read()).map(brief), ["colour ask done 1", "paint approve asked 1"]);
  await reply("auth_reply", { approve: false, denyReason: "too blue" });
  const lines = await read();
  assert.deepEqual(lines.map(brief), ["colour ask done 1", "paint approve failed 1", "dry sleep waiting 1"]);
  assert.deepEqual(lines[1]?.error, { name: "ApprovalDenied", message: "too blue" });
});

test("what a task ended without is dropped", async () => {
  const { simulation, taskId, read } = await started(async (step) => {
    await step.sleep("first", "1h");
    await Promise.all([step.sleep("long", "9h"), step.ask("why", "Why?")]);
  });
  await simulation.advance(2 * HOUR);
  await simulation.control({ taskId, from: "local-cli", kind: "cancel", revision: 9 });
  await simulation.advance(20 * HOUR);
  assert.deepEqual((await read()).map(brief).sort(), [
    "first sleep done 1",
    "long sleep dropped 1",
    "why ask dropped 1",
  ]);
});

test("after a death the step that runs is known", async () => {
  const simulation = new Simulation(
    agentOf((step) =>
      step.run("long", () => new Promise((done) => simulation.clock.timer(10 * HOUR, () => done("done")))),
    ),
  );
  const { taskId } = await simulation.admit({ skill: "task", a2a: "go", from: "local-cli" });
  await simulation.advance(1);
  const read = async () => {
    const stack = { label: "the test", ...simulation, [Symbol.dispose]: () => {} };
    return timelineOf(await readRecord(stack, taskId), simulation.clock.now());
  };
  assert.deepEqual(await read(), [], "nothing is written before a step is done");
  simulation.kill();
  await simulation.advance(5 * 60_000);
  assert.deepEqual((await read()).map(brief), ["long run running 1"]);
});

/** A task that sleeps, and whose journal a test continues by itself. */
async function journal() {
  const stage = await started((step) => step.sleep("first", "1h"));
  const { simulation, taskId } = stage;
  await simulation.advance(1);
  const put = async (of: Partial<Entry>) => {
    const last = (await simulation.store.entries(taskId, 1)).at(-1);
    assert.ok(last);
    const { place, at, revision } = last;
    const entry: Entry = { place: place + 1, nonce: `n${place}`, epoch: 1, at: at + 1, revision, ...of };
    await simulation.store.append(taskId, entry, 4_000_000_000);
    return entry;
  };
  const handOn = (name: string, until = simulation.clock.now() + HOUR) => {
    const of = { to: "acme-exec", channelRef: "exec", skill: "exec/task", timeoutSec: 60, depth: 0 };
    return put({ opens: [{ name, kind: "delegate", until, child: { ...of, messageId: `msg_${name}` } }] });
  };
  return { ...stage, put, handOn, until: simulation.clock.now() + HOUR };
}

test("a delegation waits for its executor", async () => {
  const { handOn, read, until } = await journal();
  await handOn("ask exec", until);
  const line = lineOf(await read(), "ask exec");
  assert.deepEqual(
    [line?.state, line?.waitsFor, line?.skill, line?.until],
    ["waiting", "acme-exec", "exec/task", until],
  );
});

test("a delegation is over with its executor's end, also when the task is over", async () => {
  const { handOn, put, read } = await journal();
  const ended = (step: string, state: TaskState, error?: { code: string; message: string }) => {
    const outcome = { state, text: "", artifacts: [], metrics: {}, ...(error && { error }) };
    return put({ heard: { step, revision: 2, outcome: { text: JSON.stringify(outcome) } } });
  };
  for (const name of ["good", "bad", "never"]) await handOn(name);
  const good = await ended("good", "TASK_STATE_COMPLETED");
  await ended("bad", "TASK_STATE_REJECTED", { code: "overloaded", message: "full" });
  await put({ heard: { step: "never", revision: 1, taskId: "task_1" } });
  const states = async () =>
    (await read()).slice(1).map(({ name, state, waitsFor }) => [name, state, waitsFor]);
  assert.deepEqual(await states(), [
    ["good", "done", "acme-exec"],
    ["bad", "failed", "acme-exec"],
    ["never", "waiting", "acme-exec"],
  ]);

  await put({ end: { state: "TASK_STATE_COMPLETED" } });
  assert.deepEqual(await states(), [
    ["good", "done", "acme-exec"],
    ["bad", "failed", "acme-exec"],
    ["never", "dropped", "acme-exec"],
  ]);
  const lines = await read();
  assert.equal(lineOf(lines, "good")?.endedAt, good.at);
  const { name, code, message = "" } = lineOf(lines, "bad")?.error ?? {};
  assert.deepEqual([name, code], ["DelegationError", "overloaded"]);
  assert.match(message, /acme-exec has ended the task as TASK_STATE_REJECTED, code overloaded: full$/);
});

for (const [length, pause] of [
  ["short", "4s"],
  ["long", "4h"],
] as const)
  test(`a step took its attempts and the ${length} pauses between them`, async () => {
    let attempts = 0;
    const { simulation, read, began } = await started((step) =>
      step.run(
        "flaky",
        async () => {
          await new Promise((done) => simulation.clock.timer(1_000, () => done("")));
          if (++attempts < 3) throw new Error(`attempt ${attempts}`);
        },
        { retry: { attempts: 3, initial: pause, max: pause } },
      ),
    );
    await simulation.advance(10 * HOUR);
    const [done] = await read();
    assert.equal(done && brief(done), "flaky run done 3");
    assert.equal(done?.beganAt, began);
    assert.ok((done?.endedAt ?? 0) - began >= 3_000);
  });

test("a delegation that is over is done or failed, though no entry of its step says so", async () => {
  const simulation = new Simulation(
    agentOf(async (step) => {
      const ask = (name: string) => step.delegate(name, { to: "acme-bob", skill: "bob/task", message: name });
      await ask("well");
      await ask("badly").catch(() => {});
      await step.sleep("rest", "1h");
    }),
  );
  const { taskId } = await simulation.admit({ skill: "task", a2a: "go", from: "local-cli" });
  const task = new TestTask({ id: taskId, from: "local-cli", simulation, crashes: new Crashes() });
  const read = async () => {
    const stack = { label: "the test", ...simulation, [Symbol.dispose]: () => {} };
    return timelineOf(await readRecord(stack, taskId), simulation.clock.now());
  };
  const well = await task.delegation("well");
  await well.accept();
  await simulation.advance(HOUR);
  assert.deepEqual((await read()).map(brief), ["well delegate waiting 1"]);
  await well.complete("fine");
  await (await task.delegation("badly")).fail("overloaded", "too much");
  for (const rest of ["waiting", "done"]) {
    const lines = await read();
    assert.deepEqual(lines.map(brief), [
      "well delegate done 1",
      "badly delegate failed 1",
      `rest sleep ${rest} 1`,
    ]);
    assert.equal((lines[0]?.endedAt ?? 0) - (lines[0]?.beganAt ?? 0), HOUR);
    assert.equal(lines[1]?.error?.code, "overloaded");
    assert.match(
      lines[1]?.error?.message ?? "",
      /acme-bob has ended the task as TASK_STATE_FAILED.*too much$/,
    );
    await task.outcome();
  }
});
