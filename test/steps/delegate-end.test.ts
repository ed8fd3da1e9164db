import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Step } from "../../shared/agents/index.ts";
import type { StartOptions, TestTask } from "../../testing/index.ts";
import { Simulation } from "../../testing/simulation.ts";
import { agentOf, ask, BOB, failure, HOUR_SEC, start } from "./support/delegating.ts";

describe("a delegation's end", () => {
  test("failed, rejected and cancelled is an error that says what the executor said, on each run", async () => {
    for (const [end, expected, code] of [
      [
        (t: TestTask) => t.delegation().then((bob) => bob.fail("overloaded", "too much")),
        `overloaded TASK_STATE_FAILED: step "bob": ${BOB} has ended the task as TASK_STATE_FAILED, code overloaded: too much`,
        "internal",
      ],
      [
        (t: TestTask) => t.delegation().then((bob) => bob.reject("policy_denied", "not you")),
        `policy_denied TASK_STATE_REJECTED: step "bob": ${BOB} has ended the task as TASK_STATE_REJECTED, code policy_denied: not you`,
        "internal",
      ],
      [
        (t: TestTask) => t.delegation().then((bob) => bob.cancel()),
        `canceled TASK_STATE_CANCELED: step "bob": ${BOB} has ended the task as TASK_STATE_CANCELED, code canceled: canceled`,
        "internal",
      ],
      [
        (t: TestTask) => t.delegation().then((bob) => bob.fail("timeout", "too slow")),
        `timeout TASK_STATE_FAILED: step "bob": ${BOB} has ended the task as TASK_STATE_FAILED, code timeout: too slow`,
        "timeout",
      ],
    ] as const) {
      const seen: string[] = [];
      const caught = await start(async (step) => {
        seen.push(await failure(ask(step)));
        await step.sleep("later", "1h");
        return "caught";
      });
      await end(caught);
      assert.equal((await caught.outcome()).text, "caught");
      assert.deepEqual(seen, [expected, expected]);

      const uncaught = await start((step) => ask(step));
      await end(uncaught);
      const { error } = await uncaught.outcome();
      assert.equal(error?.code, code);
      assert.equal(error?.message, expected.slice(expected.indexOf(": ") + 2));
    }
  });

  test("a child that asks cannot be answered: the step fails with the question, the child is cancelled", async () => {
    const t = await start((step) => failure(ask(step)));
    const bob = await t.delegation();
    await bob.ask("Which region?");
    const { text } = await t.outcome();
    assert.match(text, /^unsupported_operation TASK_STATE_INPUT_REQUIRED: .*asks .*: Which region\?$/);
    assert.ok(bob.cancelled);
    await bob.cancel();
  });

  test("the policy and the depth forbid: nothing is sent, and the refusal stays", async () => {
    for (const [options, expected] of [
      [{ depth: 0 }, /^policy_denied -: step "bob": this task may not be handed on/],
      [
        { policy: { delegateTargets: [] } },
        /^unauthorized_target -: .* no delegateTargets for bob\/task of acme-bob/,
      ],
      [
        { policy: { delegateTargets: [{ runtimeAgentId: BOB, skillId: "bob/other*" }] } },
        /^unauthorized_target/,
      ],
    ] as const) {
      const t = await start(async (step) => {
        const first = await failure(ask(step));
        await step.sleep("later", "1h");
        return first;
      }, options as StartOptions);
      assert.match((await t.outcome()).text, expected);
      assert.match(t.steps.find(({ name }) => name === "bob")?.error?.name ?? "", /^DelegationError$/);
      const uncaught = await start((step) => ask(step), options as StartOptions);
      assert.equal((await uncaught.outcome()).error?.code, expected.source.slice(1).split(" ")[0]);
    }
  });

  test("a target that nobody is: nothing is sent to anybody, and the refusal stays", async () => {
    for (const [to, hint] of [
      ["test-cta", 'nearest are "test-cat"'],
      ["zebra", 'known are "test-ann", "test-cat"'],
    ] as const) {
      const options = {
        neighbours: ["cat"],
        policy: { delegateTargets: [{ runtimeAgentId: "*", skillId: "*" }] },
      };
      const wanted = { to, skill: "task" };
      const t = await start(async (step) => {
        const first = await failure(ask(step, wanted));
        await step.sleep("later", "1h");
        return first;
      }, options);
      const message = `step "bob": target_unresolved: no agent is called "${to}"; ${hint}; an agent that shows no card here, or has for less than a minute, needs skill as channelRef/task`;
      assert.equal((await t.outcome()).text, `target_unresolved -: ${message}`);
      assert.equal(t.steps.find(({ name }) => name === "bob")?.error?.name, "DelegationError");
      const lines = t.log.filter((line) => line.message === "nobody was chosen");
      assert.equal(lines.length, 1);
      const { code, executor, step } = { ...lines[0]?.fields };
      assert.deepEqual([code, executor, step], ["target_unresolved", to, "bob"]);
      const uncaught = await start((step) => ask(step, wanted), options);
      assert.deepEqual((await uncaught.outcome()).error, { code: "unknown_agent", message });
    }
  });

  test("its time is over: the child is cancelled, and what comes later changes nothing", async () => {
    const t = await start(async (step) => {
      const failed = await failure(ask(step, { timeout: "10m" }));
      await step.sleep("later", "1h");
      return failed;
    });
    const bob = await t.delegation();
    assert.equal(bob.timeoutSec, 600);
    await bob.accept();
    await t.skip("10m");
    assert.ok(bob.cancelled);
    await bob.complete("late");
    assert.equal((await t.outcome()).text, `timeout -: step "bob": ${BOB} was not done within 600 s`);
    const uncaught = await start((step) => ask(step, { timeout: "10m" }));
    assert.equal((await uncaught.outcome()).error?.code, "timeout");
  });

  test("its time is over before it was accepted: it is cancelled as soon as it is", async () => {
    const t = await start(async (step) => {
      const failed = await failure(ask(step, { timeout: "10m" }));
      await step.sleep("later", "1h");
      return failed;
    });
    const bob = await t.delegation();
    await t.skip("10m");
    assert.equal(bob.cancelled, false);
    await bob.accept();
    assert.ok(bob.cancelled);
    await bob.cancel();
    assert.match((await t.outcome()).text, /^timeout -/);
  });

  test("its time is over before it could be sent: it never is", async () => {
    let dies = true;
    const simulation = new Simulation(
      agentOf((step) => failure(ask(step, { timeout: "10s" }))),
      {
        fate: ({ kind }) => {
          if (!dies || kind !== "messenger.send") return undefined;
          dies = false;
          return "before";
        },
      },
    );
    const { taskId } = await simulation.admit({ skill: "task", a2a: "go", from: "adam" });
    const last = () => simulation.publisher.events(taskId).at(-1)?.event;
    await simulation.until("the end", () => last()?.kind === "result");
    assert.equal(last()?.content, `timeout -: step "bob": ${BOB} was not done within 10 s`);
    assert.deepEqual(simulation.messenger.sent, []);
  });

  test("its time is over while NATS is out of reach", async () => {
    const simulation = new Simulation(agentOf((step) => failure(ask(step, { timeout: "2s" }))));
    let attempts = 0;
    simulation.messenger.send = async () => {
      attempts++;
      await new Promise<void>((resolve) => void simulation.clock.timer(500, resolve));
      throw new Error("no server");
    };
    const { taskId } = await simulation.admit({ skill: "task", a2a: "go", from: "adam" });
    const last = () => simulation.publisher.events(taskId).at(-1)?.event;
    await simulation.until("the end", () => last()?.kind === "result");
    assert.equal(last()?.content, `timeout -: step "bob": ${BOB} was not done within 2 s`);
    assert.ok(attempts <= 4, `its invocation would have had time for ${attempts} attempts`);
  });

  test("of less than a second is said as it is", async () => {
    const t = await start((step) => failure(ask(step, { timeout: "500ms" })));
    assert.match((await t.outcome()).text, /was not done within 0.5 s$/);
  });

  test("gets less time than is left, and the task can still say that it was too little", async () => {
    const t = await start((step) => failure(ask(step)), { timeoutSec: 100 });
    const bob = await t.delegation();
    assert.equal(bob.timeoutSec, 95);
    await bob.accept();
    const { state, text } = await t.outcome();
    assert.equal(state, "TASK_STATE_COMPLETED");
    assert.match(text, /^timeout -/);
    const short = await start((step) => ask(step), { timeoutSec: 1 });
    assert.equal((await short.delegation()).timeoutSec, 1);
    const shorter = await start((step) => ask(step, { timeout: "30s" }), { timeoutSec: 1_000 });
    assert.equal((await shorter.delegation()).timeoutSec, 30);
  });
});

