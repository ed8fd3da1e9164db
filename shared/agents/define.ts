import * as z from "zod";
import type { Head } from "../tasks/items.ts";
import type { Outcome, Step, Task } from "./types.ts";

/** An agent's id, which is its file's name. */
export const agentName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,47}$/, "expected 1 to 48 of a-z, 0-9 and -, starting with a letter or digit");
const slug = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, "expected 1 to 64 of A-Z, a-z, 0-9, _ and -");

/** A schema for an agent's own settings in `agents.yaml`. */
export type Settings = z.ZodType;

/** One thing that an agent can do. Made by {@link skill}. */
export interface Skill<Input extends z.ZodType = z.ZodType, S = unknown> {
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly input: Input;
  // biome-ignore lint/suspicious/noConfusingVoidType: a handler that only gives out artifacts returns nothing.
  readonly run: (task: Task<z.output<Input>, S>, step: Step) => Outcome | void | Promise<Outcome | void>;
}

// biome-ignore lint/suspicious/noExplicitAny: each skill has input and settings of its own; zod guards them at run time.
type AnySkill = Skill<any, any>;

/** A hosted agent. Made by {@link defineAgent}; the default export of `agents/<id>.ts`. */
export interface Agent {
  readonly id: string;
  readonly description: string;
  readonly version: string;
  readonly settings: Settings;
  readonly skills: Readonly<Record<string, AnySkill>>;
}

/** An agent that a function works for, and where it has it from. */
export interface AgentSource {
  readonly id: string;
  /** @param head of the task that it is loaded for; an agent that has a file is the same for each */
  readonly load: (head: Head) => Promise<Agent>;
}

/**
 * Describes a skill. `input` decides what `task.input` is: for a string schema the message's text, otherwise its
 * first data part, or its text parsed as JSON (docs/agents.md).
 *
 * @param of.settings the agent's schema of settings, where `run` reads them: it types `task.settings`
 */
export function skill<Input extends z.ZodType, S extends Settings = z.ZodUnknown>(of: {
  name: string;
  description: string;
  tags?: readonly string[];
  settings?: S;
  input: Input;
  run: Skill<Input, z.output<S>>["run"];
}): Skill<Input, z.output<S>> {
  const { name, description, tags = [], input, run } = of;
  return { name, description, tags, input, run };
}

/**
 * Describes an agent, one per file under `agents/`. The keys of `skills` are the slugs by which peers ask for them.
 *
 * @throws z.ZodError when the id or a slug is none that peers would accept, or when there is no skill
 */
export function defineAgent<S extends Settings = z.ZodUnknown>(of: {
  id: string;
  description: string;
  version?: string;
  settings?: S;
  // biome-ignore lint/suspicious/noExplicitAny: a skill's input is its own; what it wants of the settings is checked.
  skills: Record<string, Skill<any, z.output<S>>>;
}): Agent {
  z.object({ id: agentName, skills: z.record(slug, z.unknown()) }).parse(of);
  if (Object.keys(of.skills).length === 0)
    throw new TypeError(`agent ${of.id}: skills: expected at least one skill, got none`);
  return { ...of, version: of.version ?? "1.0.0", settings: of.settings ?? z.strictObject({}) };
}
