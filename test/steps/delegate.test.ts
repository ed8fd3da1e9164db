import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import * as z from "zod";
import {
  type Agent,
  type Delegated,
  type DelegateOptions,
  DelegationError,
  defineAgent,
  type Step,
  skill,
} from "../../shared/agents/index.ts";
import { MAX_CHILD_ARTIFACTS } from "../../shared/tasks/delegation.ts";
import {
  acceptedEvent,
  artifactEvent,
  artifactRef,
  rejectedEvent,
  resultEvent,
  statusEvent,
  taskIdOf,
} from "../../shared/wire/index.ts";
import { type StartOptions, startTask, type TestTask } from "../../testing/index.ts";
import { Simulation } from "../../testing/simulation.ts";
import { dieAtEachWrite } from "../support/kill-points.ts";

const MINUTE_SEC = 60;
const HOUR_SEC = 60 * MINUTE_SEC;
const BOB = "acme-bob";

/** An agent that does what a test says. */
function agentOf(run: (step: Step) => unknown): Agent {
  return defineAgent({
    id: "ann",
    description: "Delegates",
    skills: {
      task: skill({
        name: "Task",
        description: "",
        input: z.string(),
        run: async (_task, step) => String(await run(step)),
      }),
    },
  });
}

const start = (run: (step: Step) => unknown, options: StartOptions = {}) => startTask(agentOf(run), options);
const ask = (step: Step, over: Partial<DelegateOptions> = {}) =>
  step.delegate("bob", { to: BOB, skill: "bob/task", message: "help", ...over });
/** What a failed delegation tells, in one line. */
const failure = async (delegated: Promise<Delegated>): Promise<string> => {
  const error = await delegated.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(error instanceof DelegationError);
  return `${error.code} ${error.state ?? "-"}: ${error.message}`;
};

