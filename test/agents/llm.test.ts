import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { MockLanguageModelV4 } from "ai/test";
import { startTask } from "sluice/testing";
import llm from "../../agents/llm.ts";
import {
  type Content,
  call,
  failure,
  names,
  type Result,
  result,
  says,
  start,
  text,
  toldBy,
  use,
} from "./support/model.ts";

afterEach(() => mock.restoreAll());

test("a task is the model's to answer", async () => {
  const asked = says([text("It is 42.")]);
  const t = await start({}, { instructions: "Be brief." });
  const outcome = await t.outcome();
  assert.deepEqual([outcome.state, outcome.text], ["TASK_STATE_COMPLETED", "It is 42."]);
  const { elapsed_ms, ...metrics } = outcome.metrics;
  assert.deepEqual(metrics, { turns: 1, tool_calls: 0, input_tokens: 100, output_tokens: 10 });
  assert.deepEqual(names(t), ["turn 1"]);
  const [first] = asked.doGenerateCalls;
  assert.deepEqual(
    first?.prompt.map(({ role, content }) => [role, content]),
    [
      ["system", "Be brief."],
      ["user", [{ type: "text", text: "What is 6 times 7?" }]],
    ],
  );
  assert.deepEqual(
    first?.tools?.map(({ name }) => name),
    ["get_time", "calculate", "ask_requester"],
  );
  assert.equal(first?.maxOutputTokens, 4_096);
});

