import type { DeploymentConfig } from "../config/deployment.ts";
import { type Policies, policiesOf } from "../policy/runtime-policy.ts";

/** The policies of which nothing was changed since the deployment. */
export function filePolicies(deployment: Pick<DeploymentConfig, "agents">): Policies {
  return policiesOf(deployment, { of: async () => ({}) });
}