describe("step.delegate", () => {
  test("hands a task on, waits without running, and gives what came of it", async () => {
    let starts = 0;
    const t = await start(
      async (step) => {
        starts++;
        const { text, data, artifacts, metrics } = await ask(step);
        const bytes = await step.run("read", async () =>
          Buffer.from((await artifacts[0]?.bytes()) ?? []).toString(),
        );
        return JSON.stringify({ text, data, bytes, names: artifacts.map(({ name }) => name), metrics });
      },
      { timeoutSec: HOUR_SEC, contextId: "talk" },
    );
    const bob = await t.delegation();
    assert.deepEqual(
      [bob.to, bob.channelRef, bob.skill, bob.text, bob.depth],
      [BOB, "bob", "task", "help", 0],
    );
    await t.untilWaiting();
    assert.deepEqual(
      t.waiting.map(({ name, kind, to }) => [name, kind, to]),
      [["bob", "delegate", BOB]],
    );
    await bob.accept();
    await bob.complete({ data: { n: 1 }, artifacts: { "a.txt": "A" } });
    assert.deepEqual((await t.outcome()).data, {
      text: '{"n":1}',
      data: { n: 1 },
      bytes: "A",
      names: ["a.txt"],
      metrics: {},
    });
    assert.equal(starts, 2);
    const [step] = t.steps;
    assert.deepEqual([step?.name, step?.kind], ["bob", "delegate"]);
    assert.equal(bob.cancelled, false);
  });

  test("sends what the wire wants, the same bytes however often it is sent", async () => {
    let sends = 0;
    const simulation = new Simulation(
      agentOf((step) => ask(step)),
      {
        // Three workers die when it is sent, before anything is heard of it.
        fate: ({ kind }) => (kind === "messenger.send" && ++sends <= 3 ? "after" : undefined),
      },
    );
    const { taskId } = await simulation.admit({
      skill: "task",
      a2a: "go",
      from: "adam",
      depth: 3,
      contextId: "talk",
      timeoutSec: 1_000,
    });
    const sent = () => simulation.messenger.sent;
    await simulation.until("it is sent", () => sent().length > 0);
    const message = JSON.parse(sent()[0]?.body ?? "");
    assert.match(message.messageId, /^dlg_[0-9a-f]{24}_[0-9a-f]{16}$/);
    assert.equal(sent()[0]?.subject, `a2a.v1.task.test-ann.${BOB}.${message.messageId}`);
    assert.deepEqual(message.payload, {
      a2a: { kind: "text", text: "help" },
      channelRef: "bob",
      skillId: "bob/task",
      clientTaskRef: taskId,
      contextId: "talk",
      delivery: { timeoutSec: 990, maxDelegationDepth: 2 },
      originRuntimeRef: { runtimeAgentId: "test-ann" },
    });
    await simulation.until("sent by each of four workers", () => sends > 3);
    assert.equal(new Set(sent().map(({ body }) => body)).size, 1);
  });

  test("is no larger when it is sent again", async () => {
    let runs = 0;
    const simulation = new Simulation(
      agentOf((step) => ask(step, { message: "x".repeat(runs++ === 0 ? 1 : 1_000_000) })),
      { fate: ({ kind }) => (kind === "messenger.send" && runs === 1 ? "before" : undefined) },
    );
    const { taskId } = await simulation.admit({ skill: "task", a2a: "go", from: "adam" });
    const last = () => simulation.publisher.events(taskId).at(-1)?.event;
    await simulation.until("the end", () => last()?.kind === "result");
    assert.match(last()?.error?.message ?? "", /message of step "bob": expected at most 1000000 bytes/);
    assert.deepEqual(simulation.messenger.sent, []);
  });

  test("takes messages of every form, and refuses what is none", async () => {
    const bytes = Buffer.from("x");
    for (const [message, parts] of [
      [{ data: { a: 1 } }, [{ data: { a: 1 } }]],
      [
        [{ text: "a" }, { bytes, mediaType: "image/png" }],
        [{ text: "a" }, { raw: bytes.toString("base64"), mediaType: "image/png" }],
      ],
      [{ url: "https://a.example" }, [{ url: "https://a.example" }]],
    ] as const) {
      const t = await start((step) => ask(step, { message }));
      assert.deepEqual((await t.delegation()).message.parts, parts);
    }
    for (const [options, pattern] of [
      [{ message: [] }, /^StepOptionError: message of step "bob": expected a part, got none/],
      [{ message: 1 }, /^StepOptionError: message of step "bob": .* got a number/],
      [{ message: { text: 1 } }, /message of step "bob": .* got text with a number/],
      [{ message: { text: "a", data: 1 } }, /message of step "bob": .* got text and data/],
      [{ message: { data: 1n } }, /^NotJsonError: message of step "bob": .* a bigint/],
      [
        { message: "x".repeat(1_000_000) },
        /^StepOptionError: message of step "bob": expected at most 1000000 bytes/,
      ],
      [{ to: "no id" }, /^StepOptionError: to of step "bob": expected a runtime id/],
      [
        { to: "test-cta", skill: "task" },
        /^StepOptionError: to of step "bob": no agent "test-cta" in this deployment: known are test-ann, test-cat; for an agent of another deployment give skill as channelRef\/task$/,
      ],
      [{ skill: "b b/task" }, /^StepOptionError: skill of step "bob": expected a slug, or a channelRef/],
      [
        { to: "test-cat", skill: "dog/task" },
        /skill of step "bob": expected the channelRef of test-cat, cat, got dog/,
      ],
      [{ timeout: "soon" }, /^StepOptionError: timeout of step "bob"/],
      [{ onStatus: 1 }, /^StepOptionError: onStatus of step "bob"/],
    ] as const) {
      const t = await start((step) => ask(step, options as Partial<DelegateOptions>), {
        neighbours: ["cat"],
      });
      const { error } = await t.outcome();
      assert.match(error?.message ?? "", pattern);
      assert.equal(error?.code, "internal");
    }
  });

  test("without options says so", async () => {
    for (const options of [undefined, null, "acme-bob"]) {
      const t = await start((step) => step.delegate("bob", options as unknown as DelegateOptions));
      const { error } = await t.outcome();
      assert.match(
        error?.message ?? "",
        /^StepOptionError: the options of step "bob": expected { to, message, … }, got/,
      );
    }
  });

  test("knows the channelRef of an agent of its own deployment", async () => {
    const t = await start((step) => step.delegate("cat", { to: "test-cat", message: "" }), {
      neighbours: ["cat"],
    });
    const cat = await t.delegation("cat");
    assert.deepEqual([cat.channelRef, cat.skill], ["cat", "task"]);
  });

  test("several at once come back in any order", async () => {
    const t = await start((step) =>
      step
        .each(
          ["a", "b", "c"],
          (name) => name,
          async (name, branch) => (await ask(branch, { message: name })).text,
        )
        .then((texts) => texts.join()),
    );
    const [a, b, c] = [await t.delegation("a/bob"), await t.delegation("b/bob"), await t.delegation("c/bob")];
    await c.complete("C");
    await a.accept();
    await b.complete("B");
    await a.complete("A");
    assert.equal((await t.outcome()).text, "A,B,C");
  });

  test("a result beside other steps is taken while the handler runs", async () => {
    const t = await start(async (step) => {
      const [{ text }] = await Promise.all([ask(step), step.sleep("day", "1d")]);
      return text;
    });
    await (await t.delegation()).complete("soon");
    assert.equal((await t.outcome()).text, "soon");
  });
});

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

