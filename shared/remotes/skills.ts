import type { RemoteConfig } from "../config/remotes.ts";
import type { CardSkill } from "./card.ts";

/** A skill of a remote agent, and who says that it has it: the operator's file comes first. */
export interface RemoteSkill extends CardSkill {
  readonly from: "file" | "card";
}

/** What has changed of an agent's skills, and what they are. */
export interface Reconciled {
  /** Ids that the card has and had not, and that the file has not. */
  readonly toAdd: readonly string[];
  /** Ids that the card had and has no more, and that the file has not. */
  readonly toRemove: readonly string[];
  /** The file's, in its order, then those of the card that are not in the file. */
  readonly skills: readonly RemoteSkill[];
}

/**
 * Brings an agent's skills in line with a new card. Skills of the file are never removed, and what the file says of one
 * goes before what the card does; what it does not say is the card's.
 *
 * @param card of the new card
 * @param previous of the card before; none when there was none
 * @param file of the operator's file
 */
export function reconcileSkills(
  card: readonly CardSkill[],
  previous: readonly CardSkill[],
  file: RemoteConfig["skills"],
): Reconciled {
  const before = new Set(previous.map(({ id }) => id));
  const declared = new Set(file.map(({ name }) => name));
  const found = new Map(card.map((of) => [of.id, of]));
  const ofCard = [...found.values()].filter(({ id }) => !declared.has(id));
  return {
    toAdd: ofCard.map(({ id }) => id).filter((id) => !before.has(id)),
    toRemove: [...before].filter((id) => !found.has(id) && !declared.has(id)),
    skills: [
      ...[...new Map(file.map((of) => [of.name, of])).values()].map(
        ({ name: id, description }): RemoteSkill => {
          const { name = id, tags = [], description: told = "" } = found.get(id) ?? {};
          return { id, name, description: description ?? told, tags, from: "file" };
        },
      ),
      ...ofCard.map((of): RemoteSkill => ({ ...of, from: "card" })),
    ],
  };
}
