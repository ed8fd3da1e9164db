import type { HttpFacts } from "../../cards/peer-facts.ts";
import type { RemoteConfig } from "../../config/remotes.ts";
import type { Part } from "../../wire/index.ts";
import { type Holding, holdingOf, holdingOfAny } from "../hitl/mode.ts";

/** On what terms a task goes to a remote agent (docs/hitl.md): stored before anything else, and the same to its end. */
export interface Terms extends Holding {
  /** How long an approval is waited for, in milliseconds. */
  readonly approvalMs?: number;
}

/**
 * The terms as card and file have them now. A skill that the card does not have, as the one for everything of an agent
 * whose file names none (docs/hitl.md), is held as the strictest that it has.
 */
export function termsOf(
  skill: string,
  { hitl, skills }: Pick<RemoteConfig, "hitl" | "skills">,
  facts: Pick<HttpFacts, "card"> | undefined,
): Terms {
  const ofSkill = skills.find(({ name }) => name === skill)?.hitl;
  const approvalSec = hitl?.approvalSec;
  const file = [hitl, ofSkill];
  const card = facts?.card;
  const isOfCard = card === undefined || card.skills.some(({ id }) => id === skill);
  return {
    ...(isOfCard ? holdingOf(skill, card?.extensions, file) : holdingOfAny(skill, card.extensions, file)),
    ...(approvalSec !== undefined && { approvalMs: approvalSec * 1_000 }),
  };
}

/** What is to be sent, for whom is asked to read. */
export function shownOf(parts: readonly Part[]): string {
  return parts.map(shown).join("\n");
}

function shown(part: Part): string {
  if ("text" in part) return part.text;
  if ("data" in part) return JSON.stringify(part.data) ?? "";
  return "url" in part ? part.url : `(a file${part.filename === undefined ? "" : `, ${part.filename}`})`;
}