describe("progress", () => {
  test("is passed on as it comes, the newest, and not that of the past", async () => {
    const seen: string[] = [];
    const t = await start(
      async (step) => {
        const { text } = await ask(step, {
          onStatus: (text) => {
            seen.push(text);
            step.status(`bob: ${text}`);
          },
        });
        await step.sleep("later", "1h");
        return text;
      },
      { policy: { statusEverySec: 0 } },
    );
    const bob = await t.delegation();
    await bob.status("one");
    await t.skip("1m");
    await bob.status("two");
    await t.skip("1m");
    await bob.complete("done");
    assert.equal((await t.outcome()).text, "done");
    assert.deepEqual([...new Set(seen)], ["one", "two"]);
    assert.deepEqual(
      t.events.map(({ content }) => content),
      ["", "bob: one", "bob: two", "done"],
    );
  });

  test("is passed on though the handler has yet to go through other open steps", async () => {
    const t = await start(
      async (step) => {
        const bob = ask(step, { onStatus: (text) => step.status(text) });
        await Promise.race([bob, step.sleep("night", "8h")]);
        await setImmediate(); // what has come for bob is told by now
        await step.delegate("cat", { to: "acme-cat", skill: "cat/task", message: "too" });
        return (await bob).text;
      },
      { policy: { statusEverySec: 0 } },
    );
    const bob = await t.delegation("bob");
    await bob.accept();
    await t.skip("8h");
    const cat = await t.delegation("cat");
    await bob.status("one");
    await t.untilWaiting();
    assert.equal(t.events.at(-1)?.content, "one");
    await cat.complete();
    await bob.complete("done");
    assert.equal((await t.outcome()).text, "done");
  });

  test("that nobody wants is neither stored nor wakes anybody", async () => {
    const t = await start((step) => ask(step));
    const bob = await t.delegation();
    await bob.status("one");
    const before = t.log.length;
    await bob.status("two");
    await t.untilWaiting();
    assert.equal(t.log.slice(before).filter(({ message }) => /taken over/.test(message)).length, 0);
  });

  test("in a flood is thinned out", async () => {
    const seen = new Set<string>();
    const t = await start((step) => ask(step, { onStatus: (text) => void seen.add(text) }));
    const bob = await t.delegation();
    for (let n = 0; n < 50; n++) await bob.status(`${n}`);
    await t.skip("2s");
    await bob.status("last");
    await t.skip("1s");
    assert.ok(seen.size >= 2 && seen.size <= 4, [...seen].join());
    assert.ok(seen.has("last"));
  });
});

