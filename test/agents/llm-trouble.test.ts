import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { APICallError } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import llm from "../../agents/llm.ts";
import { dieAtEachWrite } from "../support/kill-points.ts";
import { call, failure, model, names, result, type Said, says, start, text, use } from "./support/model.ts";

afterEach(() => mock.restoreAll());

const answered = (statusCode: number, message: string) =>
  new APICallError({ message, url: model.baseUrl, requestBodyValues: {}, statusCode });

test("a provider that is busy is asked again, by the engine alone", async () => {
  const troubles = [answered(429, "slow down"), answered(503, "overloaded"), new TypeError("fetch failed")];
  const asked = new MockLanguageModelV4({
    doGenerate: async () => {
      const trouble = troubles.shift();
      if (trouble !== undefined) throw trouble;
      return result([text("at last")]);
    },
  });
  use(asked);
  const t = await start();
  assert.equal((await t.outcome()).text, "at last");
  assert.deepEqual(
    t.steps.map(({ name, attempts }) => [name, attempts]),
    [["turn 1", 4]],
  );
  assert.equal(asked.doGenerateCalls.length, 4);
});

test("what a provider says at length is cut, and what it does not support is logged", async () => {
  for (const [length, told] of [
    [500, "x".repeat(500)],
    [501, `${"x".repeat(500)}…`],
  ] as const) {
    says(answered(400, "x".repeat(length)));
    await failure(await start(), new RegExp(`the provider answered 400: ${told}$`));
  }
  says({ content: [text("42")], warnings: [{ type: "unsupported", feature: "toolChoice" }] });
  const t = await start();
  await t.outcome();
  const warned = t.log.find(({ message }) => message === "the provider warns");
  assert.deepEqual(warned?.fields?.warnings, [{ type: "unsupported", feature: "toolChoice" }]);
});

test("a provider that stays busy, or breaks off, fails the task in the end", async () => {
  for (const [said, message] of [
    [answered(529, "overloaded"), /the provider answered 529: overloaded$/],
    [answered(503, ""), /the provider answered 503$/],
    [
      { content: [text("It")], finishReason: { unified: "error", raw: "x" } },
      /broke off the answer \(error\)/,
    ],
  ] as [Said, RegExp][]) {
    const asked = says(said);
    await failure(await start(), message);
    assert.equal(asked.doGenerateCalls.length, 6);
  }
});

test("what the provider refuses is not asked again", async () => {
  for (const [status, message] of [
    [400, /the provider answered 400: no such model$/],
    [401, /the provider refuses access \(401\): look at `model\.apiKey`$/],
    [404, /the provider answered 404: no such model$/],
  ] as const) {
    const asked = says(answered(status, "no such model"));
    await failure(await start(), message);
    assert.equal(asked.doGenerateCalls.length, 1);
  }
});

test("a worker that dies after a turn, before its tool: the turn is not asked again", async () => {
  const asked = says([call("calculate", { expression: "6*7" })], [text("42")]);
  const t = await start();
  t.crash({ after: "turn 1" });
  t.crash({ after: "tool 1.1 calculate" });
  t.crash({ after: "turn 2" });
  assert.equal((await t.outcome()).text, "42");
  assert.equal(t.log.filter(({ message }) => message === "a task is taken over").length, 3);
  assert.equal(asked.doGenerateCalls.length, 2);
  assert.deepEqual(names(t), ["turn 1", "tool 1.1 calculate", "turn 2"]);
});

test("a worker that dies before a turn is stored asks it again, and counts it once", async () => {
  const asked = says([call("calculate", { expression: "6*7" })], [text("42")]);
  const t = await start();
  t.crash({ before: "turn 1" });
  const { metrics } = await t.outcome();
  assert.equal(asked.doGenerateCalls.length, 3);
  assert.deepEqual([metrics.turns, metrics.input_tokens], [2, 200]);
});

for (const when of ["before", "after"] as const)
  test(`whichever write a process dies ${when}, the task ends with the same events`, async () => {
    says(
      [call("calculate", { expression: "6*7" }), call("ask_requester", { question: "Sure?" })],
      [call("calculate", { expression: "42/6" })],
      [text("42")],
    );
    const writes = await dieAtEachWrite({
      agent: llm,
      start: { text: "What is 6 times 7?", settings: { model } },
      when,
      play: async (t) => {
        await t.answer("yes");
        const { elapsed_ms, ...metrics } = (await t.outcome()).metrics;
        assert.deepEqual(metrics, { turns: 3, tool_calls: 3, input_tokens: 300, output_tokens: 30 });
      },
      // How many progress texts are merged into one depends on the time, which a takeover takes.
      eventsOf: (events) =>
        events
          .filter(({ kind, state }) => kind !== "status" || state !== "TASK_STATE_WORKING")
          .map(({ kind, state, content }) => [kind, state, content]),
    });
    assert.ok(writes > 10, `${writes} writes`);
  });

test("a cancel stops the request", async () => {
  const began = Promise.withResolvers<AbortSignal | undefined>();
  const asked = new MockLanguageModelV4({
    doGenerate: ({ abortSignal }) => {
      began.resolve(abortSignal);
      return new Promise((_, reject) =>
        abortSignal?.addEventListener("abort", () => reject(abortSignal.reason)),
      );
    },
  });
  use(asked);
  const t = await start();
  await t.skip("1s");
  const signal = await began.promise;
  await t.cancel();
  assert.equal((await t.outcome()).state, "TASK_STATE_CANCELED");
  assert.equal(signal?.aborted, true);
});
