import type { AgentPolicy } from "../config/policy.ts";

/** Invocations of `admit` at once, at the most; the stack declares it. */
export const ADMITTING_AT_ONCE = 4;

/** How many of an agent's tasks may be worked on at once; an agent that is not hosted any more has no limit, either. */
export function slotsOf(policy: Pick<AgentPolicy, "maxConcurrent"> | undefined): number {
  const max = policy?.maxConcurrent ?? 0;
  return max === 0 ? Number.POSITIVE_INFINITY : max;
}