describe("events", () => {
  /** A task whose only step delegates, and what makes events of it. */
  async function delegated(policy = {}) {
    const agent = agentOf(async (step) => {
      const { text, artifacts } = await ask(step, { onStatus: () => {} });
      return `${text} ${artifacts.map(({ name }) => name).join()}`.trim();
    });
    const simulation = new Simulation(agent, { policy });
    const { taskId } = await simulation.admit({
      skill: "task",
      a2a: "go",
      from: "adam",
      timeoutSec: HOUR_SEC,
    });
    await simulation.until("it is sent", () => simulation.messenger.sent.length > 0);
    const messageId: string = JSON.parse(simulation.messenger.sent[0]?.body ?? "").messageId;
    const from = "test-ann";
    const childTaskId = taskIdOf(from, BOB, messageId);
    const child = { taskId: childTaskId, messageId, from, to: BOB };
    const heard = async () =>
      (await simulation.store.entries(taskId, 1)).flatMap((entry) => entry.heard?.revision ?? []);
    return { simulation, taskId, child, heard, createdAt: simulation.createdAt() };
  }

  test("of a third party, of another task id and of nobody are refused", async () => {
    const { simulation, child, heard, createdAt } = await delegated();
    const term = async (message: { subject: string; body: string }) => {
      const verdict = await simulation.event(message);
      return "term" in verdict ? verdict.term : verdict;
    };
    assert.match(
      String(await term(acceptedEvent({ ...child, to: "acme-eve" }, createdAt))),
      /^expected an event of acme-bob/,
    );
    assert.deepEqual(await simulation.event(acceptedEvent(child, createdAt)), { ack: true });
    assert.equal(
      await term(acceptedEvent({ ...child, taskId: "task_other" }, createdAt)),
      "expected the id under which the task was accepted",
    );
    // Waits for an `accepted` that binds it, for five minutes.
    const status = { revision: 2, state: "TASK_STATE_WORKING" as const, content: "hm" };
    const began = simulation.clock.now();
    assert.equal(
      await term(statusEvent({ ...child, taskId: "task_x" }, status, createdAt)),
      "no such delegation",
    );
    assert.ok(simulation.clock.now() - began >= simulation.timing.controlGraceMs);
    assert.equal(
      await term(statusEvent({ ...child, to: "acme-eve" }, status, createdAt)),
      "no such delegation",
    );
    assert.deepEqual(await heard(), [1]);
  });

  test("of nothing wait only where they may have overtaken what tells of it", async () => {
    const targets = { delegateTargets: [{ runtimeAgentId: BOB, skillId: "*" }] };
    const { simulation, child, createdAt } = await delegated(targets);
    const status = { revision: 2, state: "TASK_STATE_WORKING" as const, content: "hm" };
    const other = { ...child, taskId: "task_x", messageId: "msg_x" };
    for (const [message, waits] of [
      [statusEvent({ ...child, to: "acme-eve" }, status, createdAt), false],
      [acceptedEvent({ ...other, to: "acme-eve" }, createdAt), false],
      [acceptedEvent(other, createdAt), false],
      [rejectedEvent(other, { code: "overloaded", message: "no" }, createdAt), false],
      [statusEvent(other, status, createdAt), true],
    ] as const) {
      const began = simulation.clock.now();
      assert.deepEqual(await simulation.event(message), { term: "no such delegation" });
      const waited = simulation.clock.now() - began;
      assert.equal(waited >= simulation.timing.controlGraceMs, waits, message.subject);
    }
  });

  test("doubled and reordered ones are applied once; the end ends it whatever its revision", async () => {
    const { simulation, taskId, child, heard, createdAt } = await delegated();
    const artifact = artifactRef(child.taskId, {
      id: "a",
      name: "a.txt",
      mediaType: "text/plain",
      digest: `sha256:${"0".repeat(64)}`,
      sizeBytes: 1,
    });
    const working = "TASK_STATE_WORKING" as const;
    const all = [
      acceptedEvent(child, createdAt),
      statusEvent(child, { revision: 3, state: working, content: "three" }, createdAt),
      statusEvent(child, { revision: 2, state: working, content: "two" }, createdAt),
      artifactEvent(child, { revision: 5, artifact }, createdAt),
      // An existing executor numbers its artifacts above its result.
      resultEvent(
        child,
        { revision: 4, state: "TASK_STATE_COMPLETED", content: "done", metrics: {} },
        createdAt,
      ),
    ];
    for (const event of all)
      for (const _ of [1, 2]) assert.deepEqual(await simulation.event(event), { ack: true });
    const end = () => simulation.publisher.events(taskId).at(-1)?.event;
    await simulation.until("the end", () => end()?.kind === "result");
    assert.equal(end()?.content, "done a.txt");
    for (const event of all) assert.deepEqual(await simulation.event(event), { ack: true });
    assert.deepEqual(await heard(), [1, 3, 5, 4]);
    assert.equal(simulation.messenger.sent.filter(({ subject }) => /cancel$/.test(subject)).length, 0);
  });

  test("that end it and cannot be read end it as failed; any other is terminated", async () => {
    for (const [payload, said] of [
      [{ state: "DONE" }, /payload.state: /],
      [{ result: { Metrics: { model: "large" } } }, /payload.result.metrics.model: expected number/],
      [{ result: { Artifacts: [{ id: "a" }] } }, /payload.result.artifacts.0.digest: expected string/],
      ["done", /payload: /],
    ] as const) {
      const { simulation, taskId, child, createdAt } = await delegated();
      const of = { revision: 2, state: "TASK_STATE_COMPLETED", content: "", metrics: {} } as const;
      const odd = ({ subject, body }: { subject: string; body: string }) => ({
        subject,
        body: JSON.stringify({ ...JSON.parse(body), payload }),
      });
      const status = odd(statusEvent(child, { ...of, state: "TASK_STATE_WORKING" }, createdAt));
      assert.ok("term" in (await simulation.event(status)));
      assert.deepEqual(await simulation.event(odd(resultEvent(child, of, createdAt))), { ack: true });
      const end = () => simulation.publisher.events(taskId).at(-1)?.event;
      await simulation.until("the end", () => end()?.kind === "result");
      assert.match(end()?.error?.message ?? "", /code invalid_envelope: its result cannot be read: /);
      assert.match(end()?.error?.message ?? "", said);
    }
    const { simulation, child, heard, createdAt } = await delegated();
    const forged = resultEvent(
      { ...child, to: "acme-eve" },
      { state: "TASK_STATE_FAILED", revision: 2, metrics: {} },
      createdAt,
    );
    const body = JSON.stringify({ ...JSON.parse(forged.body), payload: 1 });
    assert.ok("term" in (await simulation.event({ subject: forged.subject, body })));
    assert.deepEqual(await heard(), []);
  });

  test("of an end that lists no artifacts wait for those that were told of, but not for ever", async () => {
    for (const [onStream, waits] of [
      [0, false],
      [1, false],
      [2, true],
    ] as const) {
      const { simulation, taskId, child, createdAt } = await delegated();
      simulation.messenger.artifacts.set(child.taskId, onStream);
      const digest = `sha256:${"0".repeat(64)}`;
      const artifact = artifactRef(child.taskId, {
        id: "a",
        name: "a.txt",
        mediaType: "text/plain",
        digest,
        sizeBytes: 1,
      });
      const of = { state: "TASK_STATE_COMPLETED", content: "done", metrics: {} } as const;
      await simulation.event(acceptedEvent(child, createdAt));
      await simulation.event(artifactEvent(child, { revision: 3, artifact }, createdAt));
      const began = simulation.clock.now();
      assert.deepEqual(await simulation.event(resultEvent(child, { ...of, revision: 2 }, createdAt)), {
        ack: true,
      });
      const waited = simulation.clock.now() - began;
      assert.equal(waited >= simulation.timing.controlGraceMs, waits, `${onStream}`);
      assert.ok(waited < 2 * simulation.timing.controlGraceMs);
      const end = () => simulation.publisher.events(taskId).at(-1)?.event;
      await simulation.until("the end", () => end()?.kind === "result");
      assert.equal(end()?.content, "done a.txt");
    }
  });

  test("with absurd revisions harm nobody", async () => {
    const { simulation, child, taskId, createdAt } = await delegated();
    await simulation.event(acceptedEvent(child, createdAt));
    const huge = { revision: Number.MAX_SAFE_INTEGER, state: "TASK_STATE_WORKING" as const, content: "x" };
    await simulation.event(statusEvent(child, huge, createdAt));
    await simulation.control({ taskId, from: "adam", kind: "cancel", revision: 2 });
    const cancels = simulation.messenger.sent.filter(({ subject }) => /cancel$/.test(subject));
    assert.equal(JSON.parse(cancels[0]?.body ?? "").revision, Number.MAX_SAFE_INTEGER);
    assert.equal((await simulation.store.head(taskId))?.dueAt, undefined);
  });

  test("of artifacts are kept up to a number", async () => {
    const { simulation, child, heard, createdAt } = await delegated();
    await simulation.event(acceptedEvent(child, createdAt));
    for (let n = 1; n <= MAX_CHILD_ARTIFACTS + 1; n++) {
      const digest = `sha256:${"0".repeat(64)}`;
      const artifact = artifactRef(child.taskId, {
        id: `a${n}`,
        name: "a",
        mediaType: "text/plain",
        digest,
        sizeBytes: 1,
      });
      await simulation.event(artifactEvent(child, { revision: 1 + n, artifact }, createdAt));
    }
    assert.equal((await heard()).length, 1 + MAX_CHILD_ARTIFACTS);
  });
});

