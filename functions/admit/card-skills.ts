import type { DeploymentConfig, HostedAgent } from "../../shared/config/deployment.ts";
import type { Timing } from "../../shared/config/timing.ts";
import type { HostedSkill } from "../../shared/remotes/hosted-skills.ts";
import type { TableAccess } from "../../shared/tasks/dynamodb-transaction.ts";

/** The skills that a hosted agent has now. */
export type SkillsOf = (hosted: HostedAgent) => Promise<readonly HostedSkill[]>;

/**
 * The skills of our agents: of one that is a remote one also those of its last good card, as a sandbox has read it within
 * the last minute. What that takes is loaded by deployments alone that host one.
 *
 * @returns throws when the table cannot be reached
 */
export function cardSkills(of: {
  readonly access: Pick<TableAccess, "client" | "table">;
  readonly deployment: Pick<DeploymentConfig, "remotes">;
  readonly timing: Pick<Timing, "sweepPeriodMs">;
  readonly now: () => number;
}): SkillsOf {
  const { access, deployment, timing, now } = of;
  const known = new Map<
    string,
    { readonly until: number; readonly skills: Promise<readonly HostedSkill[]> }
  >();
  return async (hosted) => {
    const { id, remote } = hosted;
    if (remote === undefined) return hosted.skills;
    const there = known.get(id);
    if (there !== undefined && now() < there.until) return await there.skills;
    const url = deployment.remotes?.find(({ name }) => name === remote)?.url;
    const skills = read(access, hosted, { remote, url });
    known.set(id, { until: now() + timing.sweepPeriodMs, skills });
    skills.catch(() => known.delete(id));
    return await skills;
  };
}

async function read(
  access: Pick<TableAccess, "client" | "table">,
  hosted: HostedAgent,
  { remote, url }: { readonly remote: string; readonly url: string | undefined },
): Promise<readonly HostedSkill[]> {
  const [{ dynamoPeers }, { skillsOf }] = await Promise.all([
    import("../../shared/cards/dynamodb-peers.ts"),
    import("../../shared/remotes/hosted-skills.ts"),
  ]);
  const facts = await dynamoPeers(access).fact("http", remote);
  // At another address it is another agent.
  const own = facts?.transport === "http" && facts.url === url ? facts : undefined;
  return skillsOf(hosted, own).skills;
}
