import type { AgentPolicy } from "../../shared/config/policy.ts";
import { mayDelegate } from "../../shared/policy/delegation.ts";
import { agentId } from "../../shared/wire/index.ts";

/** An agent of ours, and the policy that it goes by. */
export interface Ruled {
  /** Its short id. */
  readonly id: string;
  readonly policy: AgentPolicy;
}

/** Whether a peer may do something with an agent of ours, and by what, or why not. */
export interface Allowed {
  /** The agent's short id. */
  readonly agent: string;
  readonly allowed: boolean;
  readonly why: string;
  /** Which skills it goes for: inbound slugs, outbound the peer's own ids; without them all. */
  readonly skills?: readonly string[];
}

/** A peer as far as policies ask after it. */
export interface Party {
  readonly id: string;
  /** The ids of its skills, `<channelRef>/<slug>`; nothing while they are not known. */
  readonly skills?: readonly string[];
}

/** Whether an agent takes tasks of a peer, as admission decides it (docs/policy.md). */
export function inbound({ id: agent, policy }: Ruled, peer: Party): Allowed {
  const { enabled, acceptFromRuntimes, acceptSkills } = policy;
  const no = (why: string): Allowed => ({ agent, allowed: false, why });
  if (!agentId().safeParse(peer.id).success) return no("its id is none that a sender can have");
  if (!enabled) return no("it takes no tasks: enabled is false");
  const named = acceptFromRuntimes.includes(peer.id);
  if (!named && !acceptFromRuntimes.includes("*"))
    return no(`not in acceptFromRuntimes: ./sluice allow ${agent} ${peer.id}`);
  return {
    agent,
    allowed: true,
    why: named ? "acceptFromRuntimes names it" : 'acceptFromRuntimes has "*"',
    ...(acceptSkills.length > 0 && { skills: acceptSkills }),
  };
}

/** Whether an agent may hand tasks on to a peer, and for which of its skills (docs/policy.md). */
export function outbound({ id: agent, policy }: Ruled, peer: Party): Allowed {
  const { delegateTargets: targets, maxDelegationDepth } = policy;
  const no = (why: string): Allowed => ({ agent, allowed: false, why });
  if (!targets.some(({ runtimeAgentId: of }) => of === "*" || of === peer.id))
    return no("not in delegateTargets");
  if (maxDelegationDepth < 1) return no("it hands nothing on: maxDelegationDepth is 0");
  if (peer.skills === undefined) return no("the peer's skills are not known");
  const skills = peer.skills.filter((of) => {
    const [channelRef = "", skill = ""] = of.split("/");
    return mayDelegate(targets, { to: peer.id, channelRef, skill });
  });
  if (skills.length === 0) return no("none of its skills is in delegateTargets");
  return { agent, allowed: true, why: "in delegateTargets", skills };
}

/** Which agents a list of answers allows, for a line of a table. */
export function allowedText(answers: readonly Allowed[]): string {
  const agents = answers.flatMap(({ agent, allowed }) => (allowed ? [agent] : []));
  return agents.length === 0 ? "nobody" : agents.join(", ");
}
