import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, mock, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { APICallError } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { type StartOptions, startTask, type TestTask } from "sluice/testing";
import llm, { input, settings } from "../../agents/llm.ts";
import { providers } from "../../agents/parts/model.ts";
import { TOOLS } from "../../agents/parts/tools.ts";
import { dieAtEachWrite } from "../support/kill-points.ts";

type Result = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;
type CallOptions = MockLanguageModelV4["doGenerateCalls"][number];
type Content = Result["content"][number];

const model = { provider: "openai-compatible", baseUrl: "https://models.example/v1", name: "small" };
/** What the model says in each of its turns: content, an error, or what else a turn may be. */
type Said = Content[] | Error | Partial<Result>;

const text = (text: string): Content => ({ type: "text", text });
const call = (toolName: string, input: unknown, id = toolName): Content => ({
  type: "tool-call",
  toolCallId: id,
  toolName,
  input: JSON.stringify(input),
});

function result(said: Exclude<Said, Error>): Result {
  const given = Array.isArray(said) ? { content: said } : said;
  const calls = given.content?.some(({ type }) => type === "tool-call") === true;
  return {
    content: [],
    finishReason: { unified: calls ? "tool-calls" : "stop", raw: undefined },
    usage: {
      inputTokens: { total: 100, noCache: 100, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: 10, text: 10, reasoning: undefined },
    },
    warnings: [],
    ...given,
  };
}

/** Makes this the model that is asked. */
function use(model: MockLanguageModelV4): MockLanguageModelV4 {
  mock.restoreAll();
  mock.method(providers, "open", async () => model);
  return model;
}

/** A model that knows by what it has said already which turn it is, as a real one would. */
function says(...turns: Said[]): MockLanguageModelV4 {
  const mocked = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const said = turns[prompt.filter(({ role }) => role === "assistant").length] ?? [text("?")];
      if (said instanceof Error) throw said;
      return result(said);
    },
  });
  return use(mocked);
}

afterEach(() => mock.restoreAll());

const start = (options: StartOptions = {}, own: object = {}) =>
  startTask(llm, { text: "What is 6 times 7?", settings: { model, ...own }, ...options });
const names = (t: TestTask) => t.steps.map(({ name }) => name);

async function failure(t: TestTask, message: RegExp): Promise<void> {
  const { state, error } = await t.outcome();
  assert.deepEqual([state, error?.code], ["TASK_STATE_FAILED", "internal"]);
  assert.match(error?.message ?? "", message);
}

/** What the model was told by tools before a turn. */
function toldBy(asked: CallOptions | undefined): unknown[] {
  return (asked?.prompt ?? []).flatMap(({ role, content }) =>
    role === "tool" ? content.map((part) => ("output" in part ? part.output : part)) : [],
  );
}

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

const KEY = "sk-very-secret-0123456789";
const folder = mkdtempSync(join(tmpdir(), "sluice-llm-"));
after(() => rmSync(folder, { recursive: true }));
const keyFile = join(folder, "key");
writeFileSync(keyFile, `${KEY}\n`);

