import * as z from "zod";
import { ApprovalDenied, FatalError, ReplyTimeout } from "../../shared/agents/errors.ts";
import type { Agent, Step, Task } from "../../shared/agents/index.ts";
import type { Choices } from "./choices.ts";

/** One thing that a generated handler does. */
export type Part =
  /** A step that takes so long and fails so often before it succeeds. */
  | {
      readonly kind: "run";
      readonly name: string;
      readonly ms: number;
      readonly failures: number;
      readonly attempts: number;
      readonly fatal: boolean;
      /** How many characters its result has. */
      readonly size: number;
    }
  /** Progress, told as often, with a pause after each. */
  | { readonly kind: "status"; readonly text: string; readonly times?: number }
  | { readonly kind: "artifact"; readonly name: string; readonly size: number }
  | { readonly kind: "sleep"; readonly name: string; readonly ms: number }
  | { readonly kind: "ask" | "approve"; readonly name: string; readonly timeoutMs: number | undefined }
  /** Another agent does it, by a program of its own. */
  | {
      readonly kind: "delegate";
      readonly name: string;
      readonly timeoutMs: number | undefined;
      readonly progress: boolean;
      readonly program: Program;
    }
  /** The handler waits for something that is no step. */
  | { readonly kind: "outside"; readonly ms: number }
  | { readonly kind: "each"; readonly branches: readonly (readonly Part[])[] };

