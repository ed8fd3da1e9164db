import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as z from "zod";
import { ApprovalDenied, ReplyTimeout, type Step } from "../../shared/agents/index.ts";
import { MAX_DURATION, milliseconds } from "../../shared/steps/duration.ts";
import { MAX_PROMPT } from "../../shared/steps/kinds/ask.ts";
import { Probe } from "../support/probe.ts";
import { until } from "../support/until.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR_SEC = 366 * 86_400;
const probe = new Probe({ timeoutSec: { default: YEAR_SEC, max: YEAR_SEC } });
const waiting = async (taskId: string) => (await probe.world.store.head(taskId))?.waiting === true;

describe("step.sleep", () => {
  test("waits a short time within the invocation, with one write", async () => {
    const taskId = await probe.start(async (step) => {
      await step.sleep("breath", 30);
      return "done";
    });
    assert.equal((await probe.last(taskId))?.content, "done");
    assert.equal((await probe.world.store.head(taskId))?.epoch, 1);
    const entries = await probe.world.store.entries(taskId, 1);
    assert.deepEqual(
      entries.map(({ opens, steps }) => [opens?.[0]?.name, steps]),
      [
        ["breath", undefined],
        [undefined, undefined],
      ],
    );
  });

  test("leaves the task for a time, and goes on when it is over, in another process", async () => {
    let runs = 0;
    const taskId = await probe.start(async (step) => {
      await step.run("before", () => runs++);
      await step.sleep("minute", "1m");
      await step.run("after", () => runs++);
      return "done";
    });
    assert.equal((await probe.last(taskId))?.content, "done");
    assert.equal((await probe.world.store.head(taskId))?.epoch, 2);
    assert.equal(runs, 2);
  });

  test("for three hundred days has nobody work on it meanwhile", async () => {
    const taskId = await probe.start(async (step) => {
      const from = step.now().getTime();
      await step.sleep("long", "300d");
      return String(step.now().getTime() - from);
    });
    const { world } = probe;
    assert.ok(await waiting(taskId));
    const { dueAt = 0 } = (await world.store.head(taskId)) ?? {};
    await probe.pass(299 * DAY);
    assert.equal((await world.store.head(taskId))?.epoch, 1);
    // The sweep looks one period ahead, and sends the exact delay.
    world.skip(dueAt - world.now() - MINUTE / 2);
    await world.sweep();
    const [offered] = world.hints;
    assert.ok(
      offered !== undefined && offered.delaySec > 25 && offered.delaySec <= 30,
      `${offered?.delaySec}`,
    );
    await probe.go();
    const slept = Number((await probe.last(taskId))?.content);
    assert.ok(slept >= 300 * DAY && slept < 300 * DAY + 1_000, `${slept}`);
  });

  test("until a time that has passed is over at once, without a write", async () => {
    const taskId = await probe.start(async (step) => {
      await step.sleepUntil("past", new Date(0));
      return "done";
    });
    assert.equal((await probe.last(taskId))?.content, "done");
    assert.equal((await probe.view(taskId)).open.size, 0);
  });

  test("several at once wait for the first, each as long as it is to", async () => {
    const woke: string[] = [];
    const taskId = await probe.start(async (step) => {
      woke.push("start");
      const nap = async (name: string, hours: number) => {
        await step.sleep(name, `${hours}h`);
        await step.run(`${name} is over`, () => woke.push(name));
      };
      await Promise.all([
        nap("three", 3),
        nap("one", 1),
        nap("two", 2),
        step.run("work", () => woke.push("work")),
      ]);
      return "done";
    });
    const { decidedAt = 0 } = (await probe.world.store.head(taskId)) ?? {};
    for (let hour = 1; hour <= 3; hour++) {
      const { dueAt = 0 } = (await probe.world.store.head(taskId)) ?? {};
      assert.ok(Math.abs(dueAt - decidedAt - hour * HOUR) < 10_000, `due after ${dueAt - decidedAt} ms`);
      await probe.pass(HOUR);
    }
    assert.equal((await probe.last(taskId))?.content, "done");
    assert.deepEqual(woke, ["start", "work", "start", "one", "start", "two", "start", "three"]);
  });

  test("that the handler does not wait for does not keep it", async () => {
    const taskId = await probe.start(async (step) => {
      void step.sleep("forgotten", "1d");
      const first = await Promise.race([step.sleep("timeout", "2d"), step.run("work", () => "work")]);
      return new Promise<string>((resolve) => setTimeout(resolve, 5, String(first)));
    });
    assert.equal((await probe.last(taskId))?.content, "work");
  });

  test("takes what a duration is, up to a leap year", async () => {
    for (const [duration, ms] of [
      [0, 0],
      ["90s", 90_000],
      ["1.5h", 5_400_000],
      ["250ms", 250],
      ["366d", MAX_DURATION],
      [MAX_DURATION, MAX_DURATION],
    ] as const)
      assert.equal(milliseconds(duration, "it"), ms);
    for (const duration of [-1, Number.NaN, Infinity, MAX_DURATION + 1, "366.1d", "d", "1 d", "-1s"])
      assert.throws(
        () => milliseconds(duration as "1s", "it"),
        /^StepOptionError: it: expected milliseconds/,
      );
    for (const handle of [
      (step: Step) => step.sleep("a", "soon" as "1s"),
      (step: Step) => step.sleepUntil("a", new Date(Number.NaN)),
      (step: Step) => step.sleepUntil("a", new Date(probe.world.now() + 367 * DAY)),
    ])
      assert.match((await probe.last(await probe.start(handle)))?.error?.message ?? "", /step "a"/);
  });
});