describe("the parent's end", () => {
  test("by a cancel cancels what is accepted", async () => {
    const t = await start((step) => ask(step));
    const bob = await t.delegation();
    await bob.accept();
    await t.cancel();
    assert.ok(bob.cancelled);
    await bob.cancel();
    assert.equal((await t.outcome()).state, "TASK_STATE_CANCELED");
  });

  test("by a cancel cancels what is accepted later, as soon as it is", async () => {
    const t = await start((step) => ask(step));
    const bob = await t.delegation();
    await t.cancel();
    assert.equal(bob.cancelled, false);
    await bob.accept();
    assert.ok(bob.cancelled);
  });

  test("by its deadline, by a failure and by a lost race cancels it, and only what is open", async () => {
    for (const [run, state] of [
      [(step: Step) => Promise.all([ask(step, { timeout: "300d" }), step.sleep("long", "1d")]), "FAILED"],
      [
        (step: Step) =>
          Promise.all([
            ask(step),
            step.sleep("a while", "10m").then(() => {
              throw new Error("lost");
            }),
          ]),
        "FAILED",
      ],
      [(step: Step) => Promise.race([ask(step), step.sleep("a while", "10m")]), "COMPLETED"],
    ] as const) {
      const t = await start(
        async (step) => {
          await step.delegate("done", { to: BOB, skill: "bob/task", message: "first" });
          return run(step);
        },
        { timeoutSec: HOUR_SEC },
      );
      const done = await t.delegation("done");
      await done.complete();
      const bob = await t.delegation("bob");
      await bob.accept();
      assert.equal((await t.outcome()).state, `TASK_STATE_${state}`);
      await t.skip("5m");
      assert.deepEqual([bob.cancelled, done.cancelled], [true, false], state);
    }
  });
});