/** A generated handler. */
export interface Program {
  readonly parts: readonly Part[];
  /** Whether it goes on after a step that has failed. */
  readonly catches: boolean;
  readonly throws: boolean;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
/** Longer than what stays in its item. */
const LARGE = 40_000;

/** The agent that others hand tasks on to. */
export const HELPER = "acme-helper";

/** Draws a handler of a few parts. A task that was handed on is not handed on again. */
export function drawProgram(choices: Choices, delegates = true): Program {
  let names = 0;
  const name = () => `s${++names}`;
  const draw = (count: number, depth: number): Part[] =>
    Array.from({ length: count }, () =>
      drawPart(choices, name, (inner) => draw(inner, depth + 1), { depth, delegates }),
    );
  const parts = draw(1 + choices.below(4), 0);
  return { parts, catches: choices.below(3) === 1, throws: choices.below(8) === 1 };
}

function drawPart(
  choices: Choices,
  name: () => string,
  inner: (count: number) => Part[],
  { depth, delegates }: { readonly depth: number; readonly delegates: boolean },
): Part {
  const kind = choices.of(
    "run",
    "run",
    "run",
    "status",
    "sleep",
    "ask",
    "approve",
    "artifact",
    "outside",
    "each",
    "delegate",
  );
  switch (kind) {
    case "run": {
      const ms = choices.of(0, 0, 0, 2 * SECOND, 30 * SECOND, 3 * MINUTE);
      const failures = choices.of(0, 0, 0, 0, 1, 2, 9);
      const size = choices.below(40) === 1 ? LARGE : 0;
      return { kind, name: name(), ms, failures, attempts: 3, fatal: choices.below(12) === 1, size };
    }
    case "status":
      return { kind, text: `at ${name()}`, times: choices.of(1, 1, 1, 8) };
    case "artifact":
      return { kind, name: name(), size: choices.below(20) === 1 ? LARGE : 10 };
    case "sleep":
      return { kind, name: name(), ms: choices.of(SECOND, 6 * SECOND, 90 * SECOND, 4 * MINUTE) };
    case "ask":
    case "approve":
      return { kind, name: name(), timeoutMs: choices.of(undefined, 10 * SECOND, 3 * MINUTE, 30 * MINUTE) };
    case "delegate":
      if (!delegates) return { kind: "status", text: "done here" };
      return {
        kind,
        name: name(),
        timeoutMs: choices.of(undefined, undefined, 20 * SECOND),
        progress: choices.below(2) === 1,
        program: drawProgram(choices, false),
      };
    case "outside":
      return { kind, ms: choices.of(5, 300, 2 * SECOND) };
    case "each":
      if (depth > 1) return { kind: "status", text: "deep enough" };
      return {
        kind,
        branches: Array.from({ length: 1 + choices.below(3) }, () => inner(1 + choices.below(2))),
      };
  }
}

/** What a program has of the process that runs it. */
export interface Host {
  /** Told of each call of a step's function. */
  readonly called: (taskId: string, step: string) => void;
  /** Told when the handler sees a step's result. */
  readonly seen: (taskId: string, step: string) => void;
  readonly pause: (ms: number) => Promise<void>;
  /** A text that nobody has made before. */
  readonly token: () => string;
}

/** What a handler has seen of its steps, which it returns: by name, in order. */
export const seen = z.array(z.tuple([z.string(), z.string()]));
type Seen = z.infer<typeof seen>;

/** How an error of a program's own begins. */
export const OWN_ERROR = "as it should:";

/** Made once, for each process has an agent of its own, and making a schema is dear. */
const anything = z.unknown();

/** An agent whose one skill runs the program that belongs to the task. */
export function agentOf(id: string, programOf: (taskId: string) => Program | undefined, host: Host): Agent {
  const run = async (task: Task, step: Step) => {
    const program = programOf(task.id);
    if (program === undefined) throw new Error(`no program for ${task.id}`);
    const found: Seen = [];
    await runParts(program, program.parts, { task, step, host, found, path: "" });
    if (program.throws) throw new Error(`${OWN_ERROR} the handler fails`);
    return JSON.stringify(found);
  };
  const skill = { name: "Task", description: "Runs a generated program", tags: [], input: anything, run };
  return {
    id,
    description: "A generated agent",
    version: "1.0.0",
    settings: anything,
    skills: { task: skill },
  };
}

interface At {
  readonly task: Task;
  readonly step: Step;
  readonly host: Host;
  readonly found: Seen;
  /** The branch. */
  readonly path: string;
}

async function runParts(program: Program, parts: readonly Part[], at: At): Promise<void> {
  for (const [index, part] of parts.entries()) {
    try {
      const value = await runPart(program, part, at, index);
      if (value !== undefined && "name" in part) at.found.push([at.path + part.name, value]);
    } catch (error) {
      if (!program.catches) throw error;
      if ("name" in part) at.found.push([at.path + part.name, `failed: ${String(error)}`]);
    }
  }
}

async function runPart(program: Program, part: Part, at: At, index: number): Promise<string | undefined> {
  const { step, host, task, path } = at;
  switch (part.kind) {
    case "run": {
      const value = await step.run(
        part.name,
        async ({ attempt }) => {
          host.called(task.id, path + part.name);
          if (part.ms > 0) await host.pause(part.ms);
          const Kind = part.fatal ? FatalError : Error;
          if (attempt <= part.failures) throw new Kind(`${OWN_ERROR} attempt ${attempt} fails`);
          return host.token().padEnd(part.size, "x");
        },
        { retry: { attempts: part.attempts } },
      );
      host.seen(task.id, path + part.name);
      return value;
    }
    case "status":
      step.status(part.text);
      for (let told = 1; told < (part.times ?? 1); told++) {
        await host.pause(10 * SECOND);
        step.status(`${part.text}, ${told}`);
      }
      return undefined;
    case "artifact":
      await step.artifact(part.name, "a".repeat(part.size));
      return undefined;
    case "sleep":
      await step.sleep(part.name, part.ms);
      return undefined;
    case "ask":
      return await step.ask(
        part.name,
        "Which?",
        part.timeoutMs === undefined ? {} : { timeout: part.timeoutMs },
      );
    case "approve":
      await step.approve(
        part.name,
        "May I?",
        part.timeoutMs === undefined ? {} : { timeout: part.timeoutMs },
      );
      return undefined;
    case "delegate": {
      const { text } = await step.delegate(part.name, {
        to: HELPER,
        message: "do it",
        ...(part.timeoutMs !== undefined && { timeout: part.timeoutMs }),
        ...(part.progress && { onStatus: (progress) => step.status(progress) }),
      });
      return text;
    }
    case "outside":
      await host.pause(part.ms);
      return undefined;
    case "each": {
      const keys = part.branches.map((_, branch) => `b${index}-${branch}`);
      await step.each(
        keys,
        (key) => key,
        async (key, inner) => {
          const parts = part.branches[keys.indexOf(key)] ?? [];
          await runParts(program, parts, { ...at, step: inner, path: `${path}${key}/` });
        },
      );
      return undefined;
    }
  }
}

/** The tasks that a program hands on: by the names of their steps. */
export function delegations(parts: readonly Part[], path = ""): { step: string; program: Program }[] {
  return parts.flatMap((part, index) => {
    if (part.kind === "delegate") return [{ step: path + part.name, program: part.program }];
    if (part.kind !== "each") return [];
    return part.branches.flatMap((inner, branch) => delegations(inner, `${path}b${index}-${branch}/`));
  });
}

/** Whether an error is one that a program may end with. */
export function isOwn(message: string): boolean {
  return [OWN_ERROR, ReplyTimeout.name, ApprovalDenied.name, HELPER].some((own) => message.includes(own));
}
