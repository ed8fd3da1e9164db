import type { Agent } from "../shared/agents/index.ts";
import { type DeploymentConfig, MAX_TIMEOUT_SEC, parseDeployment } from "../shared/config/deployment.ts";

/**
 * The deployment `test` of one agent, which takes tasks from everybody and gives them the longest time.
 *
 * @param policy what is otherwise, as in `agents.yaml`
 * @throws Error that names each field that is not as expected
 */
export function deploymentOf(agent: Agent, settings: unknown, policy: object): DeploymentConfig {
  const { id, description, version } = agent;
  const skills = Object.entries(agent.skills).map(([slug, { name, description, tags }]) => ({
    slug,
    name,
    description,
    tags: [...tags],
  }));
  const limits = {
    timeoutSec: { default: MAX_TIMEOUT_SEC, max: MAX_TIMEOUT_SEC },
    acceptFromRuntimes: ["*"],
  };
  return parseDeployment({
    deployment: "test",
    agents: [
      {
        id,
        runtime: `test-${id}`,
        channelRef: id,
        displayName: id,
        description,
        version,
        skills,
        policy: { ...limits, ...policy },
        settings,
      },
    ],
  });
}
