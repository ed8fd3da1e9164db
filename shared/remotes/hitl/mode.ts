import type { CardExtensions, HitlEntry } from "../extensions.ts";
import { BLAST_RADII, type BlastRadius, HITL_MODES, type HitlMode } from "./scales.ts";

/** What holds for a skill of a remote agent: computed once for a task, and stored, so that it stays what it was. */
export interface Holding {
  /** The mode in force; what the card declares may be less. */
  readonly mode: HitlMode;
  /** Absent when neither card nor file says how far the skill reaches. */
  readonly radius?: BlastRadius;
  /** Whose approval counts; the requester's unless it is `operator`. */
  readonly reviewer: "requester" | "operator";
  /** For a veto: how long one counts, in milliseconds. */
  readonly vetoTtlMs?: number;
}

/** How long a veto counts of which the card does not say it, in milliseconds. */
export const VETO_TTL_MS = 60_000;
/** A shorter window is none for a person, whatever the card says, in milliseconds. */
export const MIN_VETO_TTL_MS = 5_000;

/** From here on what a skill does reaches others: nothing there is done that nobody has agreed to or heard of. */
const FAR = BLAST_RADII.indexOf("repo");

/** The stricter of two modes, or the wider of two radii. */
function further<T>(order: readonly T[], one: T | undefined, other: T | undefined): T | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return order.indexOf(one) >= order.indexOf(other) ? one : other;
}

/**
 * The mode that holds for a skill. What is declared holds as it is, but for `autonomous`: what is done in silence must
 * be declared so, and be known to reach no further than its project. What declares nothing is gated from `repo` on, and
 * otherwise told.
 *
 * @param declared by the card, or stricter by the operator's file; absent when there is neither
 * @param radius absent when nobody says how far the skill reaches: it is then never done in silence
 */
export function effectiveMode(declared: HitlMode | undefined, radius: BlastRadius | undefined): HitlMode {
  const reach = radius === undefined ? undefined : BLAST_RADII.indexOf(radius);
  if (declared === undefined) return reach !== undefined && reach >= FAR ? "gated" : "notification";
  if (declared !== "autonomous") return declared;
  return reach !== undefined && reach < FAR ? "autonomous" : "notification";
}

/** What the operator's file says of a remote, or of one of its skills: the card may be stricter, and not less. */
export interface OperatorSays {
  readonly mode?: HitlMode | undefined;
  readonly radius?: BlastRadius | undefined;
}

/** What of a card's extensions tells how its skills are held. */
type CardSays = Pick<CardExtensions, "hitl" | "blast" | "unread">;

/** What a card says of a skill: what of it could not be read counts as the strictest (docs/hitl.md). */
export function declaredOf(
  skill: string,
  card: CardSays | undefined,
): Partial<Omit<HitlEntry, "skill">> & OperatorSays {
  const entry = card?.hitl.find((of) => of.skill === skill);
  const radius = card?.blast.find((of) => of.skill === skill)?.radius;
  const isUnread = (name: string) => card?.unread?.some((of) => of === name) ?? false;
  return {
    ...entry,
    mode: isUnread("hitl-mode-v1") ? further(HITL_MODES, "gated", entry?.mode) : entry?.mode,
    radius: isUnread("blast-v1") ? "public" : radius,
  };
}

/**
 * What holds for a skill, by its card and the operator's file: of each the stricter.
 *
 * @param card the extensions of the remote's last good card; absent while there is none
 * @param file what the file says, of the remote and of the skill
 */
export function holdingOf(
  skill: string,
  card: CardSays | undefined,
  file: readonly (OperatorSays | undefined)[] = [],
): Holding {
  const declared = declaredOf(skill, card);
  const radius = file.reduce((so, of) => further(BLAST_RADII, so, of?.radius), declared.radius);
  const own = effectiveMode(declared.mode, radius);
  const mode = file.reduce<HitlMode>((so, of) => further(HITL_MODES, so, of?.mode) ?? so, own);
  return {
    mode,
    ...(radius !== undefined && { radius }),
    reviewer: declared.reviewer === "operator" ? "operator" : "requester",
    ...(mode === "veto" && { vetoTtlMs: Math.max(MIN_VETO_TTL_MS, declared.vetoTtlMs ?? VETO_TTL_MS) }),
  };
}

/**
 * What holds for a skill that a card does not have: what is asked under its name may be any of what the agent does, and
 * is held as the strictest of that. Of each part of it, over all skills of which the card has anything, and the skill
 * itself.
 *
 * @param card @param file as for {@link holdingOf}
 */
export function holdingOfAny(
  skill: string,
  card: CardSays,
  file: readonly (OperatorSays | undefined)[] = [],
): Holding {
  const skills = new Set([...card.hitl, ...card.blast].map((of) => of.skill));
  return [...skills].map((of) => holdingOf(of, card, file)).reduce(stricter, holdingOf(skill, card, file));
}

function stricter(one: Holding, other: Holding): Holding {
  const mode = further(HITL_MODES, one.mode, other.mode) ?? one.mode;
  const radius = further(BLAST_RADII, one.radius, other.radius);
  const vetoTtlMs = Math.max(one.vetoTtlMs ?? 0, other.vetoTtlMs ?? 0);
  return {
    mode,
    ...(radius !== undefined && { radius }),
    reviewer: one.reviewer === "operator" ? "operator" : other.reviewer,
    ...(mode === "veto" && { vetoTtlMs }),
  };
}
