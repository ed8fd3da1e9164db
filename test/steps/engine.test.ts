import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as z from "zod";
import { defineAgent, type Step, skill } from "../../shared/agents/index.ts";
import { startWorld, type World } from "../support/world.ts";

/** What the one agent of this file does; each test sets it. */
let handle: (step: Step) => unknown = () => "";

const agent = defineAgent({
  id: "probe",
  description: "Does what the test says",
  skills: {
    task: skill({
      name: "Task",
      description: "",
      input: z.string(),
      run: async (_task, step) => {
        const made = await handle(step);
        return typeof made === "string" ? made : { data: made };
      },
    }),
  },
});

describe("steps", () => {
  let world: World;
  before(async () => {
    world = await startWorld([agent]);
  });
  after(() => world.stop());

  const outcome = async (handler: typeof handle) => {
    handle = handler;
    const taskId = await world.run();
    const last = (await world.peer.events(taskId)).at(-1)?.event;
    return { taskId, last, entries: await world.store.entries(taskId, 1) };
  };
  const refused = async (handler: typeof handle, message: RegExp) => {
    const { last } = await outcome(handler);
    assert.equal(last?.state, "TASK_STATE_FAILED");
    assert.equal(last?.error?.code, "internal");
    assert.match(last?.error?.message ?? "", message);
  };

  test("of one name after each other are told apart by number", async () => {
    const { last, entries } = await outcome(async (step) => {
      const all = [];
      for (const n of [1, 2, 3]) all.push(await step.run("again", () => n));
      return all;
    });
    assert.equal(last?.content, "[1,2,3]");
    const names = entries.flatMap(({ steps }) => steps ?? []).map(({ name }) => name);
    assert.deepEqual(names, ["again", "again#2", "again#3"]);
  });

  test("of different names may run at once, and share entries", async () => {
    const { last, entries } = await outcome(async (step) => {
      const some = Array.from({ length: 50 }, (_, n) => step.run(`part ${n}`, async () => n));
      return (await Promise.all(some)).reduce((sum, n) => sum + n, 0);
    });
    assert.equal(last?.content, "1225");
    assert.ok(entries.length < 20, `${entries.length} entries`);
  });

  test("whose function throws are not stored, and the handler may go on", async () => {
    const { last, entries } = await outcome(async (step) => {
      const failed = await step
        .run("bad", () => Promise.reject(new Error("no")))
        .catch((error: Error) => error.message);
      return await step.run("good", () => `after ${failed}`);
    });
    assert.equal(last?.content, "after no");
    assert.deepEqual(
      entries.flatMap(({ steps }) => steps ?? []).map(({ name }) => name),
      ["good"],
    );
  });

  test("keep a large result by reference, and give it back whole on a takeover", async () => {
    const big = "x".repeat(700_000);
    let runs = 0;
    handle = async (step) => {
      const got = await step.run("big", () => {
        runs++;
        return big;
      });
      return await step.run("length", () => String(got.length));
    };
    const message = world.task();
    await world.admit(message);
    world.hints.splice(0);
    // The invocation is over after the first step: the task is left and offered at once.
    let asked = 0;
    const now = () => Date.now() + (asked++ > 25 ? 1_000_000 : 0);
    await world.work({ taskId: message.taskId, epoch: 0, beat: 0 }, { now, endsAt: Date.now() + 20_000 });
    for (let taken = world.hints.shift(); taken !== undefined; taken = world.hints.shift())
      await world.work(taken.hint);
    const last = (await world.peer.events(message.taskId)).at(-1)?.event;
    assert.equal(last?.content, "700000");
    assert.equal(runs, 1);
  });

  test("refuse what an author gets wrong, in words", async () => {
    await refused((step) => Promise.all([step.run("a", () => 1), step.run("a", () => 2)]), /"a".*still open/);
    await refused((step) => step.run("", () => 1), /name: expected 1 to 200 characters/);
    await refused((step) => step.run("x".repeat(201), () => 1), /name: expected 1 to 200 characters/);
    await refused((step) => step.run("n", () => ({ n: 1n })), /step "n".*bigint/);
    await refused(async (step) => {
      await step.artifact("a.b", "1");
      await step.artifact("a-b", "2");
    }, /"a-b": expected an id that no other artifact has/);
  });

  test("called after the handler has returned do nothing to the task", async () => {
    const late = Promise.withResolvers<unknown>();
    const { last } = await outcome((step) => {
      setTimeout(() => step.run("late", () => 1).then(late.resolve, late.resolve), 200);
      return "early";
    });
    assert.equal(last?.content, "early");
    assert.match(String(await late.promise), /called after the handler had ended/);
  });

  test("with a name of the longest kind are taken", async () => {
    const { last } = await outcome((step) => step.run("x".repeat(200), () => "fits"));
    assert.equal(last?.content, "fits");
  });
});
