import { existsSync, readdirSync } from "node:fs";
import { type ResolveHookSync, registerHooks } from "node:module";
import { basename, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import * as z from "zod";
import type { Agent } from "../agents/define.ts";
import { ConfigError, expectation, findingsOf, pathText } from "./config-error.ts";

/** The files of a folder that hold an agent each, in the order of their names, as absolute paths. */
export function agentFiles(folder: string): string[] {
  const dir = resolve(folder);
  if (!existsSync(dir)) throw new ConfigError(`${folder}: expected a folder of agents, there is none`);
  return readdirSync(dir)
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts") && !name.endsWith(".test.ts"))
    .sort()
    .map((name) => join(dir, name));
}

/**
 * What is said of files beside agents that may be meant for ones and are passed over, since their names end otherwise; of
 * one that lies beside an agent of the same name, as a compiler may have put it there, nothing.
 */
export function agentNotes(folder: string): string[] {
  const agents = new Set(agentFiles(folder));
  return readdirSync(folder)
    .filter((name) => /^[^.]+\.([mc]?js|[mc]ts|[jt]sx)$/.test(name))
    .sort()
    .map((name) => join(resolve(folder), name))
    .filter((path) => !agents.has(path.replace(/\.\w+$/, ".ts")))
    .map(
      (path) => `${path}: is not loaded: expected an agent's file whose name ends in .ts (docs/agents.md)`,
    );
}

/**
 * Imports the agents of a folder: the default export of each file, made by `defineAgent`, whose id is the file's name.
 *
 * @throws ConfigError that names the file and what was expected of it
 */
export async function loadAgents(folder: string): Promise<Agent[]> {
  const agents: Agent[] = [];
  for (const path of agentFiles(folder)) agents.push(await loadAgent(path));
  return agents;
}

const schema = z.custom<z.ZodType>((value) => value instanceof z.ZodType, "expected a zod schema");
const agentShape = z.object({
  id: z.string(),
  description: z.string(),
  version: z.string(),
  settings: schema,
  skills: z.record(
    z.string(),
    z.object({
      name: z.string(),
      description: z.string(),
      tags: z.array(z.string()),
      input: schema,
      run: z.custom((value) => typeof value === "function", "expected a function"),
    }),
  ),
});
const agentModule = z.object({ default: z.custom<Agent>((value) => agentShape.safeParse(value).success) });
const anything = z.unknown().refine((value) => value !== undefined);
/** What `defineAgent` gives, whatever its author has left out. */
const madeModule = z.object({ default: z.looseObject({ settings: anything, skills: z.looseObject({}) }) });

async function loadAgent(path: string): Promise<Agent> {
  const file = await importFile(path);
  const imported = agentModule.safeParse(file);
  if (!imported.success) throw new ConfigError(flaws(path, file));
  const agent = imported.data.default;
  const name = basename(path, ".ts");
  if (agent.id !== name)
    throw new ConfigError(`${path}: id: expected "${name}", the file's name, got "${agent.id}"`);
  return agent;
}

/** What is not as expected of a file's default export, a line for each field. */
function flaws(path: string, file: unknown): string {
  const made = madeModule.safeParse(file);
  if (!made.success) return `${path}: expected a default export made by defineAgent (docs/agents.md)`;
  const { error } = agentShape.safeParse(made.data.default);
  const findings = error === undefined ? [] : findingsOf(error, made.data.default);
  return findings.map((of) => `${path}: ${pathText(of.path)}: ${of.message}`).join("\n");
}

async function importFile(path: string): Promise<unknown> {
  const hooks = registerHooks({ resolve: resolveFromHere });
  const onExit = (code: number) => {
    console.error(`${path}: the process ended with exit code ${code} while this file was being imported`);
    process.exitCode = code || 1; // an import that ends the process is no success
  };
  process.once("exit", onExit);
  try {
    return await import(pathToFileURL(path).href);
  } catch (error) {
    throw new ConfigError(wordsFor(path, error), { cause: error });
  } finally {
    process.off("exit", onExit);
    hooks.deregister();
  }
}

/** Why a file could not be imported, and where in its text, or in that of a file which it imports, as far as that is known. */
function wordsFor(path: string, error: unknown): string {
  if (error instanceof z.ZodError) return `${path}: ${error.issues.map(issueText).join("; ")}`;
  if (!(error instanceof Error)) return `${path}: ${String(error)}`;
  const place =
    (error instanceof SyntaxError ? placeOfMistake(error) : undefined) ?? placeOfThrow(path, error);
  if (place === undefined) return `${path}: ${error.message}`;
  return `${place.file === path ? "" : `${path}: `}${place.file}:${place.at}: ${error.message}`;
}

/** Where something is, as `line` or `line:column` of a file. */
interface PlaceInText {
  readonly file: string;
  readonly at: string;
}

/** The stack of a syntax error starts with the place (Node.js: Errors, error.stack). */
function placeOfMistake({ stack = "" }: Error): PlaceInText | undefined {
  const [, file, at] = /^(?:file:\/\/)?(\/.*):(\d+)$/m.exec(stack.split("\n", 1)[0] ?? "") ?? [];
  return file === undefined || at === undefined ? undefined : { file, at };
}

/** Where the agent's file was when something threw; of what threw before its first line, where that is, unless in a package. */
function placeOfThrow(path: string, { stack = "" }: Error): PlaceInText | undefined {
  const frames = Array.from(
    stack.matchAll(/^ +at (?:.* \()?(file:\/\/\/\S+):(\d+:\d+)\)?$/gm),
    ([, url = "", at = ""]) => ({
      file: fileURLToPath(url),
      at,
    }),
  );
  const above = frames.findIndex(({ file }) => file === import.meta.filename);
  const theirs = above < 0 ? frames : frames.slice(0, above);
  return (
    theirs.find(({ file }) => file === path) ?? theirs.find(({ file }) => !file.includes("/node_modules/"))
  );
}

function issueText(issue: z.core.$ZodIssue): string {
  const messages =
    issue.code === "invalid_key" ? issue.issues.map(({ message }) => message) : [expectation(issue)];
  return `${pathText(issue.path)}: ${messages.join(", ")}`;
}

/** Agents may lie in any folder: packages that are not found from there, `sluice` above all, are ours. */
const resolveFromHere: ResolveHookSync = (specifier, context, next) => {
  try {
    return next(specifier, context);
  } catch (error) {
    if (/^[./]|^\w+:/.test(specifier)) throw error;
    try {
      return next(specifier, { ...context, parentURL: import.meta.url });
    } catch {
      throw error; // which names the file that wants it
    }
  }
};
