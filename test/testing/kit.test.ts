import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { ApprovalDenied, defineAgent, type Step, skill } from "sluice";
import { startTask } from "sluice/testing";
import * as z from "zod";

const settings = z.strictObject({ greeting: z.string().default("hello") });

/** An agent that does this. */
const agentOf = (run: (step: Step, input: unknown, greeting: string) => Promise<string>) =>
  defineAgent({
    id: "probe",
    description: "Does what the test says",
    settings,
    skills: {
      task: skill({
        name: "Task",
        description: "",
        settings,
        input: z.unknown(),
        run: (task, step) => run(step, task.input, task.settings.greeting),
      }),
    },
  });

test("a task of one step, with an artifact", async () => {
  const t = await startTask(
    agentOf(async (step, input) => {
      const length = await step.run("length", () => String(input).length);
      await step.artifact("report", { text: `${length} characters` });
      return "done";
    }),
    { text: "hello" },
  );
  const outcome = await t.outcome();
  assert.deepEqual([outcome.state, outcome.text, outcome.error], ["TASK_STATE_COMPLETED", "done", null]);
  const [report] = outcome.artifacts;
  assert.deepEqual([report?.id, report?.name, report?.text], ["report", "report.txt", "5 characters"]);
  assert.deepEqual(report?.bytes, new Uint8Array(Buffer.from("5 characters")));
  assert.deepEqual(
    t.events.map(({ revision, kind }) => `${revision} ${kind}`),
    ["1 accepted", "2 artifact", "3 result"],
  );
  assert.deepEqual(
    t.steps.map(({ name, kind, attempts, value }) => [name, kind, attempts, typeof value]),
    [
      ["length", "run", 1, "number"],
      ["report", "artifact", 1, "object"],
    ],
  );
});

test("data, settings and the sender are the task's", async () => {
  const agent = agentOf(async (_, input, greeting) => JSON.stringify({ input, greeting }));
  const given = await startTask(agent, { data: { n: 1 }, settings: { greeting: "hi" } });
  assert.deepEqual((await given.outcome()).data, { input: { n: 1 }, greeting: "hi" });
  const refused = await startTask(agent, { from: "eve", policy: { acceptFromRuntimes: ["adam"] } });
  const { state, error } = await refused.outcome();
  assert.deepEqual([state, error?.code], ["TASK_STATE_REJECTED", "sender_not_allowed"]);
});

test("a worker that dies before a step's result is stored, or after", async () => {
  let runs = 0;
  const t = await startTask(agentOf(async (step) => `run ${await step.run("once", () => ++runs)}`));
  t.crash({ before: "once" });
  t.crash({ after: "once" });
  assert.equal((await t.outcome()).text, "run 2");
  assert.equal(runs, 2);
});

test("a crash at a step that is never stored is told in the end", async () => {
  const agent = agentOf(async (step) => {
    await step.run("once", () => 1);
    await step.sleep("rest", "1h");
    return "";
  });
  for (const point of [{ after: "onec" }, { before: "rest" }]) {
    const t = await startTask(agent);
    t.crash(point);
    const [when, name] = Object.entries(point)[0] ?? [];
    await assert.rejects(t.outcome(), (error) => {
      assert.ok(error instanceof Error);
      assert.equal(
        error.message,
        `crash ${when} "${name}": no result of a step of that name was stored since; those of the task are ["once"]`,
      );
      return true;
    });
    assert.equal(t.crashes, 0);
  }
});

test("the deployment's name is the test's", async () => {
  const agent = agentOf(async (step) => {
    const { text } = await step.delegate("summary", { to: "local-digest", message: "long" });
    return text;
  });
  const t = await startTask(agent, { deployment: "local", neighbours: ["digest"] });
  const digest = await t.delegation();
  assert.deepEqual([digest.to, digest.channelRef], ["local-digest", "digest"]);
  t.deploy(agent);
  t.crash();
  await digest.complete("short");
  assert.equal((await t.outcome()).text, "short");
  await assert.rejects(startTask(agent, { deployment: "not local" }), /expected 1 to 32 of A-Z/);
});

