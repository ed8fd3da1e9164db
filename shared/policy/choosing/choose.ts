import { skillKey } from "../delegation.ts";
import { listed, quoted } from "../listed.ts";
import { draw } from "./draw.ts";
import { nearest } from "./nearest.ts";
import { type PassingReason, REASONS, type RefusalReason } from "./reasons.ts";
import { EVERYBODY, meantBy, type Registry, withSkill } from "./registry.ts";
import { doubtful, forbidden, type Standing, unfit } from "./standing.ts";

/** Who is wanted: agents by name, all of which are to get it, or whoever has the skill. */
export interface Wanted {
  /** Names; `all` stands for every agent with the skill. None is as good as absent. */
  readonly targets?: readonly string[] | undefined;
  /** A slug. */
  readonly skill?: string | undefined;
  /** Whether whoever asks can do with one agent alone. */
  readonly one?: boolean | undefined;
}

/** An agent that is asked, and why it is. */
export interface Chosen {
  readonly agent: string;
  /** It was named, everybody was, it has the skill, or nobody else takes it. */
  readonly why: "target" | "all" | "skill" | "default";
  /** What speaks against it, and did not count: it was named. */
  readonly despite: readonly PassingReason[];
}

/** An agent that has the skill and is not asked, and why it is not. */
export interface PassedOver {
  readonly agent: string;
  readonly reasons: readonly PassingReason[];
}

export interface Refusal {
  readonly reason: RefusalReason;
  /** For people; what a requester has named is quoted and cut. */
  readonly message: string;
  /** Names that come nearest to one that nobody has, or all that go by an ambiguous one. */
  readonly instead: readonly string[];
  /** When to come again, in milliseconds since 1970. */
  readonly retryAt?: number | undefined;
  readonly passedOver: readonly PassedOver[];
}

export type Choice =
  | { readonly chosen: readonly Chosen[]; readonly passedOver: readonly PassedOver[] }
  | { readonly refused: Refusal };

/** How agents stand; asked of those alone that {@link concerned} names. */
export type Standings = (agent: string) => Standing;

/** A refusal in its words. */
export function refuse(
  reason: RefusalReason,
  detail: string,
  more: Partial<Omit<Refusal, "reason" | "message">> = {},
): { refused: Refusal } {
  return { refused: { instead: [], passedOver: [], ...more, reason, message: `${reason}: ${detail}` } };
}

/** A request taken apart: whom it names, and whether all that have the skill come into question. */
function partsOf({ targets = [] }: Wanted): { named: string[]; open: boolean; broadcast: boolean } {
  const named = [...new Set(targets)].filter((target) => target !== EVERYBODY);
  const broadcast = targets.includes(EVERYBODY);
  return { named, broadcast, open: broadcast || targets.length === 0 };
}

/** Whether nobody but those that are named comes into question. */
export function isNamed(wanted: Wanted): boolean {
  return !partsOf(wanted).open;
}

/** The agents whose standing decides who is chosen. */
export function concerned(wanted: Wanted, registry: Registry): Set<string> {
  const { named, open, broadcast } = partsOf(wanted);
  const { fallback } = registry;
  return new Set([
    ...named.flatMap((target) => meantBy(registry, target)),
    ...(open && wanted.skill !== undefined ? withSkill(registry, wanted.skill).map(({ name }) => name) : []),
    ...(open && !broadcast && fallback !== undefined ? [fallback] : []),
  ]);
}

/**
 * Chooses who is asked (docs/choosing.md). Who is named is asked or the request is refused: nobody is ever put in the
 * place of a target.
 *
 * @param random gives a number from 0 to below 1
 */
export function choose(
  wanted: Wanted,
  registry: Registry,
  standings: Standings,
  random: () => number,
): Choice {
  const { named, open, broadcast } = partsOf(wanted);
  if (wanted.one === true && (broadcast || named.length > 1))
    return refuse("several", `one agent is to be named, not ${broadcast ? "all" : named.length}`);
  if (open && wanted.skill === undefined)
    return refuse(
      "no_skill",
      broadcast
        ? "all stands for all that have a skill, and none is named"
        : "neither a target nor a skill is named",
    );
  const resolved = resolve(named, wanted.skill, registry, standings);
  if ("refused" in resolved || !open || wanted.skill === undefined) return resolved;
  if (!broadcast) return bySkill(wanted.skill, registry, standings, random);
  return toAll(resolved.chosen, wanted.skill, registry, standings);
}

/** Those that are named, or why one of them cannot be asked: what is meant for several goes to all or to none. */
function resolve(
  named: readonly string[],
  skill: string | undefined,
  registry: Registry,
  standings: Standings,
): Choice {
  const meant = named.map((target) => ({ target, agents: meantBy(registry, target) }));
  const missing = meant.filter(({ agents }) => agents.length === 0);
  if (missing.length > 0)
    return unresolved(
      missing.map(({ target }) => target),
      registry,
    );
  for (const { target, agents } of meant)
    if (agents.length > 1)
      return refuse("target_ambiguous", `${quoted(target)} may be ${listed(agents.map(quoted))}`, {
        instead: agents,
      });
  const names = [...new Set(meant.flatMap(({ agents }) => agents))];
  for (const name of names) {
    const refused = objection(name, skill, registry, standings(name));
    if (refused !== undefined) return refused;
  }
  const chosen = names.map(
    (agent): Chosen => ({ agent, why: "target", despite: doubtful(standings(agent)) }),
  );
  return { chosen, passedOver: [] };
}

