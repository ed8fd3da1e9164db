import { readAgentsYaml } from "../shared/config/agents-yaml.ts";
import { ConfigError } from "../shared/config/config-error.ts";
import type { HostedAgent } from "../shared/config/deployment.ts";
import { loadAgents } from "../shared/config/load-agents.ts";
import { CliError, EXIT } from "./errors.ts";
import type { Home } from "./home.ts";

/**
 * Our agents as their files and `agents.yaml` have them; none where there are none.
 *
 * @throws CliError `usage` when a file is not as expected
 */
export async function ownAgents({ config, agentsDir, agents }: Home): Promise<readonly HostedAgent[]> {
  if (agents.length === 0) return [];
  try {
    return readAgentsYaml(config, await loadAgents(agentsDir)).deployment.agents;
  } catch (cause) {
    if (cause instanceof ConfigError) throw new CliError(EXIT.usage, cause.message, { cause });
    throw cause;
  }
}
