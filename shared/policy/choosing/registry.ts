import { skillKey } from "../delegation.ts";

/** What the operator's file declares comes before what a card says of itself. */
export const FILE_PRIORITY = 10;
export const CARD_PRIORITY = 5;

/** The target that stands for every agent with the skill; an agent of this name is reached by its skills alone. */
export const EVERYBODY = "all";

/** An agent as the operator's file or its own card has it. */
export interface Declared {
  /** What it is known by, and what is kept of it is kept under: a runtime id, or a remote's name in the file. */
  readonly name: string;
  /** What else it may be called. Cards are not to be trusted: nobody is known for good by such a name. */
  readonly aliases?: readonly string[];
  /** The slugs of its skills; absent when nothing is known of them. */
  readonly skills?: readonly string[];
}

/** An agent that may be asked. */
export interface KnownAgent {
  readonly name: string;
  readonly aliases: ReadonlySet<string>;
  /** The highest priority of each skill; absent when nothing is known of its skills. */
  readonly skills: ReadonlyMap<string, number> | undefined;
}

export interface Registry {
  readonly agents: ReadonlyMap<string, KnownAgent>;
  /** Who takes what nobody else does. */
  readonly fallback?: string | undefined;
}

/**
 * All agents that may be asked, each once: what several places say of one is put together, and of a skill that several
 * have the highest priority counts.
 */
export function registryOf(sources: {
  readonly file: readonly Declared[];
  readonly cards: readonly Declared[];
  readonly fallback?: string | undefined;
}): Registry {
  const agents = new Map<string, KnownAgent>();
  const add = (priority: number) => (declared: Declared) => {
    const known = agents.get(declared.name);
    agents.set(declared.name, merged(known, declared, priority));
  };
  sources.file.forEach(add(FILE_PRIORITY));
  sources.cards.forEach(add(CARD_PRIORITY));
  return { agents, fallback: sources.fallback };
}

function merged(
  known: KnownAgent | undefined,
  { name, aliases, skills }: Declared,
  priority: number,
): KnownAgent {
  const all = new Map(known?.skills);
  for (const skill of skills ?? [])
    all.set(skillKey(skill), Math.max(priority, all.get(skillKey(skill)) ?? priority));
  return {
    name,
    aliases: new Set([...(known?.aliases ?? []), ...(aliases ?? [])]),
    skills: known?.skills === undefined && skills === undefined ? undefined : all,
  };
}

/** The agents that have a skill, with its priority, in the order of their names. */
export function withSkill(registry: Registry, skill: string): { name: string; priority: number }[] {
  const key = skillKey(skill);
  return [...registry.agents.values()]
    .flatMap(({ name, skills }) => {
      const priority = skills?.get(key);
      return priority === undefined ? [] : [{ name, priority }];
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Whom a target means: an agent by its own name, else all that go by it otherwise. */
export function meantBy(registry: Registry, target: string): string[] {
  if (registry.agents.has(target)) return [target];
  return [...registry.agents.values()]
    .filter(({ aliases }) => aliases.has(target))
    .map(({ name }) => name)
    .sort();
}