test("each turn and each call of a tool is a step, and the model is told what came of it", async () => {
  const asked = says(
    [
      text("Let me see."),
      call("get_time", { timeZone: "Asia/Tokyo" }),
      call("calculate", { expression: "6*7" }),
    ],
    [call("calculate", { expression: "0.1 + 0.2" })],
    [text("It is 42.")],
  );
  const t = await start({ policy: { statusEverySec: 0 } });
  const { text: answer, metrics } = await t.outcome();
  assert.equal(answer, "It is 42.");
  assert.deepEqual(names(t), [
    "turn 1",
    "tool 1.1 get_time",
    "tool 1.2 calculate",
    "turn 2",
    "tool 2.1 calculate",
    "turn 3",
  ]);
  const { elapsed_ms, ...counted } = metrics;
  assert.deepEqual(counted, { turns: 3, tool_calls: 3, input_tokens: 300, output_tokens: 30 });
  const [time, ...numbers] = toldBy(asked.doGenerateCalls[2]);
  assert.match(
    JSON.stringify(time),
    /^\{"type":"text","value":"\d{4}-\d\d-\d\dT.*Z; in Asia\/Tokyo: .* at .*GMT\+9"/,
  );
  assert.deepEqual(numbers, [
    { type: "text", value: "42" },
    { type: "text", value: "0.3" },
  ]);
  const told = t.events.filter(({ kind }) => kind === "status").map(({ content }) => content);
  assert.deepEqual(told.slice(0, 2), ["turn 1 of at most 10", "turn 1: get_time"]);
});

test("a call that cannot be made is told to the model, which may do better", async () => {
  const asked = says(
    [
      call("rm", { path: "/" }),
      call("get_time", { timeZone: "Mars/Base" }),
      call("calculate", { expression: "6 x 7" }),
    ],
    [text("42")],
  );
  const t = await start();
  assert.equal((await t.outcome()).text, "42");
  assert.deepEqual(names(t), ["turn 1", "tool 1.1 calculate", "turn 2"]);
  const told = toldBy(asked.doGenerateCalls[1]).map((output) => JSON.stringify(output));
  assert.match(told[0] ?? "", /error-text.*unavailable tool 'rm'/);
  assert.match(told[1] ?? "", /error-text.*expected a time zone/);
  assert.match(told[2] ?? "", /error-text.*expected an operator, got “x”/);
});

test("at most 16 calls are made in a turn", async () => {
  const calls = (count: number) =>
    Array.from({ length: count }, (_, i) => call("calculate", { expression: `${i}` }, `c${i}`));
  for (const [count, refused] of [
    [16, 0],
    [17, 1],
  ] as const) {
    const asked = says(calls(count), [text("done")]);
    const t = await start();
    assert.equal((await t.outcome()).metrics.tool_calls, 16);
    const told = toldBy(asked.doGenerateCalls[1]).map((output) => JSON.stringify(output));
    assert.equal(told.length, count);
    assert.equal(told.filter((of) => of.includes("Not called")).length, refused);
  }
});

test("only the tools that the operator names are there", async () => {
  const asked = says([call("get_time", {})], [text("no idea")]);
  const t = await start({}, { tools: ["calculate"] });
  await t.outcome();
  assert.deepEqual(
    asked.doGenerateCalls[0]?.tools?.map(({ name }) => name),
    ["calculate"],
  );
  assert.deepEqual(names(t), ["turn 1", "turn 2"]);
});

test("the model asks the requester, and waits for the answer", async () => {
  const asked = says([call("ask_requester", { question: "Which six?" })], [text("42")]);
  const t = await start();
  await t.untilWaiting();
  assert.deepEqual(t.question, { kind: "ask", step: "tool 1.1 ask_requester", prompt: "Which six?" });
  await t.skip("20h");
  await t.answer("the usual one");
  assert.equal((await t.outcome()).text, "42");
  assert.deepEqual(toldBy(asked.doGenerateCalls[1]), [{ type: "text", value: "the usual one" }]);
  assert.equal(asked.doGenerateCalls.length, 2);
});

test("when nobody answers, the model goes on without", async () => {
  const asked = says([call("ask_requester", { question: "Which six?" })], [text("42, I guess")]);
  const t = await start({}, { answerWithinSec: 3_600 });
  await t.untilWaiting();
  await t.skip("1h");
  assert.equal((await t.outcome()).text, "42, I guess");
  assert.match(JSON.stringify(toldBy(asked.doGenerateCalls[1])), /error-text.*Nobody answered in time/);
});

test("what a requester answers at length is cut for the model", async () => {
  for (const [length, told] of [
    [8_000, "x".repeat(8_000)],
    [8_001, `${"x".repeat(8_000)}…`],
  ] as const) {
    const asked = says([call("ask_requester", { question: "?" })], [text("ok")]);
    const t = await start();
    await t.answer("x".repeat(length));
    await t.outcome();
    assert.deepEqual(toldBy(asked.doGenerateCalls[1]), [{ type: "text", value: told }]);
  }
});

test("without a model a task ends and says so", async () => {
  const t = await startTask(llm, { text: "hello" });
  await failure(t, /no model is configured \(see `model` of this agent in agents\.yaml\)/);
});

test("the last turn has to answer without a tool", async () => {
  const again = [call("calculate", { expression: "1" })];
  const asked = says(again, [text("enough")]);
  assert.equal((await (await start({}, { maxTurns: 2 })).outcome()).text, "enough");
  assert.deepEqual(
    asked.doGenerateCalls.map(({ toolChoice }) => toolChoice?.type),
    ["auto", "none"],
  );

  const stubborn = says(again, again, again);
  const t = await start({}, { maxTurns: 2 });
  await failure(t, /the model called a tool where it had to answer without one/);
  assert.equal(stubborn.doGenerateCalls.length, 2, "it is not tried again");
});

test("the turn that uses up the tokens is the last", async () => {
  const again = [call("calculate", { expression: "1" })];
  const spent = says(again, again, [text("42")]);
  await failure(
    await start({}, { maxTokens: 220 }),
    /there is no answer, and the budget is used up: 220 tokens in 2 turns \(maxTokens: 220\)/,
  );
  assert.equal(spent.doGenerateCalls.length, 2);

  const enough = says(again, again, [text("42")]);
  assert.equal((await (await start({}, { maxTokens: 221 })).outcome()).text, "42");
  assert.deepEqual(
    enough.doGenerateCalls.map(({ maxOutputTokens }) => maxOutputTokens),
    [221, 111, 1],
  );
});

test("where the provider does not count tokens, characters are counted", async () => {
  const none = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
  const usage = {
    inputTokens: none,
    outputTokens: { total: undefined, text: undefined, reasoning: undefined },
  };
  says({ content: [text("x".repeat(400))], usage });
  const { metrics } = await (await start()).outcome();
  assert.ok((metrics.output_tokens ?? 0) >= 100);
  assert.ok((metrics.input_tokens ?? 0) > 50);
});

test("an answer that is cut says so, and one that there is not is an error", async () => {
  const ends = (content: Content[], unified: Result["finishReason"]["unified"]) =>
    says({ content, finishReason: { unified, raw: undefined } });
  ends([text("It is 4")], "length");
  assert.match((await (await start()).outcome()).text, /^It is 4\n\n\(The answer was cut: maxOutputTokens/);
  ends([], "length");
  await failure(await start(), /maxOutputTokens were used up before there was an answer/);
  ends([text(" ")], "stop");
  await failure(await start(), /the model has ended without an answer/);
  ends([text("It is")], "content-filter");
  await failure(await start(), /the provider's filter holds the answer back/);
});

test("the transcript is bounded: old turns are left out", async () => {
  const asked = new MockLanguageModelV4({
    doGenerate: async () => result(turns.shift() ?? [text("done")]),
  });
  use(asked);
  const turns = [1, 2, 3].map((n) => [call("calculate", { expression: `${n}` }, `c${n}`)]);
  const t = await start({}, { maxTranscript: 400 });
  await t.outcome();
  const last = asked.doGenerateCalls.at(-1)?.prompt ?? [];
  assert.deepEqual(
    last.map(({ role }) => role),
    ["system", "user", "assistant", "tool"],
  );
  assert.match(JSON.stringify(last[1]), /2 earlier turns are left out here/);
});
