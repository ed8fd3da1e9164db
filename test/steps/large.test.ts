import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import * as z from "zod";
import { defineAgent, type Step, skill } from "../../shared/agents/index.ts";
import { startTask } from "../../testing/index.ts";
import { Simulation } from "../../testing/simulation.ts";

const DAY_MS = 86_400_000;

/** An agent that does this. */
const agentOf = (run: (step: Step, input: string) => Promise<string>) =>
  defineAgent({
    id: "probe",
    description: "Does what the test says",
    skills: {
      task: skill({
        name: "Task",
        description: "",
        input: z.string(),
        run: (task, step) => run(step, task.input),
      }),
    },
  });

test("ten thousand steps, with workers that die on the way", async () => {
  let runs = 0;
  const agent = agentOf(async (step) => {
    let sum = 0;
    for (let n = 0; n < 10_000; n++)
      sum += await step.run("add", () => {
        runs++;
        return n;
      });
    return String(sum);
  });
  const t = await startTask(agent);
  for (const n of [3_000, 6_000, 9_000]) t.crash({ after: `add#${n}` });
  assert.equal((await t.outcome()).text, "49995000");
  assert.equal(runs, 10_000);
  assert.equal(t.steps.length, 10_000);
});

test("two hundred parallel steps, with workers that die on the way", async () => {
  const runs = new Map<string, number>();
  const agent = agentOf(async (step) => {
    const parts = Array.from({ length: 200 }, (_, n) =>
      step.run(`part ${n}`, async () => {
        runs.set(`part ${n}`, (runs.get(`part ${n}`) ?? 0) + 1);
        for (let turns = 0; turns < (n * 37) % 50; turns++) await turn();
        return n;
      }),
    );
    return JSON.stringify(await Promise.all(parts));
  });
  const t = await startTask(agent);
  t.crash({ after: "part 40" });
  t.crash({ before: "part 49" });
  const { text } = await t.outcome();
  assert.deepEqual(
    JSON.parse(text),
    Array.from({ length: 200 }, (_, n) => n),
  );
  assert.equal(t.steps.length, 200);
  assert.ok([...runs.values()].some((count) => count > 1));
});

test("a sleep of three hundred days", async () => {
  const t = await startTask(
    agentOf(async (step) => {
      const from = step.now();
      await step.sleep("long", "300d");
      return String(step.now().getTime() - from.getTime());
    }),
  );
  await t.untilWaiting();
  const began = t.now.getTime();
  await t.skip("299d");
  assert.deepEqual(
    t.waiting.map(({ name }) => name),
    ["long"],
  );
  assert.equal((await t.outcome()).text, String(300 * DAY_MS));
  const took = t.now.getTime() - began;
  assert.ok(took >= 300 * DAY_MS && took < 300 * DAY_MS + 60_000, `${took} ms`);
});

test("five thousand sleepers that wake in one second", async () => {
  const wake = Date.UTC(2030, 1, 1);
  const simulation = new Simulation(
    agentOf(async (step, input) => {
      await step.sleepUntil("till then", new Date(wake + (Number(input) % 1_000)));
      return `${input} is awake`;
    }),
  );
  const tasks: string[] = [];
  for (let n = 0; n < 5_000; n++)
    tasks.push((await simulation.admit({ skill: "task", a2a: String(n), from: "local-cli" })).taskId);
  const ends = () => tasks.filter((taskId) => simulation.publisher.events(taskId).length > 1).length;
  await simulation.advance(wake - simulation.clock.now() - 1);
  assert.equal(ends(), 0);
  await simulation.advance(60_000);
  for (const [n, taskId] of tasks.entries()) {
    const events = simulation.publisher.events(taskId).map(({ event }) => event);
    assert.deepEqual(
      events.map(({ revision, kind, content }) => `${revision} ${kind} ${content}`),
      ["1 accepted ", `2 result ${n} is awake`],
    );
    const woke = Date.parse(events[1]?.createdAt ?? "") - wake;
    assert.ok(woke >= n % 1_000 && woke < 60_000, `${n} woke ${woke} ms after the second`);
  }
});

test("equal names in branches: each result is in its own branch, however often it is gone through again", async () => {
  let runs = 0;
  const agent = agentOf(async (step) => {
    const items = ["a", "b", "c", "d", "e"];
    const found = await step.each(
      items,
      (item) => item,
      async (item, branch) => {
        const mine = [];
        for (let n = 1; n <= 4; n++) {
          mine.push(
            await branch.run("again", () => {
              runs++;
              return `${item}${n}`;
            }),
          );
          await branch.sleep("rest", 10_000 * (items.indexOf(item) + 1));
        }
        return mine.join(" ");
      },
      { concurrency: 3 },
    );
    const loose = await Promise.all(
      items.map(async (item) => {
        const branch = step.branch(`loose ${item}`);
        await branch.sleep("rest", "1h");
        return await branch.run("again", () => `${item}!`);
      }),
    );
    return [...found, ...loose].join(", ");
  });
  const t = await startTask(agent);
  t.crash({ after: "b/again#2" });
  t.crash({ after: "e/again" });
  t.crash({ before: "loose c/again" });
  const expected = ["a", "b", "c", "d", "e"].map((item) => [1, 2, 3, 4].map((n) => `${item}${n}`).join(" "));
  assert.equal((await t.outcome()).text, [...expected, "a!", "b!", "c!", "d!", "e!"].join(", "));
  const names = t.steps.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  // Each worker that dies may take two steps along whose results are not stored yet.
  assert.ok(runs >= 20 && runs <= 29, `${runs} runs`);
});
