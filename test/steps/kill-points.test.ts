import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as z from "zod";
import { defineAgent, type Step, skill } from "../../shared/agents/index.ts";
import { isTerminal } from "../../shared/wire/index.ts";
import type { Fate, Write } from "../../testing/process.ts";
import { Simulation } from "../../testing/simulation.ts";

/** How many runs go on at once: each waits in real time, now and then, for its handler to be seen to wait. */
const SIDE_BY_SIDE = 16;
const SENDER = "local-cli";

/** `step.run` of a function that gives this value, in a branch or in none. */
type Run = <T>(of: Step, name: string, value: T, branch?: string) => Promise<T>;

/** A handler with every kind of step. */
async function handle(step: Step, run: Run): Promise<string> {
  const sources = await run(step, "plan", ["a", "b", "c"]);
  const found = await step.each(
    sources,
    (source) => source,
    async (source, branch) => {
      const page = await run(branch, "fetch", `page ${source}`, source);
      await branch.sleep("rest", "10m");
      return await run(branch, "read", page.toUpperCase(), source);
    },
    { concurrency: 2 },
  );
  const title = await step.ask("title", "Which title?");
  await step.artifact("draft", `${title}\n${found.join("\n")}`);
  await step.approve("publish", "Shall it be published?");
  await step.sleep("embargo", "40d");
  const place = await run(step, "put", "the shelf");
  await step.artifact("copy", { text: found.join(), filename: "copy.txt" });
  return `${title} is on ${place}`;
}

/** One run of the handler, from the task's admission to its end. */
async function goThrough(fate: (write: Write) => Fate) {
  let simulation: Simulation | undefined;
  const twice: string[] = [];
  const agent = defineAgent({
    id: "writer",
    description: "Writes",
    skills: {
      task: skill({
        name: "Task",
        description: "",
        input: z.string(),
        run: (task, step) =>
          handle(step, (of, name, value, branch) =>
            of.run(name, async () => {
              // Looked up when the function runs: its result must not be there.
              const entries = (await simulation?.store.entries(task.id, 1)) ?? [];
              const path = branch === undefined ? name : `${branch}/${name}`;
              if (entries.some(({ steps = [] }) => steps.some((stored) => stored.name === path)))
                twice.push(path);
              return value;
            }),
          ),
      }),
    },
  });
  simulation = new Simulation(agent, { fate });
  const { taskId } = await simulation.admit({ skill: "task", a2a: "go", from: SENDER });
  const { publisher, store } = simulation;
  const events = () => publisher.events(taskId).map(({ event }) => event);
  const asked = (state: string) => () => events().some((event) => event.state === state);
  const reply = (kind: "input_reply" | "auth_reply", a2a: unknown) => {
    const revision = (events().at(-1)?.revision ?? 0) + 1;
    return simulation.control({ taskId, from: SENDER, kind, revision, a2a });
  };
  await simulation.until("the title is asked for", asked("TASK_STATE_INPUT_REQUIRED"));
  assert.deepEqual(await reply("input_reply", { input: "Steps" }), { ack: true });
  await simulation.until("approval is asked for", asked("TASK_STATE_AUTH_REQUIRED"));
  assert.deepEqual(await reply("auth_reply", { approve: true }), { ack: true });
  await simulation.until("the task ends", () => events().some(({ state }) => isTerminal(state)));
  await simulation.until("nobody need look at the task again", async () => {
    return (await store.head(taskId))?.dueAt === undefined;
  });
  const names = (await store.entries(taskId, 1)).flatMap(({ steps = [] }) => steps).map(({ name }) => name);
  assert.deepEqual(twice, [], "no stored step runs again");
  assert.equal(new Set(names).size, names.length, "no step is stored twice");
  return {
    events: events().map(({ revision, kind, state, content, artifact }) => ({
      revision,
      kind,
      state,
      content,
      artifact: artifact?.name,
    })),
    names: names.sort(),
  };
}

const undisturbed = await goThrough(() => undefined);

test("undisturbed, a task has these events", () => {
  assert.deepEqual(
    undisturbed.events.map(
      ({ revision, kind, state }) => `${revision} ${kind} ${state.replace("TASK_STATE_", "")}`,
    ),
    [
      "1 accepted WORKING",
      "2 status INPUT_REQUIRED",
      "3 status WORKING",
      "4 artifact WORKING",
      "5 status AUTH_REQUIRED",
      "6 status WORKING",
      "7 artifact WORKING",
      "8 result COMPLETED",
    ],
  );
  assert.equal(undisturbed.events.at(-1)?.content, "Steps is on the shelf");
});

for (const [what, fate] of [
  ["dies before", "before"],
  ["dies after", "after"],
  ["is stopped before, for longer than a lease,", { stopMs: 5 * 60_000 }],
] as const)
  test(`whichever write a process ${what}, the task ends with the same events and steps`, async (t) => {
    const kinds = new Map<string, number>();
    let last = Number.POSITIVE_INFINITY;
    let next = 1;
    await sideBySide(async () => {
      if (next >= last) return false;
      const n = next++;
      const met = await assertSame(new Map([[n, fate]]));
      if (met.length === 0) last = Math.min(last, n);
      for (const kind of met) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      return true;
    });
    t.diagnostic(`${last - 1} writes: ${[...kinds].map(([kind, count]) => `${count} ${kind}`).join(", ")}`);
    assert.ok(last > 40, `${last - 1} writes`);
  });

test("several processes die or are stopped, wherever that is", async () => {
  const fates = fc.constantFrom<Fate>("before", "after", { stopMs: 90_000 }, { stopMs: 20 * 60_000 });
  const runs = fc.sample(fc.array(fc.tuple(fc.integer({ min: 1, max: 70 }), fates), { maxLength: 4 }), 150);
  await sideBySide(async () => {
    const run = runs.pop();
    if (run !== undefined) await assertSame(new Map(run));
    return run !== undefined;
  });
});

/**
 * Goes through the task with what is to happen at its n-th writes, and compares.
 *
 * @returns the writes that were met
 */
async function assertSame(fates: ReadonlyMap<number, Fate>): Promise<string[]> {
  let writes = 0;
  const met: string[] = [];
  const which = () => `${JSON.stringify([...fates])}: ${met}`;
  const run = await goThrough((write) => {
    const fate = fates.get(++writes);
    if (fate !== undefined) met.push(`${write.by} ${write.kind}`);
    return fate;
  }).catch((cause: unknown) => {
    throw new Error(which(), { cause });
  });
  assert.deepEqual(run.events, undisturbed.events, which());
  assert.deepEqual(run.names, undisturbed.names, which());
  return met;
}

/** Repeats `one` until it says that there is no more, several at once. */
async function sideBySide(one: () => Promise<boolean>): Promise<void> {
  const lane = async () => {
    while (await one());
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, lane));
}
