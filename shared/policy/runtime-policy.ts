import { bundledPolicy } from "../config/bundled.ts";
import type { DeploymentConfig } from "../config/deployment.ts";
import type { AgentPolicy } from "../config/policy.ts";
import * as z from "../zod.ts";
import type { Standings } from "./standing.ts";

/** The fields of a policy that are not as the file says: each stands for the file's as a whole. */
export type PolicyFields = Partial<AgentPolicy>;

/** What has been changed of an agent's policy since it was deployed (docs/policy.md). */
export interface RuntimePolicy {
  /** Counts the changes, from 1; each is made to the version that was known. */
  readonly version: number;
  readonly fields: PolicyFields;
}

/** How it stands in the table. A field that this version does not know is not passed over: it may forbid something. */
export const runtimePolicy = z.whenUsed(
  (): z.ZodMiniType<RuntimePolicy> =>
    z.object({
      version: z.int().check(z.positive()),
      fields: z.partial(bundledPolicy()),
    }),
);

/** The policy in force: the file's, and what the table says otherwise. */
export function effectivePolicy(file: AgentPolicy, runtime: RuntimePolicy | undefined): AgentPolicy {
  return runtime === undefined ? file : { ...file, ...runtime.fields };
}

/** The policies in force. */
export interface Policies {
  /** @returns nothing when the agent is not hosted (any more) */
  of(runtime: string): Promise<AgentPolicy | undefined>;
}

/** The policies of a deployment's agents as a sandbox knows them. */
export function policiesOf(
  deployment: Pick<DeploymentConfig, "agents">,
  standings: Pick<Standings, "of">,
): Policies {
  return {
    async of(runtime) {
      // Read now and not above: a start does not wait for the agents (shared/config/bundled.ts).
      const file = deployment.agents.find((agent) => agent.runtime === runtime)?.policy;
      return file && effectivePolicy(file, (await standings.of(runtime)).policy);
    },
  };
}
