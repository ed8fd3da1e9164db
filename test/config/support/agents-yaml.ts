import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import * as z from "zod";
import { type Agent, defineAgent, skill } from "../../../shared/agents/index.ts";
import { readAgentsYaml } from "../../../shared/config/agents-yaml.ts";
import { ConfigError } from "../../../shared/config/config-error.ts";
import type { AgentPolicy } from "../../../shared/config/policy.ts";

/** Where the files are that are read. */
export const folder = mkdtempSync(join(tmpdir(), "sluice-config-"));
after(() => rmSync(folder, { recursive: true }));

/** An agent with the skills `task` and `other`. */
export function agent(id: string, settings: z.ZodType = z.object({})): Agent {
  const task = skill({
    name: "Task",
    description: "Does it",
    tags: ["a"],
    input: z.string(),
    run: () => "done",
  });
  return defineAgent({ id, description: `The agent ${id}`, settings, skills: { task, other: task } });
}
export const support = agent("support");
export const exec = agent(
  "exec",
  z.strictObject({ commands: z.record(z.string(), z.array(z.string())).default({}) }),
);
export const agents = [exec, support];

/** What a file of this text says. */
export function read(text: string, hosted: readonly Agent[] = agents) {
  const path = join(folder, "agents.yaml");
  writeFileSync(path, text);
  return readAgentsYaml(path, hosted).deployment;
}

/** What is said of a file, without the folder's name. */
export function complaint(text: string, hosted: readonly Agent[] = agents): string {
  try {
    read(text, hosted);
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.message.replaceAll(`${folder}/`, "");
  }
  return assert.fail("expected an error");
}

export function policyOf(text: string, id = "support"): AgentPolicy {
  const found = read(text).agents.find((of) => of.id === id);
  assert.ok(found);
  return found.policy;
}