function unresolved(targets: readonly string[], { agents }: Registry): Choice {
  const aliases = [...agents.values()].flatMap((agent) => [...agent.aliases.keys()]);
  const near = targets.flatMap((target) => {
    const names = nearest(target, agents.keys());
    return names.length > 0 ? names : nearest(target, aliases);
  });
  const instead = [...new Set(near)];
  const hint =
    instead.length === 0
      ? `known are ${listed([...agents.keys()].map(quoted))}`
      : `nearest are ${listed(instead.map(quoted))}`;
  return refuse("target_unresolved", `no agent is called ${listed(targets.map(quoted))}; ${hint}`, {
    instead,
  });
}

/** Why an agent that is named cannot be asked. */
function objection(
  name: string,
  skill: string | undefined,
  registry: Registry,
  standing: Standing,
): { refused: Refusal } | undefined {
  const skills = registry.agents.get(name)?.skills;
  // Of whom no skill is known the skill may be asked: whoever gets the task decides.
  if (skill !== undefined && skills !== undefined && !skills.has(skillKey(skill)))
    return refuse(
      "unknown_skill",
      `${quoted(name)} has no skill ${quoted(skill)}; it has ${listed([...skills.keys()].map(quoted))}`,
    );
  const [reason] = forbidden(standing);
  if (reason === undefined) return undefined;
  const passedOver = [{ agent: name, reasons: unfit(standing) }];
  return refuse(reason, `${quoted(name)}: ${REASONS[reason].meaning}`, {
    passedOver,
    retryAt: standing.openUntil,
  });
}

/** Everybody that has the skill, and those that are named besides. */
function toAll(named: readonly Chosen[], skill: string, registry: Registry, standings: Standings): Choice {
  const { fit, passedOver } = candidates(skill, registry, standings);
  const others = fit.filter(({ agent }) => !named.some((of) => of.agent === agent));
  const chosen = [...named, ...others.map(({ agent }): Chosen => ({ agent, why: "all", despite: [] }))];
  return chosen.length > 0 ? { chosen, passedOver } : nobody(skill, passedOver);
}

/** One of those that have the skill: of the highest priority that there is, by weight; else the default. */
function bySkill(skill: string, registry: Registry, standings: Standings, random: () => number): Choice {
  const { fit, passedOver } = candidates(skill, registry, standings);
  if (fit.length === 0) return byDefault(skill, passedOver, registry, standings);
  const highest = Math.max(...fit.map(({ priority }) => priority));
  const { agent } = draw(
    fit.filter(({ priority }) => priority === highest),
    random(),
  );
  const others = fit
    .filter((of) => of.agent !== agent)
    .map(
      (of): PassedOver => ({
        agent: of.agent,
        reasons: [of.priority < highest ? "outranked" : "not_drawn"],
      }),
    );
  return { chosen: [{ agent, why: "skill", despite: [] }], passedOver: [...passedOver, ...others] };
}

/** The default takes what no other does, if it can be asked itself. */
function byDefault(
  skill: string,
  passedOver: readonly PassedOver[],
  { agents, fallback }: Registry,
  standings: Standings,
): Choice {
  if (fallback === undefined || !agents.has(fallback) || passedOver.some(({ agent }) => agent === fallback))
    return nobody(skill, passedOver);
  const reasons = unfit(standings(fallback));
  if (reasons.length > 0) return nobody(skill, [...passedOver, { agent: fallback, reasons }]);
  return { chosen: [{ agent: fallback, why: "default", despite: [] }], passedOver };
}

function nobody(skill: string, passedOver: readonly PassedOver[]): Choice {
  const each = passedOver.map(({ agent, reasons }) => `${quoted(agent)} is ${reasons.join(" and ")}`);
  const who = each.length === 0 ? "no agent has it" : listed(each);
  return refuse("no_candidate", `nobody can be asked for ${quoted(skill)}: ${who}`, { passedOver });
}

interface Candidate {
  readonly agent: string;
  readonly priority: number;
  readonly weight: number;
}

/** Those that have a skill: who can be asked, and who is left out. */
function candidates(
  skill: string,
  registry: Registry,
  standings: Standings,
): { fit: Candidate[]; passedOver: PassedOver[] } {
  const fit: Candidate[] = [];
  const passedOver: PassedOver[] = [];
  for (const { name: agent, priority } of withSkill(registry, skill)) {
    const standing = standings(agent);
    const reasons = unfit(standing);
    if (reasons.length > 0) passedOver.push({ agent, reasons });
    else fit.push({ agent, priority, weight: standing.weight });
  }
  return { fit, passedOver };
}
