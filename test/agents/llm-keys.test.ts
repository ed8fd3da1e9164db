import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, mock, test } from "node:test";
import { failure, model, start } from "./support/model.ts";

afterEach(() => mock.restoreAll());

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