describe("whatever dies", () => {
  const agent = agentOf(async (step) => {
    const { text, artifacts } = await ask(step, { onStatus: (text) => step.status(text) });
    await step.artifact(
      "copy",
      await step.run("read", async () => Buffer.from((await artifacts[0]?.bytes()) ?? []).toString()),
    );
    const failed = await failure(
      step.delegate("slow", { to: BOB, skill: "bob/x", message: "b", timeout: "1h" }),
    );
    return `${text} ${failed}`;
  });

  for (const when of ["before", "after"] as const)
    test(`at any write, ${when} it: the task ends with the same events`, async (t) => {
      const writes = await dieAtEachWrite({
        agent,
        start: { text: "go" },
        when,
        play: async (task) => {
          const bob = await task.delegation("bob");
          await bob.status("at it");
          await bob.complete({ text: "done", artifacts: { a: "A" } });
          const slow = await task.delegation("slow");
          await slow.accept();
          await task.outcome();
          assert.ok(slow.cancelled);
          assert.equal(bob.cancelled, false);
        },
        eventsOf: (events) =>
          events
            .filter(({ content }) => content !== "at it")
            .map(({ kind, content, artifact }) => [kind, content, artifact?.name]),
      });
      t.diagnostic(`${writes} writes`);
      assert.ok(writes > 25, `${writes} writes`);
    });

  for (const when of ["before", "after"] as const)
    test(`at any write, ${when} it: a cancel of the task cancels what it has handed on`, async () => {
      for (const early of [true, false])
        await dieAtEachWrite({
          agent: agentOf((step) => ask(step)),
          start: { text: "go" },
          when,
          play: async (task) => {
            const bob = await task.delegation("bob");
            if (early) await bob.accept();
            await task.cancel();
            await bob.accept();
            await task.skip("1h");
            assert.ok(bob.cancelled);
          },
          eventsOf: (events) => events.map(({ kind, state }) => [kind, state]),
        });
    });
});
