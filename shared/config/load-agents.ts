import { existsSync, readdirSync } from "node:fs";
import { type ResolveHookSync, registerHooks } from "node:module";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import * as z from "zod";
import type { Agent } from "../agents/define.ts";
import { ConfigError } from "./config-error.ts";

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
 * Imports the agents of a folder: the default export of each file, made by `defineAgent`, whose id is the file's name.
 *
 * @throws ConfigError that names the file and what was expected of it
 */
export async function loadAgents(folder: string): Promise<Agent[]> {
  const agents: Agent[] = [];
  for (const path of agentFiles(folder)) agents.push(await loadAgent(path));
  return agents;
}

const schema = z.custom<z.ZodType>((value) => value instanceof z.ZodType);
const agentModule = z.object({
  default: z.custom<Agent>((value) => agentShape.safeParse(value).success),
});
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
      run: z.custom((value) => typeof value === "function"),
    }),
  ),
});

async function loadAgent(path: string): Promise<Agent> {
  const imported = agentModule.safeParse(await importFile(path));
  if (!imported.success)
    throw new ConfigError(`${path}: expected a default export made by defineAgent (docs/agents.md)`);
  const agent = imported.data.default;
  const name = basename(path, ".ts");
  if (agent.id !== name)
    throw new ConfigError(`${path}: id: expected "${name}", the file's name, got "${agent.id}"`);
  return agent;
}

async function importFile(path: string): Promise<unknown> {
  const hooks = registerHooks({ resolve: resolveFromHere });
  try {
    return await import(pathToFileURL(path).href);
  } catch (error) {
    throw new ConfigError(`${path}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  } finally {
    hooks.deregister();
  }
}

/** Agents may lie in any folder: packages that are not found from there, `sluice` above all, are ours. */
const resolveFromHere: ResolveHookSync = (specifier, context, next) => {
  try {
    return next(specifier, context);
  } catch (error) {
    if (/^[./]|^\w+:/.test(specifier)) throw error;
    return next(specifier, { ...context, parentURL: import.meta.url });
  }
};
