import type { ZodType } from "zod";
import type { ApproveOptions, AskOptions } from "../../agents/types.ts";
import { readMessage } from "../../wire/index.ts";
import * as z from "../../zod.ts";
import { milliseconds } from "../duration.ts";
import type { Done, Engine } from "../engine.ts";
import { StepOptionError } from "../errors.ts";
import { readInput } from "../input.ts";
import { fromJson } from "../json.ts";
import { MAX_QUESTION_MS, type Question, questionStep, type Read } from "./question.ts";

/** The longest prompt, in characters: it must fit into an event, with the reason why it is put again. */
export const MAX_PROMPT = 100_000;

const approval = z.object({ approve: z.boolean(), denyReason: z.optional(z.string()) });
/** What an answer is without a schema. */
const anyText = z.string().check(z.minLength(1, "expected a text"));
/** A reply as peers send it: what was typed, under `input` (docs/wire.md §9). */
const wrapped = z.strictObject({ input: z.unknown() });

/** Asks for an answer that fits the schema; a text where none is given. */
export function askStep(
  engine: Engine,
  id: string,
  prompt: string,
  { schema, timeout }: AskOptions<ZodType> = {},
): Promise<Done> {
  const read = async (text: string): Promise<Read> => {
    const a2a = fromJson(text);
    const reply = wrapped.safeParse(a2a);
    const input = await readInput(schema ?? anyText, readMessage(reply.success ? reply.data.input : a2a));
    if (input.ok) return { kind: "value", value: input.value };
    const field = input.field === "" ? "" : `${input.field}: `;
    return { kind: "unfit", reason: `That answer does not fit: ${field}${input.problem}` };
  };
  const state = "TASK_STATE_INPUT_REQUIRED";
  return questionStep(engine, id, { kind: "ask", state, read, ...questionOf(id, prompt, timeout) });
}

/** Asks for approval; a denial is an error. */
export function approveStep(
  engine: Engine,
  id: string,
  prompt: string,
  { timeout, onTimeout = "throw", by }: ApproveOptions = {},
): Promise<Done> {
  const read = async (text: string): Promise<Read> => {
    const answer = approval.safeParse(fromJson(text));
    if (!answer.success) return { kind: "unfit", reason: "expected an explicit approval or denial" };
    const { approve, denyReason } = answer.data;
    if (approve) return { kind: "value", value: undefined };
    const message = denyReason === undefined || denyReason === "" ? "approval was denied" : denyReason;
    return { kind: "error", error: { name: "ApprovalDenied", message } };
  };
  const state = "TASK_STATE_AUTH_REQUIRED";
  const { unanswered: late, ...question } = questionOf(id, prompt, timeout);
  const unanswered = onTimeout === "deny" ? { ...late, name: "ApprovalDenied" } : late;
  const silence = onTimeout === "approve" ? "approves" : "fails";
  const asks = { kind: "approve", state, read, ...question, unanswered, silence } as const;
  return questionStep(engine, id, by === "operator" ? { ...asks, by } : asks);
}

function questionOf(
  id: string,
  prompt: string,
  timeout: AskOptions<ZodType>["timeout"],
): Pick<Question, "prompt" | "timeoutMs" | "unanswered"> {
  const step = `step ${JSON.stringify(id)}`;
  if (typeof prompt !== "string" || prompt === "" || prompt.length > MAX_PROMPT)
    throw new StepOptionError(`the prompt of ${step}: expected a text of 1 to ${MAX_PROMPT} characters`);
  const timeoutMs = timeout === undefined ? MAX_QUESTION_MS : milliseconds(timeout, `timeout of ${step}`);
  const seconds = Math.min(timeoutMs, MAX_QUESTION_MS) / 1_000;
  return {
    prompt,
    timeoutMs,
    unanswered: { name: "ReplyTimeout", message: `${step}: nobody answered within ${seconds} s` },
  };
}
