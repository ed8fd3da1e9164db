import type { HostedAgent } from "../config/deployment.ts";
import type { AgentPolicy } from "../config/policy.ts";

/** A skill as it is shown, with the media types that the operator has named for it. */
export type ExposedSkill = HostedAgent["skills"][number] & {
  readonly inputModes?: readonly string[] | undefined;
  readonly outputModes?: readonly string[] | undefined;
};

/**
 * The skills of an agent that its card shows, and that a sender is told who asks for one that there is not
 * (docs/policy.md, `exposeSkills`): never one that nobody may ask for.
 *
 * @param policy the one in force; whether the agent shows anything at all is its `discoverable`
 */
export function exposedSkills(
  { skills }: Pick<HostedAgent, "skills">,
  { acceptSkills, exposeSkills }: Pick<AgentPolicy, "acceptSkills" | "exposeSkills">,
): ExposedSkill[] {
  const open = skills.filter(({ slug }) => acceptSkills.length === 0 || acceptSkills.includes(slug));
  if (exposeSkills.length === 0) return open;
  return open.flatMap((skill) => {
    const shown = exposeSkills.find(({ id }) => id === skill.slug);
    if (shown === undefined) return [];
    const { inputModes, outputModes } = shown;
    return [{ ...skill, ...(inputModes && { inputModes }), ...(outputModes && { outputModes }) }];
  });
}
