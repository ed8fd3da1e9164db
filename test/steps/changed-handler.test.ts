import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ReplyTimeout, type Step } from "sluice";
import { startTask } from "sluice/testing";
import * as z from "zod";
import { ROOT } from "../../infra/bundle.ts";
import { change, completed, failed, names, version, wait } from "./support/versions.ts";

/** Each test is a row of the table in docs/changing-handlers.md. */
const rows: string[] = [];
const row = (name: string, fn: () => Promise<void>) => {
  rows.push(name);
  test(name, fn);
};

row("a step is added", async () => {
  const { t, outcome } = await change(
    async (step) => {
      const a = await step.run("a", () => "old");
      await wait(step);
      return a;
    },
    async (step) => {
      const first = await step.run("first", () => "new");
      const a = await step.run("a", () => "never");
      await wait(step);
      return [first, a, await step.run("last", () => "new")];
    },
  );
  assert.equal(completed(outcome), "new,old,new");
  assert.deepEqual(names(t), ["a", "first", "last"]);
});

row("a step is added in front of a `step.status` that was called already", async () => {
  const t = await startTask(
    version(async (step) => {
      step.status("one");
      await step.sleep("rest", "1m");
      step.status("two");
      await wait(step);
    }),
  );
  await t.skip("2m");
  const told = () => t.events.flatMap(({ kind, content }) => (kind === "status" ? [content] : []));
  assert.deepEqual(told(), ["one", "two"]);
  t.deploy(
    version(async (step) => {
      await step.run("first", () => "new");
      step.status("one");
      await step.run("second", () => "new");
    }),
  );
  completed(await t.outcome());
  assert.deepEqual(told(), ["one", "two", "one"]);
});

row("a step is removed", async () => {
  const { outcome } = await change(
    async (step) => {
      await step.run("a", () => "old");
      await wait(step);
      return "old";
    },
    async () => "new",
  );
  assert.equal(completed(outcome), "new");
});

row("a question is removed", async () => {
  const asking = async (step: Step) => {
    await Promise.all([step.ask("name", "Your name?"), step.branch("beside").sleep("rest", "1d")]);
    return "never";
  };
  const t = await startTask(version(asking));
  await t.untilWaiting();
  assert.equal(t.question?.step, "name");
  t.deploy(version((step) => step.ask("town", "Your town?")));
  await t.skip("2d");
  await t.untilWaiting();
  assert.equal(t.question?.step, "town");
  await t.answer("Oslo");
  assert.equal(completed(await t.outcome()), "Oslo");

  const slow = await startTask(version(asking), { timeoutSec: 2 * 86_400 });
  await slow.untilWaiting();
  slow.deploy(version((step) => wait(step).then(() => "past the deadline")));
  await slow.skip("1d");
  assert.equal(completed(await slow.outcome()), "past the deadline");

  const answered = await startTask(version(asking));
  await answered.untilWaiting();
  answered.deploy(version((step) => step.ask("town", "Your town?")));
  await answered.answer("Ada");
  await answered.untilWaiting();
  assert.equal(
    answered.question?.step,
    "town",
    "an answer wakes the task, and is no answer to the next question",
  );
});

row("steps change places", async () => {
  const { outcome } = await change(
    async (step) => {
      await step.run("a", () => "a");
      await step.run("b", () => "b");
      await wait(step);
      return "never";
    },
    async (step) => {
      await wait(step);
      const b = await step.run("b", () => "never");
      return [b, await step.run("a", () => "never")];
    },
  );
  assert.equal(completed(outcome), "b,a");
});

row("a step is renamed", async () => {
  const { t, outcome } = await change(
    async (step) => {
      await step.run("charge", () => "old");
      await wait(step);
      return "never";
    },
    async (step) => {
      const charged = await step.run("charge the card", () => "again");
      await wait(step);
      return charged;
    },
  );
  assert.equal(completed(outcome), "again");
  assert.deepEqual(names(t), ["charge", "charge the card"]);
});

row("a step moves into a branch, out of one, or to another", async () => {
  const { t, outcome } = await change(
    async (step) => {
      await step.run("a", () => "old");
      await wait(step);
      return "never";
    },
    async (step) => {
      const [a] = await step.each(["x"], String, (_, step) => step.run("a", () => "again"));
      await wait(step);
      return a;
    },
  );
  assert.equal(completed(outcome), "again");
  assert.deepEqual(names(t), ["a", "x/a"]);
});

row("the kind of a step changes", async () => {
  const stored = await change(
    async (step) => {
      await step.run("a", () => "old");
      await wait(step);
      return "never";
    },
    async (step) => {
      await step.artifact("a", "new");
      return "never";
    },
  );
  const message = (now: string, before: string) =>
    `: expected the kind that is stored under this name (${before}), got ${now}`;
  assert.equal(failed(stored.outcome), `internal StepNameError: step "a"${message("artifact", "run")}`);
  const waiting = await change(wait, (step) => step.run("wait", () => "never"));
  assert.equal(failed(waiting.outcome), `internal StepNameError: step "wait"${message("run", "sleep")}`);
});

