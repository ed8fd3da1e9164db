import type { HttpFacts } from "../cards/peer-facts.ts";
import type { HostedAgent } from "../config/deployment.ts";
import { blankedIn } from "../wire/ids.ts";
import { skillSlug } from "../wire/task.ts";
import type { CardSkill } from "./card.ts";

/**
 * What a hosted agent that is a remote one can do (docs/remotes.md, "An agent that is a remote one"). Admission, our
 * cards and the work function all ask here, so that nobody is shown a skill that is refused.
 */

/** A skill as a hosted agent has it. */
export type HostedSkill = HostedAgent["skills"][number];

/** By what tasks are taken where the operator's file names no skill. */
const GENERAL = "task";

/** The skills, and what of the remote's own was left out, and why. */
export interface HostedSkills {
  readonly skills: readonly HostedSkill[];
  readonly notes: readonly string[];
}

/**
 * The skills that an agent has by the operator's file alone: those of its remote's section, or one for everything.
 *
 * @param remote.skills as the section `remotes` has them
 */
export function skillsOfFile(remote: {
  readonly name: string;
  readonly skills: readonly { readonly name: string; readonly description?: string | undefined }[];
}): HostedSkills {
  const { skills, notes } = hostable(
    remote.skills.map(({ name, description = "" }) => ({ id: name, name, description, tags: [] })),
  );
  if (skills.length > 0) return { skills, notes };
  const description = `Whatever the remote agent ${remote.name} is asked for.`;
  return { skills: [{ slug: GENERAL, name: "Task", description, tags: [] }], notes };
}

/**
 * The skills of an agent at this moment: those of the file, in its order, then those that the remote's last good card has
 * besides. What the file says of a skill goes before what the card does; what it does not say is the card's.
 *
 * @param hosted an agent of ours; of one that is no remote's nothing is changed
 * @param facts what is known of its remote; nothing, before its card was fetched for the first time
 */
export function skillsOf(
  hosted: Pick<HostedAgent, "skills" | "remote">,
  facts: Pick<HttpFacts, "card"> | undefined,
): HostedSkills {
  if (hosted.remote === undefined || facts === undefined) return { skills: hosted.skills, notes: [] };
  const { skills: found, notes } = hostable(facts.card.skills);
  const ofCard = new Map(found.map((of) => [of.slug, of]));
  const ofFile = hosted.skills.map((own) => {
    const told = ofCard.get(own.slug);
    if (told === undefined) return own;
    const name = own.name === own.slug ? told.name : own.name;
    return { ...own, name, description: own.description || told.description, tags: told.tags };
  });
  const known = new Set(hosted.skills.map(({ slug }) => slug));
  return { skills: [...ofFile, ...found.filter(({ slug }) => !known.has(slug))], notes };
}

/** Skill ids are anybody's (A2A 1.0 §4.4.5); ours are slugs that peers show (docs/wire.md, skill ids). */
function hostable(all: readonly CardSkill[]): HostedSkills {
  const notes: string[] = [];
  const skills = new Map<string, HostedSkill>();
  for (const { id, name, description, tags } of all) {
    const note = whyLeftOut(id);
    if (note !== undefined) notes.push(note);
    else if (!skills.has(id)) skills.set(id, { slug: id, name: name || id, description, tags: [...tags] });
  }
  return { skills: [...skills.values()], notes };
}

/** That a skill cannot be asked for here, and why; nothing of one that can. */
export function whyLeftOut(id: string): string | undefined {
  const problem = problemOf(id);
  return problem === undefined ? undefined : `skill ${JSON.stringify(id)}: left out: ${problem}`;
}

function problemOf(id: string): string | undefined {
  if (id.includes("/") || skillSlug(id) === null)
    return "expected a slug: 1 to 64 of A-Z, a-z, 0-9, _ and -, a letter or digit first";
  const blanked = blankedIn(id);
  return blanked === undefined ? undefined : `peers blank ${blanked} in cards`;
}