describe("step.ask", () => {
  test("asks, waits, and goes on with the answer", async () => {
    let starts = 0;
    const taskId = await probe.start(async (step) => {
      starts++;
      step.status("thinking");
      const region = await step.ask("region", "Which region?");
      return `${region} it is`;
    });
    assert.ok(await waiting(taskId));
    assert.equal((await probe.world.store.head(taskId))?.state, "TASK_STATE_INPUT_REQUIRED");
    await probe.answer(taskId, "North");
    assert.deepEqual(await probe.told(taskId), [
      "WORKING",
      "WORKING thinking",
      "INPUT_REQUIRED Which region?",
      "WORKING input received",
      "COMPLETED North it is",
    ]);
    assert.equal(starts, 2);
    const steps = (await probe.world.store.entries(taskId, 1)).flatMap((entry) => entry.steps ?? []);
    assert.deepEqual(steps, [], "the answer needs no further write");
  });

  test("asks again, with the reason, what does not parse", async () => {
    const schema = z.object({ count: z.number().int().max(9) });
    const taskId = await probe.start(
      async (step) => (await step.ask("count", "How many?", { schema })).count,
    );
    await probe.answer(taskId, "many");
    await probe.answer(taskId, { count: 10 });
    assert.ok(await waiting(taskId));
    await probe.answer(taskId, { count: 9 });
    const told = await probe.told(taskId);
    assert.deepEqual(told.filter((text) => !/input received/.test(text)).slice(1), [
      "INPUT_REQUIRED How many?",
      told[3] ?? "",
      told[5] ?? "",
      "COMPLETED 9",
    ]);
    assert.match(told[3] ?? "", /^INPUT_REQUIRED That answer does not fit: .*no JSON.*\n\nHow many\?$/);
    assert.match(told[5] ?? "", /^INPUT_REQUIRED That answer does not fit: count: .*9.*\n\nHow many\?$/);
  });

  test("an answer that is no number is told so, and nothing of data parts", async () => {
    for (const schema of [z.number(), z.coerce.number().int().optional(), z.boolean()]) {
      const taskId = await probe.start(async (step) => `${await step.ask("count", "How many?", { schema })}`);
      await probe.answer(taskId, "many");
      const { content = "" } = (await probe.last(taskId)) ?? {};
      assert.match(content, /^That answer does not fit: [^()]*(number|boolean)[^()]*\n\nHow many\?$/);
    }
  });

  test("takes any text where no schema is given, and asks again for what is none", async () => {
    const taskId = await probe.start((step) => step.ask("name", "Your name?"));
    await probe.answer(taskId, "");
    await probe.answer(taskId, { no: "text" });
    await probe.reply(taskId, "input_reply", undefined);
    await probe.go();
    assert.match(
      (await probe.last(taskId))?.content ?? "",
      /^That answer does not fit: expected a text\n\nYour name\?$/,
    );
    await probe.reply(taskId, "input_reply", { message: { parts: [{ kind: "text", text: "Ada" }] } });
    await probe.go();
    assert.equal((await probe.last(taskId))?.content, "Ada");
  });

  test("gives up when its time is over, once and for all", async () => {
    const seen: string[] = [];
    const taskId = await probe.start(async (step) => {
      const answer = await step.ask("name", "Your name?", { timeout: "2h" }).catch((error: unknown) => {
        assert.ok(error instanceof ReplyTimeout);
        return error.message;
      });
      seen.push(answer);
      await step.sleep("night", "8h");
      return answer;
    });
    assert.ok(await waiting(taskId));
    await probe.pass(2 * HOUR);
    // Too late: no question is open any more.
    await probe.answer(taskId, "late");
    await probe.pass(8 * HOUR);
    const message = 'step "name": nobody answered within 7200 s';
    assert.equal((await probe.last(taskId))?.content, message);
    assert.deepEqual(seen, [message, message]);
  });

  test("uncaught ends the task as timed out", async () => {
    const taskId = await probe.start((step) => step.ask("name", "Your name?", { timeout: "2h" }));
    await probe.pass(2 * HOUR);
    assert.equal((await probe.last(taskId))?.error?.code, "timeout");
  });

  test("takes an answer that has come in time though nobody looked until its time was over", async () => {
    const taskId = await probe.start((step) => step.ask("name", "Your name?", { timeout: "2h" }));
    await probe.reply(taskId, "input_reply", { input: "Ada" });
    probe.world.hints.splice(0);
    await probe.pass(3 * HOUR);
    assert.equal((await probe.last(taskId))?.content, "Ada");
  });

  test("waits thirty days at the most", async () => {
    const taskId = await probe.start((step) => step.ask("name", "Your name?"));
    await probe.pass(29 * DAY);
    assert.ok(await waiting(taskId));
    await probe.pass(DAY);
    assert.equal((await probe.last(taskId))?.error?.code, "timeout");
  });

  test("one question is open at a time; the next is asked when that is answered", async () => {
    const taskId = await probe.start(async (step) => {
      const [a, b] = await Promise.all([step.ask("a", "A?"), step.ask("b", "B?")]);
      return `${a} ${b}`;
    });
    assert.equal((await probe.told(taskId)).at(-1), "INPUT_REQUIRED A?");
    await probe.answer(taskId, "1");
    assert.equal((await probe.told(taskId)).at(-1), "INPUT_REQUIRED B?");
    await probe.answer(taskId, "2");
    assert.equal((await probe.last(taskId))?.content, "1 2");
  });

  test("a question whose answer does not fit comes before the next one", async () => {
    const schema = z.coerce.number();
    for (const inProcess of [false, true]) {
      const release = Promise.withResolvers<number>();
      const hint = await probe.admit(async (step) => {
        const asked = [step.ask("a", "A?", { schema }), step.ask("b", "B?")];
        if (inProcess) await step.run("work", () => release.promise);
        return (await Promise.all(asked)).join(" ");
      });
      const { taskId } = hint;
      const working = probe.world.work(hint);
      const last = async () => (await probe.told(taskId)).at(-1) ?? "";
      const asks = async (pattern: RegExp) => {
        await until("it is asked", async () => {
          if (inProcess) probe.world.skip(probe.world.timing.beatMs);
          return pattern.test(await last());
        });
      };
      await asks(/^INPUT_REQUIRED A\?$/);
      if (!inProcess) await working;
      await probe.answer(taskId, "one");
      await asks(/^INPUT_REQUIRED That answer does not fit: .*\n\nA\?$/);
      await probe.answer(taskId, "1");
      await asks(/^INPUT_REQUIRED B\?$/);
      await probe.answer(taskId, "2");
      probe.world.skip(probe.world.timing.beatMs);
      release.resolve(1);
      await working;
      await probe.go();
      assert.equal((await probe.last(taskId))?.content, "1 2");
    }
  });

  test("a question that the handler no longer asks gives way to the one that it asks", async () => {
    const taskId = await probe.start((step) => step.ask("old", "Old?"));
    probe.handle = async (step) =>
      `${await step.run("new work", () => "x")} ${await step.ask("new", "New?")}`;
    await probe.reply(taskId, "status", undefined);
    // Somebody else wakes the task: the handler has changed meanwhile.
    const head = await probe.world.store.head(taskId);
    await probe.world.work({ taskId, epoch: head?.epoch ?? 0, beat: head?.beat ?? 0 });
    assert.equal((await probe.told(taskId)).at(-1), "INPUT_REQUIRED New?");
    await probe.answer(taskId, "yes");
    assert.equal((await probe.last(taskId))?.content, "x yes");
  });

  test("other steps go on while it waits, and progress does not hide the question's state", async () => {
    const taskId = await probe.start(async (step) => {
      const asked = step.ask("name", "Your name?");
      await step.run("work", () => 1);
      step.status("nearly there");
      await step.run("more", () => 2);
      await step.artifact("draft", "a draft");
      return `Hello ${await asked}`;
    });
    assert.ok(await waiting(taskId));
    const events = await probe.events(taskId);
    assert.deepEqual(
      events.slice(1).map(({ kind, state, content }) => `${kind} ${state} ${content}`),
      [
        "status TASK_STATE_INPUT_REQUIRED Your name?",
        "status TASK_STATE_INPUT_REQUIRED nearly there",
        "artifact TASK_STATE_INPUT_REQUIRED ",
      ],
    );
    await probe.answer(taskId, "Ada");
    assert.equal((await probe.last(taskId))?.content, "Hello Ada");
  });

  test("refuses a prompt that is none", async () => {
    for (const prompt of ["", "x".repeat(MAX_PROMPT + 1)]) {
      const taskId = await probe.start((step) => step.ask("a", prompt));
      assert.match((await probe.last(taskId))?.error?.message ?? "", /prompt of step "a": .* 1 to 100000/);
    }
    const taskId = await probe.start((step) => step.ask("a", "x".repeat(MAX_PROMPT)));
    assert.ok(await waiting(taskId));
  });
});

