import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Step } from "../../shared/agents/index.ts";
import { randomOf, uuidOf } from "../../shared/steps/chance.ts";
import { Probe } from "../support/probe.ts";

const probe = new Probe();

describe("branches", () => {
  test("keep each result where it belongs, however the handler is gone through again", async () => {
    let runs = 0;
    const handle = (step: Step) =>
      step.each(
        ["a", "b", "c"],
        (key) => key,
        async (key, branch) => {
          const own = await branch.run("make", () => `${key}${++runs}`);
          const inner = branch.branch("inner");
          await inner.sleep("rest", "1m");
          return `${own} ${await inner.run("make", () => `${key}${++runs}`)}`;
        },
      );
    const taskId = await probe.start(handle);
    assert.equal(runs, 6);
    const made: unknown = JSON.parse((await probe.last(taskId))?.content ?? "");
    assert.ok(Array.isArray(made));
    assert.deepEqual(
      made.map((text: string) => text.replaceAll(/\d/g, "")),
      ["a a", "b b", "c c"],
    );
    const names = [...(await probe.view(taskId)).steps.keys()].sort();
    assert.deepEqual(names, ["a/inner/make", "a/make", "b/inner/make", "b/make", "c/inner/make", "c/make"]);
  });

  test("work on no more items at once than they are told, in order, and begin none after a failure", async () => {
    let now = 0;
    let most = 0;
    const begun: number[] = [];
    const taskId = await probe.start((step) =>
      step
        .each(
          [1, 2, 3, 4, 5, 6, 7],
          String,
          async (n, branch) => {
            begun.push(n);
            most = Math.max(most, ++now);
            await branch.run("work", () => new Promise((resolve) => setTimeout(resolve, 5)));
            now--;
            if (n === 4) throw new Error("four");
            return n;
          },
          { concurrency: 2 },
        )
        .catch((error: Error) => error.message),
    );
    assert.equal((await probe.last(taskId))?.content, "four");
    assert.equal(most, 2);
    assert.deepEqual(begun, begun.toSorted());
    assert.ok(begun.length <= 5, `${begun}`);
  });

  test("of one name are one branch, whose steps are counted on", async () => {
    const taskId = await probe.start(async (step) => {
      const all = [];
      for (const n of [1, 2]) all.push(await step.branch("b").run("again", () => n));
      return all;
    });
    assert.equal((await probe.last(taskId))?.content, "[1,2]");
    assert.deepEqual([...(await probe.view(taskId)).steps.keys()], ["b/again", "b/again#2"]);
  });

  test("refuse names and options that are none", async () => {
    const wrong: [(step: Step) => unknown, RegExp][] = [
      [(step) => step.each(["x", "x"], String, async () => 1), /step.each: .* got "x" twice/],
      [(step) => step.each([1], String, async () => 1, { concurrency: 0 }), /concurrency .* from 1, got 0/],
      [
        (step) =>
          step.each(
            [1],
            () => "",
            async () => 1,
          ),
        /name: expected 1 to 200 characters/,
      ],
      [(step) => step.branch("b".repeat(100)).run("x".repeat(100), () => 1), /name: expected 1 to 200/],
      [
        async (step) => {
          await step.run("b/x", () => 1);
          await step.branch("b").run("x", () => 2);
        },
        /step "b\/x": expected a name other than "b\/x"/,
      ],
    ];
    for (const [handle, message] of wrong) {
      const taskId = await probe.start(async (step) => handle(step));
      assert.match((await probe.last(taskId))?.error?.message ?? "", message);
    }
    const taskId = await probe.start((step) =>
      step.branch("b".repeat(100)).run("x".repeat(99), () => "fits"),
    );
    assert.equal((await probe.last(taskId))?.content, "fits");
  });
});

describe("time and chance", () => {
  test("are the same when the handler is run again, and differ between branches", async () => {
    const seen: unknown[][] = [];
    const taskId = await probe.start(async (step) => {
      const drawn: unknown[] = [step.now().getTime(), step.random(), step.uuid()];
      seen.push(drawn);
      // What a step draws for itself moves nothing on.
      await step.run("inside", () => `${step.random()} ${step.uuid()}`);
      drawn.push(step.now().getTime(), step.random(), step.uuid());
      await step.each(["a", "b"], String, async (_key, branch) => {
        drawn.push(branch.random(), branch.uuid(), branch.now().getTime());
        await branch.run("work", () => new Promise((resolve) => setTimeout(resolve, 5)));
      });
      drawn.push(step.now().getTime());
      await step.sleep("minute", "1m");
      drawn.push(step.now().getTime(), step.random());
      return "done";
    });
    const [first, second] = seen;
    assert.equal((await probe.last(taskId))?.content, "done");
    assert.equal(seen.length, 2);
    assert.deepEqual(second?.slice(0, first?.length), first);
    assert.equal(new Set(second).size, (second?.length ?? 0) - 2, "the branches begin at one time");
    const times = (second ?? []).filter((value) => Number.isInteger(value));
    assert.deepEqual(
      times,
      times.toSorted((a, b) => Number(a) - Number(b)),
    );
  });

  test("follow from the task, the place and the turn", () => {
    assert.equal(randomOf("task_1", "branch ", 0), randomOf("task_1", "branch ", 0));
    const values = Array.from({ length: 1_000 }, (_, turn) => randomOf("task_1", "branch ", turn));
    assert.ok(values.every((value) => value >= 0 && value < 1));
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    assert.ok(Math.abs(mean - 0.5) < 0.05, `${mean}`);
    assert.match(
      uuidOf("task_1", "branch ", 0),
      /^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/,
    );
    const ids = [
      uuidOf("task_1", "a", 0),
      uuidOf("task_1", "a", 1),
      uuidOf("task_1", "b", 0),
      uuidOf("task_2", "a", 0),
    ];
    assert.equal(new Set(ids).size, ids.length);
  });
});

test("what stored steps told and logged is not told again", async () => {
  let starts = 0;
  const taskId = await probe.start(async (step) => {
    starts++;
    step.log("begin", { mark: "m1" });
    step.status("one");
    await step.run("a", () => 1);
    step.log("middle", { mark: "m2" });
    await step.sleep("minute", "1m");
    step.log("end", { mark: "m3" });
    return "done";
  });
  assert.equal(starts, 2);
  const marks = probe.world.log.filter(
    ({ fields }) => fields?.taskId === taskId && fields.mark !== undefined,
  );
  assert.deepEqual(
    marks.map(({ message }) => message),
    ["begin", "middle", "end"],
  );
  assert.deepEqual(await probe.told(taskId), ["WORKING", "WORKING one", "COMPLETED done"]);
});
