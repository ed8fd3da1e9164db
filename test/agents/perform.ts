import assert from "node:assert/strict";
import type { Agent, Outcome, OutcomeArtifact, Step } from "../../shared/agents/index.ts";
import { readInput } from "../../shared/steps/input.ts";
import { readMessage } from "../../shared/wire/index.ts";

/** What an agent did with a task. */
export interface Performed {
  readonly outcome: Exclude<Outcome, string>;
  /** The names of its steps, in order. */
  readonly steps: readonly string[];
  readonly statuses: readonly string[];
  readonly artifacts: readonly OutcomeArtifact[];
}

/**
 * Runs an agent's skill `task` with steps that are kept in memory, as JSON, like the real ones.
 *
 * @param stored results of steps that are not to run again
 */
export async function perform(
  agent: Agent,
  a2a: unknown,
  options: { settings?: unknown; signal?: AbortSignal; stored?: Map<string, unknown> } = {},
): Promise<Performed> {
  const { signal = new AbortController().signal, stored = new Map<string, unknown>() } = options;
  const steps: string[] = [];
  const statuses: string[] = [];
  const artifacts: OutcomeArtifact[] = [];
  const step: Step = {
    async run(name, fn) {
      steps.push(name);
      if (!stored.has(name)) stored.set(name, JSON.parse(JSON.stringify(await fn({ signal }))));
      return stored.get(name) as Awaited<ReturnType<typeof fn>>;
    },
    status: (text) => void statuses.push(text),
    artifact: async (name, parts) => void artifacts.push({ name, parts }),
    signal,
    log() {},
  };
  const skill = agent.skills.task;
  assert(skill !== undefined);
  const message = readMessage(a2a);
  const input = await readInput(skill.input, message);
  if (!input.ok) throw new Error(input.reason);
  const task = {
    id: "task_1",
    from: "local-cli",
    to: `local-${agent.id}`,
    skill: "task",
    input: input.value,
    message,
    settings: agent.settings.parse(options.settings ?? {}),
    deadline: Date.now() + 60_000,
  };
  const outcome = (await skill.run(task, step)) ?? {};
  return { outcome: typeof outcome === "string" ? { text: outcome } : outcome, steps, statuses, artifacts };
}