describe("step.approve", () => {
  const gate = async (step: Step) => {
    await step.approve("gate", "Go?");
    return await step.run("act", () => "acted");
  };

  test("goes on when it is approved", async () => {
    const taskId = await probe.start(gate);
    assert.equal((await probe.last(taskId))?.state, "TASK_STATE_AUTH_REQUIRED");
    await probe.approve(taskId, true);
    assert.deepEqual(await probe.told(taskId), [
      "WORKING",
      "AUTH_REQUIRED Go?",
      "WORKING authorization received",
      "COMPLETED acted",
    ]);
  });

  test("denied and uncaught, ends the task as not authorized, with the reason", async () => {
    const taskId = await probe.start(gate);
    await probe.approve(taskId, false, "not on a Friday");
    const last = await probe.last(taskId);
    assert.equal(last?.kind, "result");
    assert.equal(last?.revision, 3);
    assert.deepEqual(last?.error, { code: "auth_not_satisfied", message: "not on a Friday" });
  });

  test("denied and caught, goes on", async () => {
    const taskId = await probe.start(async (step) => {
      try {
        return await gate(step);
      } catch (error) {
        assert.ok(error instanceof ApprovalDenied);
        await step.sleep("later", "1h");
        return `not done: ${error.message}`;
      }
    });
    await probe.approve(taskId, false);
    await probe.pass(HOUR);
    assert.equal((await probe.last(taskId))?.content, "not done: approval was denied");
  });

  for (const [onTimeout, code] of [
    ["deny", "auth_not_satisfied"],
    ["throw", "timeout"],
  ] as const)
    test(`unanswered ends the task as ${code} under onTimeout ${onTimeout}`, async () => {
      const taskId = await probe.start((step) => step.approve("gate", "Go?", { timeout: "1h", onTimeout }));
      await probe.pass(HOUR);
      assert.equal((await probe.last(taskId))?.error?.code, code);
      assert.match((await probe.last(taskId))?.error?.message ?? "", /nobody answered within 3600 s/);
    });

  test("unanswered goes on under onTimeout approve, once and for all, and says so", async () => {
    let runs = 0;
    const taskId = await probe.start(async (step) => {
      runs++;
      await step.approve("gate", "Go?", { timeout: "1h", onTimeout: "approve" });
      await step.sleep("later", "1h");
      return await step.run("act", () => "acted");
    });
    await probe.pass(HOUR / 2);
    assert.equal((await probe.last(taskId))?.state, "TASK_STATE_AUTH_REQUIRED");
    await probe.pass(HOUR / 2);
    // Too late: no question is open any more.
    await probe.approve(taskId, false);
    await probe.pass(HOUR);
    assert.deepEqual(await probe.told(taskId), [
      "WORKING",
      "AUTH_REQUIRED Go?",
      "WORKING no objection was made",
      "COMPLETED acted",
    ]);
    assert.equal(runs, 3);
  });

  test("a denial counts that was in time, though nobody looked until the time was over", async () => {
    const taskId = await probe.start((step) =>
      step.approve("gate", "Go?", { timeout: "1h", onTimeout: "approve" }),
    );
    await probe.reply(taskId, "auth_reply", { approve: false, denyReason: "no" });
    probe.world.hints.splice(0);
    await probe.pass(2 * HOUR);
    assert.equal((await probe.last(taskId))?.error?.code, "auth_not_satisfied");
  });

  test("who could not be asked has not been silent: the time begins when the question is told", async () => {
    const { world } = probe;
    const publish = world.publisher.publish.bind(world.publisher);
    const publisher: typeof world.publisher = {
      ...world.publisher,
      publish: async (task, event, again) => {
        if (event.kind === "status") throw new Error("NATS is out of reach");
        return publish(task, event, again);
      },
    };
    // Long enough for an attempt, whatever else the machine does.
    const outage = () => ({ publisher, endsAt: world.now() + world.timing.marginMs + 300 });
    const hint = await probe.admit(async (step) => {
      await step.approve("gate", "Go?", { timeout: "1h", onTimeout: "approve" });
      return "went";
    });
    const { taskId } = hint;
    await world.work(hint, outage());
    for (let hours = 0; hours < 2; hours++) {
      world.skip(2 * HOUR);
      const [offered] = world.hints.splice(0);
      if (offered !== undefined) await world.work(offered.hint, outage());
    }
    assert.deepEqual(await probe.told(taskId), ["WORKING"]);
    await probe.go();
    assert.equal((await probe.told(taskId)).at(-1), "AUTH_REQUIRED Go?");
    await probe.pass(HOUR / 2);
    assert.equal((await probe.told(taskId)).at(-1), "AUTH_REQUIRED Go?");
    await probe.pass(HOUR / 2);
    assert.equal((await probe.last(taskId))?.content, "went");
  });

  test("a task whose life is over before its silence counts has not been approved", async () => {
    let acted = false;
    const taskId = await probe.start(async (step) => {
      for (let month = 1; month <= 13; month++)
        await step.ask(`month ${month}`, "Still there?").catch(() => {});
      await step.approve("gate", "Go?", { timeout: "30d", onTimeout: "approve" });
      acted = true;
    });
    for (let month = 1; month <= 14; month++) await probe.pass(30 * DAY);
    assert.equal((await probe.last(taskId))?.error?.code, "timeout");
    assert.equal(acted, false);
  });
});
