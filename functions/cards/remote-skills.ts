import { readFacts } from "../../shared/cards/peer-store.ts";
import type { DeploymentConfig, HostedAgent } from "../../shared/config/deployment.ts";
import { skillsOf } from "../../shared/remotes/hosted-skills.ts";
import * as z from "../../shared/zod.ts";

const item = z.whenUsed(() => z.object({ text: z.string() }));

/**
 * Our agents with the skills that they have now: those of one that is a remote one are also its last good card's.
 *
 * @param items by the remote's name, what is known of it, as the table has it
 */
export function withRemoteSkills(
  agents: readonly HostedAgent[],
  { remotes = [] }: Pick<DeploymentConfig, "remotes">,
  items: ReadonlyMap<string, unknown>,
): HostedAgent[] {
  return agents.map((agent) => {
    const { remote } = agent;
    if (remote === undefined) return agent;
    const known = item().safeParse(items.get(remote));
    const facts = known.success ? readFacts("http", known.data.text) : undefined;
    const url = remotes.find(({ name }) => name === remote)?.url;
    // At another address it is another agent.
    const own = facts?.transport === "http" && facts.url === url ? facts : undefined;
    return { ...agent, skills: [...skillsOf(agent, own).skills] };
  });
}
