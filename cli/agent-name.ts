import { nearest } from "../shared/config/nearest.ts";
import { agentId } from "../shared/wire/index.ts";
import { CliError, EXIT } from "./errors.ts";
import type { Home } from "./home.ts";
import type { Place } from "./place.ts";
import { cleanLine } from "./text.ts";

/** An agent of a stack. */
export interface StackAgent {
  /** Its short id. */
  readonly id: string;
  readonly runtime: string;
}

/**
 * The agent of a stack that a name means: its short id, or its runtime id. That there is one is seen in this folder,
 * where this is the deployment's.
 *
 * @throws CliError `usage` when there is none
 */
export function stackAgent(
  home: Pick<Home, "deployment" | "agents">,
  place: Place,
  name: string,
): StackAgent {
  const deployment = place.outputs.DeploymentName ?? home.deployment;
  const prefix = `${deployment}-`;
  const id = name.startsWith(prefix) && !home.agents.includes(name) ? name.slice(prefix.length) : name;
  const runtime = `${prefix}${id}`;
  if (!agentId().safeParse(runtime).success)
    throw new CliError(
      EXIT.usage,
      `agent ${JSON.stringify(cleanLine(name))}: expected an agent's short id, or its runtime id ${prefix}…`,
    );
  const isOurs = deployment === home.deployment && home.agents.length > 0;
  if (!isOurs || home.agents.includes(id)) return { id, runtime };
  const [meant] = nearest(id, home.agents);
  throw new CliError(
    EXIT.usage,
    `no agent "${id}"${meant === undefined ? "" : `, did you mean ${meant}?`}; known here are ${home.agents.join(", ")}`,
  );
}
