import type { Agent } from "../shared/agents/index.ts";
import { type DeploymentConfig, parseDeployment } from "../shared/config/deployment.ts";
import { MAX_DELEGATION_DEPTH, MAX_TIMEOUT_SEC } from "../shared/config/policy.ts";
import type { Neighbour } from "./options.ts";

/** The deployment's name, unless a test says otherwise. */
export const TEST_DEPLOYMENT = "test";

/**
 * The deployment of one agent, which takes tasks from everybody, gives them the longest time and may hand them on
 * to everybody.
 *
 * @param of.deployment its name, `test` unless it is said
 * @param of.policy what is otherwise, as in `agents.yaml`
 * @param of.neighbours agents that are in the deployment, too, and that nobody runs
 * @param of.choosing how it is chosen among them, as in `agents.yaml`
 * @throws Error that names each field that is not as expected
 */
export function deploymentOf(
  agent: Agent,
  of: {
    readonly deployment?: string;
    readonly settings: unknown;
    readonly policy: object;
    readonly neighbours: readonly Neighbour[];
    readonly choosing?: unknown;
    /** The agent is a remote one. */
    readonly remote?: boolean;
  },
): DeploymentConfig {
  const { id, description, version } = agent;
  const { deployment = TEST_DEPLOYMENT } = of;
  const skills = Object.entries(agent.skills).map(([slug, { name, description, tags }]) => ({
    slug,
    name,
    description,
    tags: [...tags],
  }));
  const policy = {
    timeoutSec: { default: MAX_TIMEOUT_SEC, max: MAX_TIMEOUT_SEC },
    acceptFromRuntimes: ["*"],
    maxDelegationDepth: MAX_DELEGATION_DEPTH,
    delegateTargets: [{ runtimeAgentId: "*", skillId: "*" }],
    ...of.policy,
  };
  const hosted = (name: string, slugs: readonly string[] = ["task"]) => ({
    id: name,
    runtime: `${deployment}-${name}`,
    channelRef: name,
    displayName: name,
    description: "",
    version: "1.0.0",
    skills: slugs.map((slug) => ({ slug, name: slug, description: "", tags: [] })),
    // What it accepts is its own affair: the test plays its part.
    policy: { acceptFromRuntimes: ["*"] },
    settings: {},
  });
  return parseDeployment({
    deployment,
    agents: [
      {
        ...hosted(id),
        description,
        version,
        skills,
        policy,
        settings: of.settings,
        ...(of.remote && { remote: "remote" }),
      },
      ...of.neighbours.map((one) => (typeof one === "string" ? hosted(one) : hosted(one.id, one.skills))),
    ],
    ...(of.choosing !== undefined && { choosing: of.choosing }),
  });
}