row("what a step returns changes", async () => {
  const { outcome } = await change(
    async (step) => {
      await step.run("user", () => "Ada");
      await wait(step);
      return "never";
    },
    async (step) => {
      // Both shapes.
      const user: string | { name: string } = await step.run("user", () => ({ name: "never" }));
      await wait(step);
      return typeof user === "string" ? `${user}, as before` : user.name;
    },
  );
  assert.equal(completed(outcome), "Ada, as before");
});

row("one of several steps of the same name is removed", async () => {
  const sending = (customers: readonly string[]) => async (step: Step) => {
    const sent = [];
    for (const customer of customers) sent.push(await step.run("send", () => customer));
    await wait(step);
    return sent;
  };
  const { outcome } = await change(sending(["Ada", "Bob", "Cleo"]), sending(["Bob", "Cleo"]));
  assert.equal(completed(outcome), "Ada,Bob");
});

row("a `sleep` gets another duration", async () => {
  const sleeping = (duration: `${number}d`) => async (step: Step) => {
    await step.sleep("wait", duration);
    await step.run("between", () => "");
    await step.sleep("again", duration);
    return "slept";
  };
  const t = await startTask(version(sleeping("10d")));
  await t.untilWaiting();
  const begun = t.now.getTime();
  t.deploy(version(sleeping("3d")));
  assert.equal(completed(await t.outcome()), "slept");
  assert.equal(Math.floor((t.now.getTime() - begun) / 86_400_000), 13);
});

row("`retry` or `timeout` of a `run` change", async () => {
  const attempts: number[] = [];
  const failing = (most: number) => (step: Step) =>
    step.run(
      "try",
      ({ attempt }) => {
        attempts.push(attempt);
        throw new Error(`attempt ${attempt}`);
      },
      { retry: { attempts: most, initial: "300d", max: "300d" } },
    );
  const t = await startTask(version(failing(100)));
  await t.skip(0);
  t.deploy(version(failing(2)));
  assert.equal(failed(await t.outcome()), "internal Error: attempt 2");
  assert.deepEqual(attempts, [1, 2]);
});

row("an `ask` gets another prompt or timeout", async () => {
  const schema = z.enum(["yes", "no"]);
  const t = await startTask(version((step) => step.ask("sure", "Sure?", { schema, timeout: "1d" })));
  await t.untilWaiting();
  const until = t.waiting[0]?.until;
  t.deploy(version((step) => step.ask("sure", "Are you sure?", { schema, timeout: "9d" })));
  await t.answer("perhaps");
  await t.untilWaiting();
  assert.match(t.question?.prompt ?? "", /^That answer does not fit: .*\n\nAre you sure\?$/);
  assert.deepEqual(t.waiting[0]?.until, until);
  await t.answer("yes");
  assert.equal(completed(await t.outcome()), "yes");
});

row("an `ask` gets another schema", async () => {
  const asking = (schema: z.ZodType<string>) => async (step: Step) => {
    try {
      const answer = await step.ask("number", "Which?", { schema, timeout: "20d" });
      await wait(step);
      return answer;
    } catch (error) {
      if (error instanceof ReplyTimeout) return "too late";
      throw error;
    }
  };
  const t = await startTask(version(asking(z.string())));
  await t.answer("twelve");
  await t.untilWaiting();
  t.deploy(version(asking(z.string().regex(/^\d+$/, "expected digits"))));
  await t.skip("10d");
  assert.equal(t.question?.prompt, "That answer does not fit: expected digits\n\nWhich?");
  await t.answer("12");
  assert.equal(completed(await t.outcome()), "12");

  const late = await startTask(version(asking(z.string())));
  await late.answer("twelve");
  await late.untilWaiting();
  late.deploy(version(asking(z.string().regex(/^\d+$/))));
  await late.skip("10d");
  await late.skip("11d");
  assert.equal(completed(await late.outcome()), "too late", "the question's time is that of the first");
});

row("the skill's `input` changes", async () => {
  const t = await startTask(version(wait), { text: "hello" });
  await t.untilWaiting();
  t.deploy(version(() => "never", { input: z.string().max(3) }));
  assert.match(failed(await t.outcome()), /^invalid_envelope invalid_envelope: input: Too big/);
});

row("settings change", async () => {
  const there = version(async (step, { place }) => {
    const stored = await step.run("place", () => place);
    await wait(step);
    return `${stored}, ${place}`;
  });
  const t = await startTask(there, { settings: { place: "Oslo" } });
  await t.untilWaiting();
  t.deploy(there, { place: "Rome" });
  assert.equal(completed(await t.outcome()), "Oslo, Rome");
});

row("the skill or the agent is removed", async () => {
  const t = await startTask(version(wait));
  await t.untilWaiting();
  t.deploy(version(wait, { slug: "other" }));
  assert.equal(failed(await t.outcome()), "internal test-changed no longer has the skill task");
});

test("each row of the page is tested here", () => {
  const page = readFileSync(join(ROOT, "docs", "changing-handlers.md"), "utf8");
  const written = page.split("\n").flatMap((line) => /^\| (.+?) \| .* \| .+ \|$/.exec(line)?.[1] ?? []);
  assert.deepEqual(
    written.filter((name) => !/^(change|---)$/.test(name)).map((name) => name.replace(/: .*/, "")),
    rows,
  );
});
