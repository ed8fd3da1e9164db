import type { ModelMessage } from "ai";
import { defineAgent, FatalError, type Step, skill } from "sluice";
import * as z from "zod";
import type { Turn } from "./parts/model.ts";
import { modelSettings } from "./parts/model-settings.ts";
import { TOOLS, type ToolResult, toolName } from "./parts/tools.ts";
import { messagesOf } from "./parts/transcript.ts";

/** Providers say “too many requests” for up to a minute. */
const RETRY = { attempts: 6, initial: "2s", max: "1m" } as const;
/** How many tools the model may call in one turn; it is told of the others that they were not called. */
const MAX_CALLS = 16;
const MAX_TASK = 100_000;

export const settings = z.strictObject({
  /** Without one, no task can be done. */
  model: modelSettings.optional(),
  instructions: z
    .string()
    .min(1)
    .max(20_000)
    .default(
      "You work on a task that another program or a person has given you. Use the tools where they help. Your answer is the result of the task: give it without asking back.",
    ),
  /** The tools that the model may call. */
  tools: z.array(toolName).default(toolName.options),
  /** How often the model is asked; the last time it has to answer without a tool. */
  maxTurns: z.int().min(1).max(100).default(10),
  /** How many tokens all turns together may take, in and out; the turn that crosses it is the last. */
  maxTokens: z.int().min(1).max(100_000_000).default(200_000),
  /** How many tokens one turn may put out. */
  maxOutputTokens: z.int().min(1).max(1_000_000).default(4_096),
  /** How much of the conversation the model reads again, in characters; the oldest turns are left out. */
  maxTranscript: z.int().min(1).max(10_000_000).default(200_000),
  /** How long one attempt to get an answer may take. */
  turnWithinSec: z.number().positive().max(840).default(300),
  /** How long the requester has to answer the model's question. */
  answerWithinSec: z.int().min(1).max(2_592_000).default(86_400),
});
type Settings = z.output<typeof settings>;

export const input = z
  .string()
  .trim()
  .min(1, "expected a task for the model")
  .max(MAX_TASK, `expected at most ${MAX_TASK} characters`);

/** What was used so far, for the result's metrics. */
interface Used {
  turns: number;
  tool_calls: number;
  input_tokens: number;
  output_tokens: number;
}

const tokensOf = ({ input_tokens, output_tokens }: Used) => input_tokens + output_tokens;

/** @throws FatalError when there may be no further turn */
function checkBudget(used: Used, { maxTurns, maxTokens }: Settings): void {
  const taken = `${tokensOf(used)} tokens in ${used.turns} turns`;
  if (tokensOf(used) >= maxTokens)
    throw new FatalError(`there is no answer, and the budget is used up: ${taken} (maxTokens: ${maxTokens})`);
  if (used.turns >= maxTurns)
    throw new FatalError(`there is no answer, and no turn is left: ${taken} (maxTurns: ${maxTurns})`);
}

/** @throws FatalError when the model's last turn is no answer */
function answerOf({ text, finish }: Turn): string {
  if (finish === "content-filter") throw new FatalError("the provider's filter holds the answer back");
  if (finish === "length" && text.trim() === "")
    throw new FatalError("maxOutputTokens were used up before there was an answer");
  if (text.trim() === "") throw new FatalError("the model has ended without an answer");
  return finish === "length" ? `${text}\n\n(The answer was cut: maxOutputTokens are used up.)` : text;
}

/** One turn of the model: a step, so that no answer is paid for twice. */
async function take(
  turns: readonly (readonly ModelMessage[])[],
  task: string,
  used: Used,
  settings: Settings,
  step: Step,
): Promise<Turn> {
  const { model, instructions, tools, maxTurns, maxTokens, maxOutputTokens, maxTranscript } = settings;
  if (model === undefined)
    throw new FatalError("no model is configured (see `model` of this agent in agents.yaml)");
  checkBudget(used, settings);
  const number = used.turns + 1;
  step.status(`turn ${number} of at most ${maxTurns}`);
  return await step.run(
    `turn ${number}`,
    async ({ signal }) => {
      const { ask } = await import("./parts/model.ts");
      return await ask({
        model,
        instructions,
        messages: messagesOf({ task, turns }, maxTranscript),
        tools,
        last: number === maxTurns,
        maxOutputTokens: Math.min(maxOutputTokens, maxTokens - tokensOf(used)),
        signal,
        warn: (warnings) => step.log("the provider warns", { warnings }),
      });
    },
    { retry: RETRY, timeout: settings.turnWithinSec * 1_000 },
  );
}

/** Makes the calls of a turn, one after the other: each is a step. */
async function callTools(
  { calls }: Turn,
  turn: number,
  { answerWithinSec }: Settings,
  step: Step,
): Promise<ModelMessage[]> {
  const results: { call: Turn["calls"][number]; result: ToolResult }[] = [];
  for (const [index, call] of calls.entries()) {
    const name = `tool ${turn}.${index + 1} ${call.tool}`;
    step.status(`turn ${turn}: ${call.tool}`);
    const result =
      index < MAX_CALLS
        ? await TOOLS[call.tool].call(call.input, { name, step, answerWithinMs: answerWithinSec * 1_000 })
        : { ok: false, text: `Not called: at most ${MAX_CALLS} calls are made in a turn.` };
    results.push({ call, result });
  }
  if (results.length === 0) return [];
  return [
    {
      role: "tool",
      content: results.map(({ call, result: { ok, text } }) => ({
        type: "tool-result",
        toolCallId: call.id,
        toolName: call.tool,
        output: { type: ok ? "text" : "error-text", value: text },
      })),
    },
  ];
}

export default defineAgent({
  id: "llm",
  description: "Lets a language model work on a task, with a few tools.",
  settings,
  skills: {
    task: skill({
      name: "Task",
      description: "Takes a task in words and returns the model's answer.",
      tags: ["text", "llm"],
      settings,
      input,
      async run(task, step) {
        const used: Used = { turns: 0, tool_calls: 0, input_tokens: 0, output_tokens: 0 };
        const turns: (readonly ModelMessage[])[] = [];
        for (;;) {
          const turn = await take(turns, task.input, used, task.settings, step);
          used.turns++;
          used.input_tokens += turn.inputTokens;
          used.output_tokens += turn.outputTokens;
          if (!turn.called) return { text: answerOf(turn), metrics: { ...used } };

          const results = await callTools(turn, used.turns, task.settings, step);
          used.tool_calls += Math.min(turn.calls.length, MAX_CALLS);
          turns.push([...turn.messages, ...results]);
        }
      },
    }),
  },
});
