import type { HostedAgent } from "../config/deployment.ts";
import { effectivePolicy, runtimePolicy } from "./runtime-policy.ts";

/** A deployment's agents by the policies in force. */
export interface InForce {
  /** Those whose policy is known, each with the one in force. */
  readonly agents: readonly HostedAgent[];
  /** Those of which the table says what cannot be read, for it is of a later version, and why. */
  readonly unreadable: readonly { readonly runtime: string; readonly faults: readonly string[] }[];
}

/**
 * Puts the policies in force in place of the file's. What cannot be read is not passed over, for it may forbid something
 * (docs/policy.md); it is the one agent's trouble, and no other's.
 *
 * @param changed by runtime, the item that tells what was changed of the agent's policy, as the table has it
 */
export function inForce(agents: readonly HostedAgent[], changed: ReadonlyMap<string, unknown>): InForce {
  const read = agents.map((agent) => {
    const item = changed.get(agent.runtime);
    return { agent, policy: item === undefined ? undefined : runtimePolicy().safeParse(item) };
  });
  return {
    agents: read.flatMap(({ agent, policy }) =>
      policy?.success === false ? [] : [{ ...agent, policy: effectivePolicy(agent.policy, policy?.data) }],
    ),
    unreadable: read.flatMap(({ agent: { runtime }, policy }) =>
      policy?.success === false
        ? [{ runtime, faults: policy.error.issues.map((of) => `policy.${of.path.join(".")}: ${of.message}`) }]
        : [],
    ),
  };
}
