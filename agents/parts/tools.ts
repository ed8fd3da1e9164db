import { ReplyTimeout, type Step } from "sluice";
import * as z from "zod";
import { CalculatorError, calculate, MAX_EXPRESSION, WORDS } from "./calculator.ts";

/** How much of a tool's result the model gets to read, in characters. */
export const MAX_RESULT = 8_000;
const MAX_QUESTION = 2_000;

/** What a tool gives back; when it is not `ok` the text says why, for the model to do better. */
export interface ToolResult {
  readonly ok: boolean;
  readonly text: string;
}

/** A call of a tool: each is one step, under this name. */
interface Call {
  readonly name: string;
  readonly step: Step;
  readonly answerWithinMs: number;
}

interface Declared<Input extends z.ZodType> {
  /** What the model reads. */
  readonly description: string;
  readonly input: Input;
  readonly run: (input: z.output<Input>, call: Call) => Promise<ToolResult>;
}

/** A tool that a model may call. */
export interface Tool {
  readonly description: string;
  readonly input: z.ZodType;
  /** Calls it; an input that is not what it was declared to be is a result like any other. */
  readonly call: (input: unknown, call: Call) => Promise<ToolResult>;
}

function declare<Input extends z.ZodType>({ description, input, run }: Declared<Input>): Tool {
  return {
    description,
    input,
    call: async (given, call) => {
      const parsed = input.safeParse(given);
      return parsed.success ? await run(parsed.data, call) : failed(z.prettifyError(parsed.error));
    },
  };
}

const done = (text: string): ToolResult => ({ ok: true, text: cut(text) });
const failed = (text: string): ToolResult => ({ ok: false, text: cut(text) });
const cut = (text: string) => (text.length > MAX_RESULT ? `${text.slice(0, MAX_RESULT)}…` : text);

const timeZone = z
  .string()
  .max(100)
  .refine(isTimeZone, "expected a time zone of the IANA database, such as Europe/Oslo");

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

/** Nothing here reads, changes or reaches anything but the requester. */
export const TOOLS = {
  get_time: declare({
    description: "The current date and time, in UTC and in a time zone.",
    input: z.object({ timeZone: timeZone.default("UTC") }),
    run: ({ timeZone }, { name, step }) =>
      step.run(name, () => {
        const now = new Date();
        const local = now.toLocaleString("en-GB", { timeZone, dateStyle: "full", timeStyle: "long" });
        return done(`${now.toISOString()}; in ${timeZone}: ${local}`);
      }),
  }),
  calculate: declare({
    description: `Calculates: numbers, + - * / %, powers (^), parentheses, ${WORDS.join(", ")}; angles in radians.`,
    input: z.object({ expression: z.string().min(1).max(MAX_EXPRESSION) }),
    run: ({ expression }, { name, step }) =>
      step.run(name, () => {
        try {
          // Without what binary fractions add in the last places.
          return done(String(Number(calculate(expression).toPrecision(15))));
        } catch (error) {
          if (error instanceof CalculatorError) return failed(error.message);
          throw error;
        }
      }),
  }),
  ask_requester: declare({
    description:
      "Asks whoever gave the task, and waits for the answer, perhaps for days. Only for what cannot be known otherwise.",
    input: z.object({ question: z.string().trim().min(1).max(MAX_QUESTION) }),
    run: async ({ question }, { name, step, answerWithinMs }) => {
      try {
        return done(await step.ask(name, question, { timeout: answerWithinMs }));
      } catch (error) {
        if (error instanceof ReplyTimeout) return failed("Nobody answered in time. Go on without an answer.");
        throw error;
      }
    },
  }),
} satisfies Record<string, Tool>;

export type ToolName = keyof typeof TOOLS;
export const toolName = z.enum(["get_time", "calculate", "ask_requester"] satisfies ToolName[]);
