import assert from "node:assert/strict";
import test from "node:test";
import { defineAgent, type Step, skill } from "sluice";
import { startTask } from "sluice/testing";
import * as z from "zod";
import { NotJsonError, StepOptionError } from "../../shared/steps/errors.ts";
import {
  MAX_STATUS_DATA_BYTES,
  MAX_STATUS_DATA_DEPTH,
  progressOf,
  StatusLine,
} from "../../shared/steps/status.ts";
import { systemClock } from "../../shared/tasks/clock.ts";
import { MAX_INLINE_BYTES } from "../../shared/tasks/values.ts";
import { until } from "../support/until.ts";

test("a text is not lost when its timer is early by the clock", async () => {
  let now = 1_000;
  let due = 0;
  const line = new StatusLine({ everyMs: 10, clock: { ...systemClock, now: () => now }, due: () => due++ });
  line.restore(now);
  line.set({ text: "half way" });
  // The timers of this process go on, the clock stands one millisecond before the text's time.
  now += 9;
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(due, 0);
  assert.equal(line.take(false), undefined);
  now += 1;
  await until("the text is due", () => due === 1);
  assert.deepEqual(line.take(false), { text: "half way" });
  line.close();
});

test("a text that comes right after another was taken along is due in its turn", async () => {
  let now = 1_000;
  let due = 0;
  const line = new StatusLine({ everyMs: 10, clock: { ...systemClock, now: () => now }, due: () => due++ });
  line.restore(now);
  line.set({ text: "one" });
  now += 10;
  assert.deepEqual(line.take(false), { text: "one" }); // by a step's entry, before the timer of its own
  line.set({ text: "two" });
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(due, 0, "it is not yet its time");
  now += 10;
  await until("the second text is due", () => due === 1);
  assert.deepEqual(line.take(false), { text: "two" });
  line.close();
});

test("a text that is in the journal already is not told again by whoever takes over", () => {
  const line = new StatusLine({ everyMs: 10, clock: systemClock, due: () => {} });
  line.restore(1_000, { text: "half way" });
  line.set({ text: "half way" });
  assert.equal(line.take(true), undefined);
  line.set({ text: "nearly there" });
  assert.deepEqual(line.take(true), { text: "nearly there" });
  line.close();
});

/** Text and data of the progress that a handler's requester is told. */
async function told(run: (step: Step) => Promise<unknown>, policy: object = { statusEverySec: 0 }) {
  const agent = defineAgent({
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
  const t = await startTask(agent, { text: "go", policy });
  const { error } = await t.outcome();
  const progress = t.events.filter(({ kind }) => kind === "status");
  return { t, error, progress: progress.map(({ content, data }) => ({ content, data })) };
}

test("data goes with its text, as it is when it is told", async () => {
  const { progress } = await told(async (step) => {
    const data = { done: 1, of: [2, null] };
    step.status("one", data);
    data.done = 7;
    await step.run("a", () => 1);
    step.status("two", "text");
    await step.run("b", () => 1);
    step.status("three", null);
    await step.run("c", () => 1);
    step.status("four");
  });
  assert.deepEqual(progress, [
    { content: "one", data: { done: 1, of: [2, null] } },
    { content: "two", data: "text" },
    { content: "three", data: undefined },
    { content: "four", data: undefined },
  ]);
});

test("the newest text wins, with its data or without any; the same text with other data is news", async () => {
  const { progress } = await told(
    async (step) => {
      step.status("half way", { done: 1 });
      step.status("further");
      await step.sleep("rest", "1h");
      step.status("counting", { done: 1 });
      step.status("counting", { done: 2 });
      await step.sleep("rest again", "1h");
      step.status("counting", { done: 3 });
    },
    { statusEverySec: 300 },
  );
  assert.deepEqual(progress, [
    { content: "further", data: undefined },
    { content: "counting", data: { done: 2 } },
    { content: "counting", data: { done: 3 } },
  ]);
});

test("what is in the journal already is not told again, data included", async () => {
  const { t, progress } = await told(async (step) => {
    step.status("working", { b: 1, a: "\ud800" });
    await step.run("a", () => 1);
    await step.sleep("rest", "1h");
    step.status("working", { b: 1, a: "\ud800" });
    await step.sleep("rest again", "1h");
  });
  assert.deepEqual(progress, [{ content: "working", data: { b: 1, a: "\ufffd" } }]);
  assert.equal(t.events.length, 3);
});

test("the data has bounds", async () => {
  const text = (bytes: number) => "x".repeat(bytes - 2);
  const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
  assert.equal(progressOf("t", text(MAX_STATUS_DATA_BYTES)).data?.length, MAX_STATUS_DATA_BYTES);
  assert.throws(
    () => progressOf("t", text(MAX_STATUS_DATA_BYTES + 1)),
    (error) =>
      error instanceof StepOptionError && /at most 16384 bytes as JSON, got 16385/.test(error.message),
  );
  assert.ok(progressOf("t", nested(MAX_STATUS_DATA_DEPTH)).data);
  assert.throws(
    () => progressOf("t", nested(MAX_STATUS_DATA_DEPTH + 1)),
    (error) => error instanceof StepOptionError && /nested at most 100 deep/.test(error.message),
  );
  for (const wrong of [1n, { deep: [Number.NaN] }, () => 1])
    assert.throws(() => progressOf("t", wrong), NotJsonError);
  assert.throws(() => progressOf(1, undefined), TypeError);

  const { error } = await told(async (step) => step.status("t", text(MAX_STATUS_DATA_BYTES + 1)));
  assert.equal(error?.code, "internal");
  assert.match(
    error?.message ?? "",
    /^StepOptionError: the data of step.status: .*; give out an artifact instead$/,
  );
});

test("progress at its largest stays within its entry's item, so that whoever takes over reads it at once", async () => {
  const long = "\u0001".repeat(3_000);
  const { t } = await told(async (step) => {
    step.status(long, "\u00ff".repeat((MAX_STATUS_DATA_BYTES - 2) / 2));
    await step.run("a", () => 1);
  });
  const status = t.events.find(({ kind }) => kind === "status");
  assert.ok(JSON.stringify(status).length > 12_000);
  const { progress } = await told(async (step) => {
    for (const n of [1, 2]) {
      step.status(long, "\u00ff".repeat((MAX_STATUS_DATA_BYTES - 2) / 2));
      await step.sleep(`rest ${n}`, "1h");
    }
  });
  assert.equal(progress.length, 1);
  assert.ok(Buffer.byteLength(JSON.stringify(status)) < MAX_INLINE_BYTES);
});
