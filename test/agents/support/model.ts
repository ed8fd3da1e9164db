import assert from "node:assert/strict";
import { mock } from "node:test";
import { MockLanguageModelV4 } from "ai/test";
import { type StartOptions, startTask, type TestTask } from "sluice/testing";
import llm from "../../../agents/llm.ts";
import { providers } from "../../../agents/parts/model.ts";

export type Result = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;
export type CallOptions = MockLanguageModelV4["doGenerateCalls"][number];
export type Content = Result["content"][number];

export const model = { provider: "openai-compatible", baseUrl: "https://models.example/v1", name: "small" };
/** What the model says in each of its turns: content, an error, or what else a turn may be. */
export type Said = Content[] | Error | Partial<Result>;

export const text = (text: string): Content => ({ type: "text", text });
export const call = (toolName: string, input: unknown, id = toolName): Content => ({
  type: "tool-call",
  toolCallId: id,
  toolName,
  input: JSON.stringify(input),
});

export function result(said: Exclude<Said, Error>): Result {
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
export function use(model: MockLanguageModelV4): MockLanguageModelV4 {
  mock.restoreAll();
  mock.method(providers, "open", async () => model);
  return model;
}

/** A model that knows by what it has said already which turn it is, as a real one would. */
export function says(...turns: Said[]): MockLanguageModelV4 {
  const mocked = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const said = turns[prompt.filter(({ role }) => role === "assistant").length] ?? [text("?")];
      if (said instanceof Error) throw said;
      return result(said);
    },
  });
  return use(mocked);
}

export const start = (options: StartOptions = {}, own: object = {}) =>
  startTask(llm, { text: "What is 6 times 7?", settings: { model, ...own }, ...options });
export const names = (t: TestTask) => t.steps.map(({ name }) => name);

export async function failure(t: TestTask, message: RegExp): Promise<void> {
  const { state, error } = await t.outcome();
  assert.deepEqual([state, error?.code], ["TASK_STATE_FAILED", "internal"]);
  assert.match(error?.message ?? "", message);
}

/** What the model was told by tools before a turn. */
export function toldBy(asked: CallOptions | undefined): unknown[] {
  return (asked?.prompt ?? []).flatMap(({ role, content }) =>
    role === "tool" ? content.map((part) => ("output" in part ? part.output : part)) : [],
  );
}
