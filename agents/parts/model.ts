/**
 * The AI SDK's side of the agent `llm`. It is imported where a model is asked, and nowhere else: functions that start
 * without a task for it do not load the SDK.
 */
import {
  APICallError,
  type FinishReason,
  generateText,
  type LanguageModel,
  type ModelMessage,
  ToolChoiceViolationError,
  type ToolSet,
  tool,
} from "ai";
import { FatalError } from "sluice";
import type { ModelSettings } from "./model-settings.ts";
import { readSecret } from "./secret.ts";
import { TOOLS, type ToolName } from "./tools.ts";

/** How much of a provider's message stands in an error, in characters. */
const MAX_MESSAGE = 500;
/** Where a provider does not say how many tokens it took: about what they are in English. */
const CHARACTERS_PER_TOKEN = 4;

/** The provider has not answered as it should; another attempt may help. */
class ProviderError extends Error {
  override readonly name = "ProviderError";
}

/** The providers; a test gives its own model. */
export const providers = {
  async open({ provider, baseUrl: baseURL, name }: ModelSettings, apiKey?: string): Promise<LanguageModel> {
    const options = { baseURL, ...(apiKey !== undefined && { apiKey }) };
    if (provider === "anthropic") return (await import("@ai-sdk/anthropic")).createAnthropic(options)(name);
    // Its other interface keeps the conversation at the provider; here the steps do.
    if (provider === "openai") return (await import("@ai-sdk/openai")).createOpenAI(options).chat(name);
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    return createOpenAICompatible({ ...options, name: provider }).chatModel(name);
  },
};

/** What a model is asked in one turn. */
export interface Question {
  readonly model: ModelSettings;
  readonly instructions: string;
  readonly messages: ModelMessage[];
  readonly tools: readonly ToolName[];
  /** Whether it must answer now, without a tool. */
  readonly last: boolean;
  readonly maxOutputTokens: number;
  readonly signal: AbortSignal;
  /** Told what the provider does not support of this. */
  readonly warn: (warnings: readonly unknown[]) => void;
}

/** What came of a turn, as JSON: it is the result of a step. */
export interface Turn {
  readonly text: string;
  readonly finish: FinishReason;
  /** The calls of tools that are to be made. */
  readonly calls: readonly { readonly id: string; readonly tool: ToolName; readonly input: unknown }[];
  /** Whether the model called a tool at all, be it one that there is not. */
  readonly called: boolean;
  /** The model's message, and what it is told of calls that cannot be made. */
  readonly messages: readonly ModelMessage[];
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/**
 * Asks the model for its next turn. Its calls of tools come back unmade, and nothing is tried again: both are steps of
 * their own.
 *
 * @throws FatalError when another attempt is of no use; no error has the key in it
 */
export async function ask(question: Question): Promise<Turn> {
  const { model, instructions, messages, tools, last, maxOutputTokens, signal, warn } = question;
  const apiKey = model.apiKey === undefined ? undefined : await readSecret(model.apiKey);
  globalThis.AI_SDK_LOG_WARNINGS = ({ warnings }) => warn(warnings);
  try {
    const { text, finishReason, finalStep, responseMessages, usage } = await generateText({
      model: await providers.open(model, apiKey),
      instructions,
      messages,
      tools: declared(tools),
      toolChoice: last ? "none" : "auto",
      maxOutputTokens,
      maxRetries: 0,
      abortSignal: signal,
    });
    if (finishReason === "error" || finishReason === "interrupted")
      throw new ProviderError(`the provider broke off the answer (${finishReason})`);
    const calls = finalStep.toolCalls.filter(({ providerExecuted }) => providerExecuted !== true);
    return {
      text,
      finish: finishReason,
      calls: calls
        .filter((call) => call.invalid !== true)
        .map(({ toolCallId, toolName, input }) => ({ id: toolCallId, tool: known(toolName), input })),
      called: calls.length > 0,
      messages: responseMessages,
      inputTokens: usage.inputTokens ?? tokensOf([instructions, messages]),
      outputTokens: usage.outputTokens ?? tokensOf(responseMessages),
    };
  } catch (error) {
    throw failure(error, apiKey);
  }
}

function declared(names: readonly ToolName[]): ToolSet {
  return Object.fromEntries(
    names.map((name) => [
      name,
      tool({ description: TOOLS[name].description, inputSchema: TOOLS[name].input }),
    ]),
  );
}

/** A call that the SDK holds valid is one of a tool that was declared. */
function known(name: string): ToolName {
  if (Object.hasOwn(TOOLS, name)) return name as ToolName; // Its own key, as the line says.
  throw new FatalError(`the model calls ${JSON.stringify(name)}, which is no tool of this agent`);
}

function tokensOf(value: unknown): number {
  return Math.ceil(JSON.stringify(value).length / CHARACTERS_PER_TOKEN);
}

/** What is said of an error: an SDK's own carries request, answer and headers along. */
function failure(error: unknown, apiKey: string | undefined): Error {
  if (error instanceof FatalError) return error;
  if (ToolChoiceViolationError.isInstance(error))
    return new FatalError("the model called a tool where it had to answer without one");
  const message = error instanceof Error ? error.message : String(error);
  const open = apiKey === undefined ? message : message.replaceAll(apiKey, "[key]");
  const told = open.length > MAX_MESSAGE ? `${open.slice(0, MAX_MESSAGE)}…` : open;
  if (!APICallError.isInstance(error) || error.statusCode === undefined) return new ProviderError(told);
  const { statusCode: status, isRetryable } = error;
  // Providers quote parts of a key that they do not know.
  if (status === 401 || status === 403)
    return new FatalError(`the provider refuses access (${status}): look at \`model.apiKey\``);
  const final = status >= 400 && status < 500 && !isRetryable;
  return new (final ? FatalError : ProviderError)(`the provider answered ${status}${told && `: ${told}`}`);
}
