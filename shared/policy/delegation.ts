import type { AgentPolicy } from "../config/policy.ts";

/** What every peer may call the skill `task`, and the other way round (docs/wire.md, skill ids). */
const ALIASES: Readonly<Record<string, string>> = { task: "general_task", general_task: "task" };

/** A skill's slug, the same for `task` and what every peer may call it. */
export function skillKey(slug: string): string {
  return slug === "general_task" ? "task" : slug;
}

/**
 * Whether an agent may hand tasks for a skill on to a runtime (docs/configuration.md, `delegateTargets`): a pattern
 * without a channelRef stands for the skill wherever it is.
 *
 * @param wanted.skill its slug
 */
export function mayDelegate(
  targets: AgentPolicy["delegateTargets"],
  wanted: { readonly to: string; readonly channelRef: string; readonly skill: string },
): boolean {
  const { to, channelRef, skill } = wanted;
  const names = [skill, ALIASES[skill] ?? skill];
  return targets.some(
    ({ runtimeAgentId, skillId }) =>
      (runtimeAgentId === "*" || runtimeAgentId === to) &&
      names.some((name) => fits(skillId, skillId.includes("/") ? `${channelRef}/${name}` : name)),
  );
}

/** @param pattern a text, or the beginning of one and `*` */
function fits(pattern: string, text: string): boolean {
  return pattern.endsWith("*") ? text.startsWith(pattern.slice(0, -1)) : text === pattern;
}