test("a sleep of five seconds is passed, a longer one is waited for", async () => {
  const agent = agentOf(async (step) => {
    await step.sleep("short", "5s");
    await step.sleep("long", 5_001);
    return "";
  });
  const t = await startTask(agent);
  await t.untilWaiting();
  assert.deepEqual(
    t.waiting.map(({ name }) => name),
    ["long"],
  );
});

test("a worker that dies at its n-th write, or now", async () => {
  let runs = 0;
  const t = await startTask(
    agentOf(async (step) => {
      runs++;
      await step.sleep("rest", "1h");
      return "rested";
    }),
  );
  t.crash({ before: 1 });
  t.crash({ after: 3 });
  await t.untilWaiting();
  t.crash();
  await t.skip("2h");
  assert.equal((await t.outcome()).text, "rested");
  assert.ok(runs >= 2);
});

test("questions are answered, and asked again when an answer does not fit", async () => {
  const t = await startTask(
    agentOf(async (step) => {
      const many = await step.ask("many", "How many?", { schema: z.coerce.number().max(3) });
      const who = await step.ask("who", "Who?");
      return `${who}: ${many}`;
    }),
  );
  await t.untilWaiting();
  assert.deepEqual(t.question, { kind: "ask", step: "many", prompt: "How many?" });
  await t.answer(7);
  await t.untilWaiting();
  assert.match(t.question?.prompt ?? "", /<=3.*How many\?/s);
  await t.answer(2);
  await assert.rejects(t.approve(), /"who" asks for an answer: call answer/);
  await t.answer("Ada");
  assert.equal((await t.outcome()).text, "Ada: 2");
  assert.deepEqual(
    t.steps.map(({ name, kind, value }) => [name, kind, value]),
    [
      ["many", "ask", 2],
      ["who", "ask", "Ada"],
    ],
  );
  assert.equal(t.question, undefined);
});

test("approval is given, denied, or missing", async () => {
  const agent = agentOf(async (step) => {
    try {
      await step.approve("deploy", "Deploy?", { timeout: "1d", onTimeout: "deny" });
      return "deployed";
    } catch (error) {
      return error instanceof ApprovalDenied ? `denied: ${error.message}` : "?";
    }
  });
  const given = await startTask(agent);
  await given.approve();
  assert.equal((await given.outcome()).text, "deployed");
  const denied = await startTask(agent);
  await denied.approve(false, "not on a Friday");
  assert.equal((await denied.outcome()).text, "denied: not on a Friday");
  const missing = await startTask(agent);
  await missing.untilWaiting();
  await missing.skip("1d");
  assert.match((await missing.outcome()).text, /^denied: /);
});

test("time is skipped, and what happens meanwhile happens in its order", async () => {
  const woke: string[] = [];
  const t = await startTask(
    agentOf(async (step) => {
      const rest = async (name: string, hours: number) => {
        await step.sleep(name, `${hours}h`);
        woke.push(name);
      };
      await Promise.all([rest("long", 30), rest("short", 3), rest("middle", 10)]);
      return "awake";
    }),
  );
  await t.untilWaiting();
  const began = t.now.getTime();
  assert.deepEqual(t.waiting.map(({ name }) => name).sort(), ["long", "middle", "short"]);
  await t.skip("5h");
  assert.equal(t.now.getTime() - began, 5 * 3_600_000);
  assert.deepEqual(t.waiting.map(({ name }) => name).sort(), ["long", "middle"]);
  assert.deepEqual(
    t.steps.map(({ name }) => name),
    ["short"],
  );
  assert.equal((await t.outcome()).text, "awake");
  assert.deepEqual([...new Set(woke)], ["short", "middle", "long"]);
});

test("what takes real time gets it, and the clock waits", async () => {
  const t = await startTask(
    agentOf(async (step) => {
      const before = step.now();
      await step.run("slow", () => wait(60));
      await wait(60);
      await step.sleep("rest", "10m");
      return String(step.now().getTime() - before.getTime());
    }),
    { timeoutSec: 660 },
  );
  assert.equal((await t.outcome()).text, "600000");
});

