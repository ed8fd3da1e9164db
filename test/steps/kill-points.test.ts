import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as z from "zod";
import { defineAgent, type Step, skill } from "../../shared/agents/index.ts";
import { isTerminal } from "../../shared/wire/index.ts";
import type { Trouble } from "../../testing/options.ts";
import type { Fate, Write } from "../../testing/process.ts";
import { Simulation } from "../../testing/simulation.ts";

/** How many runs go on at once: each waits in real time, now and then, for its handler to be seen to wait. */
const SIDE_BY_SIDE = 16;
const SENDER = "local-cli";
const ANSWERS = [
  ["input_reply", { input: "Steps" }],
  ["auth_reply", { approve: true }],
] as const;
const MINUTE = 60_000;
/** How much longer a task may take for each process that dies or is stopped: another is found for what it did. */
const DELAY_MS = 15 * MINUTE;

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

/** What happens to the processes of a run. */
interface Plan extends Trouble {
  /**
   * Each answer comes while the worker that has asked is at its so manieth write since. Otherwise it comes when all is
   * quiet.
   */
  readonly answerAt?: number;
}

/** One run of the handler, from the task's admission to its end. */
async function goThrough({ fate = () => undefined, answerAt, ...trouble }: Plan) {
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
  let sinceAsked = 0;
  let answered = 0;
  let answering: Promise<unknown> | undefined;
  const events = () => simulation?.publisher.events(taskId).map(({ event }) => event) ?? [];
  const asked = () => {
    const questions = events().filter(({ state }) => /_REQUIRED$/.test(state));
    return new Set(questions.map(({ revision }) => revision)).size > answered;
  };
  const answer = () => {
    const [kind, a2a] = ANSWERS[answered++] ?? [];
    if (kind === undefined) throw new Error("there are more questions than answers");
    const revision = (events().at(-1)?.revision ?? 0) + 1;
    return simulation?.control({ taskId, from: SENDER, kind, revision, a2a });
  };
  let taskId = "";
  simulation = new Simulation(agent, {
    ...trouble,
    fate(write) {
      if (answerAt === undefined || write.by !== "work" || !asked()) return fate(write);
      if (++sinceAsked !== answerAt) return fate(write);
      sinceAsked = 0;
      answering = answer();
      // The worker's write waits until all of the answer is done.
      return { stopMs: 1_000 };
    },
  });
  const { store } = simulation;
  const began = simulation.clock.now();
  taskId = (await simulation.admit({ skill: "task", a2a: "go", from: SENDER })).taskId;
  for (let questions = 1; questions <= ANSWERS.length; questions++) {
    await simulation.until("a question is asked", () => asked() || answered >= questions);
    if (answered < questions) answering = answer();
    assert.deepEqual(await answering, { ack: true });
  }
  await simulation.until("the task ends", () => events().some(({ state }) => isTerminal(state)));
  await simulation.until("nobody need look at the task again", async () => {
    return (await store.head(taskId))?.dueAt === undefined;
  });
  const names = (await store.entries(taskId, 1)).flatMap(({ steps = [] }) => steps).map(({ name }) => name);
  assert.equal(new Set(names).size, names.length, "no step is stored twice");
  return {
    /** How long it took, in milliseconds. */
    took: simulation.clock.now() - began,
    events: events().map(({ revision, kind, state, content, artifact }) =>
      [revision, kind, state.replace("TASK_STATE_", ""), artifact?.name ?? content].join(" ").trim(),
    ),
    names: names.sort(),
    /** Steps that ran although their results were stored. */
    twice,
  };
}

const undisturbed = await goThrough({});

test("undisturbed, a task has these events", () => {
  assert.deepEqual(undisturbed.events, [
    "1 accepted WORKING",
    "2 status INPUT_REQUIRED Which title?",
    "3 status WORKING input received",
    "4 artifact WORKING draft.txt",
    "5 status AUTH_REQUIRED Shall it be published?",
    "6 status WORKING authorization received",
    "7 artifact WORKING copy.txt",
    "8 result COMPLETED Steps is on the shelf",
  ]);
  // Three sources, two at once, and the embargo.
  const slept = 20 * MINUTE + 40 * 24 * 60 * MINUTE;
  assert.ok(undisturbed.took >= slept && undisturbed.took < slept + MINUTE, `${undisturbed.took} ms`);
});

for (const [what, fate] of [
  ["dies before", "before"],
  ["dies after", "after"],
  ["is stopped before, for longer than a lease,", { stopMs: 5 * MINUTE }],
] as const)
  test(`whichever write a process ${what}, the task ends with the same events and steps`, async (t) => {
    const kinds = new Map<string, number>();
    let last = Number.POSITIVE_INFINITY;
    let next = 1;
    await sideBySide(async () => {
      if (next >= last) return false;
      const n = next++;
      const met = await meet(new Map([[n, fate]]));
      if (met.length === 0) last = Math.min(last, n);
      for (const kind of met) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      return true;
    });
    t.diagnostic(`${last - 1} writes: ${[...kinds].map(([kind, count]) => `${count} ${kind}`).join(", ")}`);
    assert.ok(last > 40, `${last - 1} writes`);
  });

