import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { input, settings } from "../../agents/llm.ts";
import { TOOLS } from "../../agents/parts/tools.ts";
import { model } from "./support/model.ts";

const KEY = "sk-very-secret-0123456789";

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
