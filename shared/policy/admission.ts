import type { DeploymentConfig, HostedAgent } from "../config/deployment.ts";
import type { AgentPolicy } from "../config/policy.ts";
import { agentId, type ErrorCode, skillSlug, type TaskRequest } from "../wire/index.ts";
import { exposedSkills, isOpen, isWelcome, meantSlug } from "./exposed.ts";
import { listed, quoted } from "./listed.ts";

/** What is decided about a task request: its skill and its bounds, or why not. */
export type Decision =
  | { readonly accepted: true; readonly skill: string; readonly timeoutMs: number; readonly depth: number }
  | { readonly accepted: false; readonly code: ErrorCode; readonly message: string };

const VISIBILITIES = ["proxy", "transparent"];
const TRANSCRIPTS: ReadonlySet<string> = new Set(["delegator", "mirror"]);

function refuse(code: ErrorCode, detail: string): Decision {
  return { accepted: false, code, message: `${code}: ${detail}` };
}

/** Delivery modes that need a shared conversation are refused; any other is served (docs/wire.md, admission). */
function deliveryProblem(
  { resultVisibility: allowed }: AgentPolicy,
  delivery: NonNullable<TaskRequest["delivery"]>,
): string | undefined {
  const { resultVisibility, discordTranscriptMode, shareDiscordContext, discordContext, coPresentFrom } =
    delivery;
  const visibilities = allowed === "any" ? VISIBILITIES : [allowed];
  if (resultVisibility && !visibilities.includes(resultVisibility))
    return `delivery.resultVisibility: expected ${visibilities.join(" or ")}`;
  if (discordTranscriptMode && !TRANSCRIPTS.has(discordTranscriptMode))
    return "delivery.discordTranscriptMode: expected delegator or mirror";
  if (shareDiscordContext === true) return "delivery.shareDiscordContext: shared context is not served";
  if (discordContext !== undefined && Object.values(discordContext).some((value) => value !== ""))
    return "delivery.discordContext: shared context is not served";
  if (coPresentFrom) return "delivery.coPresentFrom: co-presence is not served";
  return undefined;
}

/** What a sender is told who asks for a skill that there is not: as many as fit into a line. */
function skillsOf(agent: HostedAgent, policy: AgentPolicy): string {
  if (!policy.discoverable) return "";
  return `; it has ${listed(exposedSkills(agent, policy).map(({ slug }) => slug))}`;
}

/**
 * Decides whether an agent takes a task: the first rule that fails gives the code (docs/wire.md, admission).
 *
 * @param hosting.policy that is in force for the runtime that is addressed
 * @param hosting.skills that it has, if those are not the ones of its deployment alone (docs/remotes.md)
 * @param to the runtime that the subject addresses; it is one of the deployment's
 */
export function decide(
  {
    deployment,
    policy,
    skills,
  }: {
    readonly deployment: DeploymentConfig;
    readonly policy: AgentPolicy;
    readonly skills?: HostedAgent["skills"] | undefined;
  },
  parties: { readonly from: string; readonly to: string },
  request: TaskRequest,
): Decision {
  const { from, to } = parties;
  const origin = request.originRuntimeRef?.runtimeAgentId;
  if (origin && (!agentId().safeParse(origin).success || origin !== from))
    return refuse("invalid_envelope", "originRuntimeRef.runtimeAgentId: expected the sender's runtime id");
  const bot = request.originRuntimeRef?.botAgentId;
  if (bot && !agentId().safeParse(bot).success)
    return refuse("invalid_envelope", "originRuntimeRef.botAgentId: expected an agent id");

  const hosted = deployment.agents.find(({ channelRef }) => channelRef === request.channelRef);
  if (hosted === undefined)
    return refuse("channel_not_enabled", `channelRef: no agent here has ${quoted(request.channelRef)}`);
  if (hosted.runtime !== to)
    return refuse("invalid_envelope", `channelRef: belongs to ${hosted.runtime}, but the task went to ${to}`);
  const agent = skills === undefined ? hosted : { ...hosted, skills };
  if (!policy.enabled) return refuse("channel_not_enabled", `${to} takes no tasks`);

  if (!isWelcome(policy, from)) return refuse("sender_not_allowed", `sender ${from} is not accepted`);

  const slug = skillSlug(request.skillId);
  if (slug === null)
    return refuse("unknown_skill", "skillId: expected a slug, or a channelRef, / and a slug");
  const skill = meantSlug(agent, slug);
  if (!isOpen(agent, policy, skill)) return refuse("skill_not_allowed", `skill ${slug} is not accepted`);
  if (!agent.skills.some((of) => of.slug === skill))
    return refuse("unknown_skill", `the agent has no skill ${slug}${skillsOf(agent, policy)}`);

  const problem = deliveryProblem(policy, request.delivery);
  if (problem !== undefined) return refuse("policy_denied", problem);

  const { timeoutSec, maxDelegationDepth } = request.delivery;
  const seconds = timeoutSec !== undefined && timeoutSec > 0 ? timeoutSec : policy.timeoutSec.default;
  return {
    accepted: true,
    skill,
    timeoutMs: Math.min(seconds, policy.timeoutSec.max) * 1_000,
    depth: Math.max(0, Math.min(maxDelegationDepth ?? 0, policy.maxDelegationDepth)),
  };
}