test("an answer that comes while its worker is about to write is seen at once", async () => {
  for (let n = 1; n <= 3; n++) {
    const run = await goThrough({ answerAt: n });
    assertSame(run, { lateMs: MINUTE, stopped: false, which: `answered at write ${n}` });
  }
});

test("several processes die or are stopped, wherever that is", async () => {
  const fates = fc.constantFrom<Fate>("before", "after", { stopMs: 3 * MINUTE }, { stopMs: 10 * MINUTE });
  const runs = fc.sample(fc.array(fc.tuple(fc.integer({ min: 1, max: 70 }), fates), { maxLength: 4 }), 150);
  await sideBySide(async () => {
    const run = runs.pop();
    if (run !== undefined) await meet(new Map(run));
    return run !== undefined;
  });
});

test("clocks five minutes apart, and messages that are repeated, late and out of order, change nothing", async () => {
  const skew = fc.constantFrom(-5 * MINUTE, -2.5 * MINUTE, 0, 2.5 * MINUTE);
  const skews = fc.record({ work: skew, control: skew, sweep: skew });
  // Each hint arrives between once and three times, and at the latest after so long.
  const late = fc.array(fc.integer({ min: 0, max: 3 * MINUTE }), { minLength: 1, maxLength: 3 });
  const runs = fc.sample(fc.tuple(skews, fc.array(late, { minLength: 1, maxLength: 20 })), 100);
  await sideBySide(async () => {
    const [skewMs, delays] = runs.pop() ?? [];
    if (skewMs === undefined || delays === undefined) return false;
    let hints = 0;
    const copies = () => delays[hints++ % delays.length] ?? [0];
    const which = JSON.stringify({ skewMs, delays });
    const run = await goThrough({ skewMs, copies }).catch((cause: unknown) => {
      throw new Error(which, { cause });
    });
    assertSame(run, { lateMs: 60 * MINUTE, stopped: false, which });
    return true;
  });
});

test("a long step under a sweep whose clock is wrong is not taken over while it lives", async () => {
  for (const skew of [-5 * MINUTE, 5 * MINUTE]) {
    let runs = 0;
    const agent = defineAgent({
      id: "slow",
      description: "Takes its time",
      skills: {
        task: skill({
          name: "Task",
          description: "",
          input: z.string(),
          run: (_task, step) =>
            step.run("long", () => {
              runs++;
              return new Promise<string>((done) => simulation.clock.timer(12 * MINUTE, () => done("done")));
            }),
        }),
      },
    });
    const simulation: Simulation = new Simulation(agent, { skewMs: { sweep: skew } });
    const { taskId } = await simulation.admit({ skill: "task", a2a: "go", from: SENDER });
    await simulation.advance(30 * MINUTE);
    assert.equal(simulation.publisher.events(taskId).at(-1)?.event.content, "done");
    assert.deepEqual([runs, (await simulation.store.head(taskId))?.epoch], [1, 1]);
  }
});

/**
 * Goes through the task with what is to happen at its n-th writes, and compares.
 *
 * @returns the writes that were met
 */
async function meet(fates: ReadonlyMap<number, Fate>): Promise<string[]> {
  let writes = 0;
  const met: string[] = [];
  const which = () => `${JSON.stringify([...fates])}: ${met}`;
  const fate = (write: Write) => {
    const here = fates.get(++writes);
    if (here !== undefined) met.push(`${write.by} ${write.kind}`);
    return here;
  };
  const run = await goThrough({ fate }).catch((cause: unknown) => {
    throw new Error(which(), { cause });
  });
  const stopped = [...fates.values()].some((fate) => typeof fate === "object");
  assertSame(run, { lateMs: met.length * DELAY_MS, stopped, which: which() });
  return met;
}

/**
 * Asserts that a run has come to what an undisturbed one comes to.
 *
 * @param options.stopped whether processes were stopped: one that goes on after a while does not know yet that it has
 *   lost its claim; it may begin a step that is stored by now, and repeat what others have published, the same bytes
 */
function assertSame(
  run: Awaited<ReturnType<typeof goThrough>>,
  options: { lateMs: number; stopped: boolean; which: string },
): void {
  const { lateMs, stopped, which } = options;
  assert.deepEqual(stopped ? [...new Set(run.events)] : run.events, undisturbed.events, which);
  assert.deepEqual(run.names, undisturbed.names, which);
  if (!stopped) assert.deepEqual(run.twice, [], `${which}: no stored step runs again`);
  const late = run.took - undisturbed.took;
  assert.ok(late <= lateMs, `${which}: ${late / MINUTE} minutes late`);
}

/** Repeats `one` until it says that there is no more, several at once. */
async function sideBySide(one: () => Promise<boolean>): Promise<void> {
  const lane = async () => {
    while (await one());
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, lane));
}
