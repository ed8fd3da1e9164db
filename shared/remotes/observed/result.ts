import type { Result } from "../../policy/choosing/outcomes.ts";

/**
 * What a task's end says of its agent, for the choice among agents (docs/choosing.md): whether it has done well, and what
 * that has cost. An agent that says itself that it has not succeeded has not, however its task has ended; one that says
 * that it has is not believed where its task has failed.
 *
 * @param metrics of its result
 */
export function resultOf(completed: boolean, metrics: Readonly<Record<string, number>> = {}): Result {
  const { success, cost_usd: costUsd } = metrics;
  return { good: completed && success !== 0, ...(costUsd !== undefined && { costUsd }) };
}
