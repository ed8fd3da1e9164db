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
  /** What else it may be called. */
  readonly aliases?: readonly string[];
  /** The slugs of its skills; absent when nothing is known of them. */
  readonly skills?: readonly string[];
}

/** An agent that may be asked. */
export interface KnownAgent {
  readonly name: string;
  /** By the highest that has it. */
  readonly priority: number;
  /** The highest priority of each. */
  readonly aliases: ReadonlyMap<string, number>;
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
 *
 * @param sources.cards each under the name of the agent that it was fetched of, whatever it says of itself
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

function merged(known: KnownAgent | undefined, declared: Declared, priority: number): KnownAgent {
  const { name, aliases = [], skills } = declared;
  return {
    name,
    priority: Math.max(priority, known?.priority ?? priority),
    aliases: raised(known?.aliases, aliases, priority),
    skills:
      known?.skills === undefined && skills === undefined
        ? undefined
        : raised(known?.skills, (skills ?? []).map(skillKey), priority),
  };
}

/** The highest priority of each, with these at that one. */
function raised(
  known: ReadonlyMap<string, number> | undefined,
  keys: readonly string[],
  priority: number,
): Map<string, number> {
  const all = new Map(known);
  for (const key of keys) all.set(key, Math.max(priority, all.get(key) ?? priority));
  return all;
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

/**
 * Whom a target means: what the operator's file calls so, by name or else by alias, comes before what cards do; so no card
 * takes a name that the file gives. Several that are called so by the same right are all meant.
 */
export function meantBy(registry: Registry, target: string): string[] {
  const called = [...registry.agents.values()].map(({ name, priority, aliases }) => ({
    name,
    right: Math.max(name === target ? priority + 1 : 0, aliases.get(target) ?? 0),
  }));
  const highest = called.reduce((most, { right }) => Math.max(most, right), 0);
  if (highest === 0) return [];
  return called
    .filter(({ right }) => right === highest)
    .map(({ name }) => name)
    .sort();
}