/** What an OpenAI-compatible server, and Anthropic's, answer. */
const CHAT = {
  id: "1",
  created: 1,
  model: "small",
  choices: [{ index: 0, message: { role: "assistant", content: "It is 42." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
};
const MESSAGES = {
  type: "message",
  id: "1",
  model: "small",
  role: "assistant",
  content: [{ type: "text", text: "It is 42." }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 7, output_tokens: 3 },
};
const PROVIDERS = [
  ["openai-compatible", "/chat/completions", "authorization", `Bearer ${KEY}`, CHAT],
  ["openai", "/chat/completions", "authorization", `Bearer ${KEY}`, CHAT],
  ["anthropic", "/messages", "x-api-key", KEY, MESSAGES],
] as const;

for (const [provider, path, header, value, answer] of PROVIDERS)
  test(`${provider}: the key goes to the provider, and nowhere else`, async () => {
    const own = { model: { ...model, provider, apiKey: `file:${keyFile}` } };
    const seen: { url: string; key: string | null; body: string }[] = [];
    const answers = [
      // A server that quotes what it got, as some do.
      () =>
        Response.json(
          { type: "error", error: { type: "x", message: `busy; your key is ${KEY}` } },
          { status: 503 },
        ),
      () => Response.json(answer),
    ];
    mock.method(globalThis, "fetch", async (url: string | URL, init: RequestInit = {}) => {
      seen.push({ url: String(url), key: new Headers(init.headers).get(header), body: String(init.body) });
      return (answers.shift() ?? (() => Response.json({}, { status: 500 })))();
    });
    const t = await start({}, own);
    const { text: said, metrics } = await t.outcome();
    assert.equal(said, "It is 42.");
    assert.deepEqual([metrics.input_tokens, metrics.output_tokens], [7, 3]);
    assert.deepEqual(
      seen.map(({ url, key }) => [url, key]),
      Array(2).fill([`https://models.example/v1${path}`, value]),
    );
    assert.match(seen[0]?.body ?? "", /"name":"calculate"/);
    const everything = JSON.stringify([t.events, t.steps, t.log, seen.map(({ body }) => body)]);
    assert.match(everything, /"errorName":"ProviderError"/);
    assert.equal(everything.includes(KEY), false);
  });

test("a key that a server refuses, or quotes in a refusal, is told to nobody", async () => {
  for (const status of [400, 401, 403, 500]) {
    mock.restoreAll();
    mock.method(globalThis, "fetch", async () =>
      Response.json({ error: { message: `bad key ${KEY}` } }, { status }),
    );
    const t = await start({}, { model: { ...model, apiKey: `file:${keyFile}` } });
    const { state, error } = await t.outcome();
    assert.equal(state, "TASK_STATE_FAILED");
    assert.match(error?.message ?? "", new RegExp(String(status)));
    assert.equal(JSON.stringify([t.events, t.steps, t.log]).includes(KEY), false);
  }
});

test("a key may be in the environment; one that is not there, or is none, is named and not shown", async () => {
  const fetched = mock.method(globalThis, "fetch", async (_: unknown, init: RequestInit = {}) => {
    assert.equal(new Headers(init.headers).get("authorization"), `Bearer ${KEY}`);
    return Response.json(CHAT);
  });
  process.env.LLM_TEST_KEY = KEY;
  const from = (apiKey: string) => start({}, { model: { ...model, apiKey } });
  assert.equal((await (await from("env:LLM_TEST_KEY")).outcome()).text, "It is 42.");
  process.env.LLM_TEST_KEY = "sk with\nlines";
  const broken = await from("env:LLM_TEST_KEY");
  await failure(broken, /env:LLM_TEST_KEY: expected a secret of printable ASCII/);
  assert.equal(JSON.stringify([broken.events, broken.log]).includes("sk with"), false);
  delete process.env.LLM_TEST_KEY;
  await failure(await from("env:LLM_TEST_KEY"), /env:LLM_TEST_KEY: the environment variable is not set/);
  await failure(await from("file:/nowhere/key"), /file:\/nowhere\/key: the file cannot be read/);
  assert.equal(fetched.mock.callCount(), 1);
});

test("what is asked for, and what the operator sets, at the bounds", () => {
  assert.equal(input.safeParse("x".repeat(100_000)).success, true);
  assert.equal(input.safeParse("x".repeat(100_001)).success, false);
  assert.equal(input.safeParse("  ").success, false);
  const fits = (of: object) => settings.safeParse(of).success;
  assert.deepEqual(
    { ...settings.parse({}), instructions: "" },
    {
      instructions: "",
      tools: ["get_time", "calculate", "ask_requester"],
      maxTurns: 10,
      maxTokens: 200_000,
      maxOutputTokens: 4_096,
      maxTranscript: 200_000,
      turnWithinSec: 300,
      answerWithinSec: 86_400,
    },
  );
  for (const [field, max] of [
    ["maxTurns", 100],
    ["maxTokens", 100_000_000],
    ["maxOutputTokens", 1_000_000],
    ["maxTranscript", 10_000_000],
    ["turnWithinSec", 840],
    ["answerWithinSec", 2_592_000],
  ] as const) {
    assert.deepEqual(
      [1, max, 0, max + 1].map((value) => fits({ [field]: value })),
      [true, true, false, false],
      field,
    );
  }
  assert.equal(fits({ tools: [] }), true);
  assert.equal(fits({ tools: ["rm"] }), false);
  assert.equal(fits({ instructions: "x".repeat(20_000) }), true);
  assert.equal(fits({ instructions: "x".repeat(20_001) }), false);
});

test("what the model may ask of its tools, at the bounds", () => {
  const fits = (tool: keyof typeof TOOLS, of: object) => TOOLS[tool].input.safeParse(of).success;
  assert.equal(fits("ask_requester", { question: "x".repeat(2_000) }), true);
  assert.equal(fits("ask_requester", { question: "x".repeat(2_001) }), false);
  assert.equal(fits("ask_requester", { question: " " }), false);
  assert.equal(fits("calculate", { expression: "1".repeat(500) }), true);
  assert.equal(fits("calculate", { expression: "1".repeat(501) }), false);
  assert.equal(fits("get_time", {}), true);
  assert.equal(fits("get_time", { timeZone: "" }), false);
});

test("a model is a provider, a place and a name, and never a key", () => {
  const fits = (of: object) => settings.safeParse({ model: of }).success;
  assert.equal(fits(model), true);
  assert.equal(fits({ ...model, apiKey: "env:KEY" }), true);
  assert.equal(fits({ provider: "anthropic", name: "large", apiKey: "file:/run/key" }), true);
  for (const wrong of [
    { ...model, apiKey: KEY },
    { ...model, apiKey: "file:relative" },
    { ...model, baseUrl: undefined },
    { ...model, baseUrl: "https://user:pass@models.example/v1" },
    { ...model, baseUrl: "https://models.example/v1?key=1" },
    { ...model, baseUrl: "ftp://models.example" },
    { ...model, provider: "oracle" },
    { provider: "openai", name: "large" },
  ])
    assert.equal(fits(wrong), false, JSON.stringify(wrong));
});

test("the SDK is loaded where a model is asked, and not with the agent", async () => {
  const agent = pathToFileURL(join(import.meta.dirname, "../../agents/llm.ts")).href;
  const script = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
    await import(${JSON.stringify(agent)});
    console.log(JSON.stringify(loaded));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  assert.match(stdout, /agents\/parts\/tools\.ts/);
  assert.doesNotMatch(stdout, /node_modules\/(?:ai|@ai-sdk)\//);
});
