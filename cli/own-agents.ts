import { readAgentsYaml } from "../shared/config/agents-yaml.ts";
import { ConfigError } from "../shared/config/config-error.ts";
import type { DeploymentConfig, HostedAgent } from "../shared/config/deployment.ts";
import { loadAgents } from "../shared/config/load-agents.ts";
import { CliError, EXIT } from "./errors.ts";
import type { Home } from "./home.ts";

/**
 * Our agents as their files and `agents.yaml` have them; none where there are none.
 *
 * @throws CliError `usage` when a file is not as expected
 */
export async function ownAgents(home: Home): Promise<readonly HostedAgent[]> {
  return home.agents.length === 0 ? [] : (await ownDeployment(home)).agents;
}

/**
 * The deployment as the files of a folder have it.
 *
 * @throws CliError `usage` when a file is not as expected
 */
export async function ownDeployment({ config, agentsDir, agents }: Home): Promise<DeploymentConfig> {
  try {
    return readAgentsYaml(config, agents.length === 0 ? [] : await loadAgents(agentsDir)).deployment;
  } catch (cause) {
    if (cause instanceof ConfigError) throw new CliError(EXIT.usage, cause.message, { cause });
    throw cause;
  }
}
