import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { DelegateOptions } from "../../shared/agents/index.ts";
import { Simulation } from "../../testing/simulation.ts";
import { agentOf, ask, BOB, HOUR_SEC, start } from "./support/delegating.ts";

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
      a2a: { kind: "text", text: "help", metadata: { "a2a.trace": { hops: 1 } } },
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
      [{ to: "no id" }, /^StepOptionError: to of step "bob": expected a runtime id .* beside a channelRef/],
      [{ to: "" }, /^StepOptionError: to of step "bob": expected a runtime id/],
      [{ to: "x".repeat(257) }, /^StepOptionError: to of step "bob": .* at most 256 characters/],
      [{ to: undefined }, /^StepOptionError: skill of step "bob": expected a slug alone/],
      [{ subject: "" }, /^StepOptionError: subject of step "bob": .* 1 to 1024 characters, got one of 0/],
      [{ subject: "x".repeat(1_025) }, /^StepOptionError: subject of step "bob": .* got one of 1025/],
      [{ subject: 1 }, /^StepOptionError: subject of step "bob": .* got a number/],
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