test("a handler that hangs is ended by the deadline that is skipped to", async () => {
  const t = await startTask(
    agentOf((step) => step.run("hang", () => new Promise<string>(() => {}))),
    { timeoutSec: 60 },
  );
  await t.skip("1m");
  assert.equal((await t.outcome()).error?.code, "timeout");
});

test("a handler that hangs is told as such", async () => {
  const hang = () => new Promise<string>(() => {});
  const inside = await startTask(
    agentOf((step) => step.branch("in").run("hang", hang)),
    { patienceMs: 50 },
  );
  await assert.rejects(inside.outcome(), /step "in\/hang" runs since 0.05 s.*skip moves it on/);
  const outside = await startTask(agentOf(hang), { patienceMs: 50 });
  await assert.rejects(outside.untilWaiting(), /the handler waits for something that is no step/);
});

test("a worker may be killed while a step's function runs", async () => {
  let runs = 0;
  const t = await startTask(
    agentOf(async (step) =>
      step.run("once", () => {
        if (++runs === 1) t.crash();
        return `run ${runs}`;
      }),
    ),
  );
  assert.equal((await t.outcome()).text, "run 2");
});

test("a step that fails is tried again, and fails for good", async () => {
  let attempts = 0;
  const t = await startTask(
    agentOf(async (step) => {
      await step.run("bad", () => {
        if (++attempts < 3) throw new Error("not yet");
      });
      return await step.run(
        "worse",
        () => {
          throw new RangeError("never");
        },
        { retry: { attempts: 2, initial: "1m", max: "1m" } },
      );
    }),
  );
  const { error } = await t.outcome();
  assert.equal(error?.message, "RangeError: never");
  assert.deepEqual(
    t.steps.map(({ name, attempts: n, error: failed }) => [name, n, failed?.message]),
    [
      ["bad", 3, undefined],
      ["worse", 2, "never"],
    ],
  );
});

test("what a step took includes the pauses between its attempts, short and long", async () => {
  const began: number[] = [];
  const t = await startTask(
    agentOf(async (step) => {
      const retry = { attempts: 6, initial: "4s", max: "10m" } as const;
      const attempts = (name: string, last: () => unknown) =>
        step.run(
          name,
          ({ attempt }) => {
            began.push(t.now.getTime());
            if (attempt < 6) throw new Error("busy");
            return last();
          },
          { retry },
        );
      await attempts("good", () => "at last");
      await attempts("bad", () => Promise.reject(new Error("never"))).catch(() => {});
      return "";
    }),
  );
  await t.outcome();
  const took = [began.slice(0, 6), began.slice(6)].map(([first = 0, ...rest]) => (rest.at(-1) ?? 0) - first);
  assert.deepEqual(
    t.steps.map(({ name, ms }) => [name, ms]),
    [
      ["good", took[0]],
      ["bad", took[1]],
    ],
  );
});

test("a cancel ends the task; nobody else's does", async () => {
  const t = await startTask(agentOf((step) => step.ask("what", "What?")));
  await t.untilWaiting();
  assert.deepEqual(await t.control("cancel", { from: "eve" }), { term: "control ownership mismatch" });
  await t.cancel("enough");
  const { state, error } = await t.outcome();
  assert.deepEqual([state, error?.code, error?.message], ["TASK_STATE_CANCELED", "canceled", "enough"]);
  const why = /: the task has ended instead, as TASK_STATE_CANCELED, canceled: enough$/;
  for (const waits of [t.untilWaiting(), t.answer("late"), t.approve(), t.delegation("other")])
    await assert.rejects(waits, why);
  const done = await startTask(agentOf(async () => "well done"));
  await assert.rejects(done.answer("never asked"), /ended instead, as TASK_STATE_COMPLETED, "well done"$/);
});

test("what a handler logs can be read, once", async () => {
  const t = await startTask(
    agentOf(async (step) => {
      step.log("begins", { n: 1 });
      await step.sleep("rest", "1h");
      return "";
    }),
  );
  await t.outcome();
  assert.deepEqual(
    t.log.filter(({ message }) => message === "begins").map(({ fields }) => fields?.n),
    [1],
  );
});
