import type { HostedAgent } from "../config/deployment.ts";
import type { AgentPolicy } from "../config/policy.ts";

/** A skill as it is shown, with the media types that the operator has named for it. */
export type ExposedSkill = HostedAgent["skills"][number] & {
  readonly inputModes?: readonly string[] | undefined;
  readonly outputModes?: readonly string[] | undefined;
};

/** What every peer may call the skill `task` (docs/wire.md, skill ids). */
const TASK_ALIAS = "general_task";

/** The skill that a slug means: itself, but `general_task` stands for `task` where the agent has no skill of that name. */
export function meantSlug({ skills }: Pick<HostedAgent, "skills">, slug: string): string {
  return slug === TASK_ALIAS && !skills.some((of) => of.slug === TASK_ALIAS) ? "task" : slug;
}

/** Whether an agent may be asked for a skill (docs/policy.md, `acceptSkills`). */
export function isOpen(
  agent: Pick<HostedAgent, "skills">,
  { acceptSkills }: Pick<AgentPolicy, "acceptSkills">,
  slug: string,
): boolean {
  return acceptSkills.length === 0 || acceptSkills.some((of) => meantSlug(agent, of) === slug);
}

/** Whether an agent takes tasks of a peer (docs/policy.md, `acceptFromRuntimes`). */
export function isWelcome(
  { acceptFromRuntimes }: Pick<AgentPolicy, "acceptFromRuntimes">,
  from: string,
): boolean {
  return acceptFromRuntimes.includes("*") || acceptFromRuntimes.includes(from);
}

/** Whether an agent has a card: it is to be found, and takes tasks. */
export function isShown({ enabled, discoverable }: Pick<AgentPolicy, "enabled" | "discoverable">): boolean {
  return enabled && discoverable;
}

/**
 * The skills of an agent that its card shows, and that a sender is told who asks for one that there is not
 * (docs/policy.md, `exposeSkills`): never one that nobody may ask for.
 *
 * @param policy the one in force; whether the agent shows anything at all is {@link isShown}
 */
export function exposedSkills(
  agent: Pick<HostedAgent, "skills">,
  policy: Pick<AgentPolicy, "acceptSkills" | "exposeSkills">,
): ExposedSkill[] {
  const { exposeSkills } = policy;
  const open = agent.skills.filter(({ slug }) => isOpen(agent, policy, slug));
  if (exposeSkills.length === 0) return open;
  return open.flatMap((skill) => {
    const shown = exposeSkills.find(({ id }) => id === skill.slug);
    if (shown === undefined) return [];
    const { inputModes, outputModes } = shown;
    return [{ ...skill, ...(inputModes && { inputModes }), ...(outputModes && { outputModes }) }];
  });
}
