import { MAX_RECORD_BYTES } from "./bucket-facts.ts";
import type { CardSkill, PeerRecord } from "./record.ts";
import { isClean } from "./sanitize.ts";

/** What a card says of its agent, and of each skill, in characters. */
export const MAX_CARD_DESCRIPTION = 4_000;
export const MAX_SKILL_DESCRIPTION = 1_000;
/** The names of agents, versions and skills, and each tag, in characters. */
export const MAX_CARD_NAME = 128;
export const MAX_CARD_TAG = 64;
export const MAX_CARD_TAGS = 16;

/**
 * A record as bytes: JSON in which also `<`, `>`, `&` and two line separators are escaped. Readers in Go write it again
 * in this form (Go's encoding/json, Marshal) and may measure that; so it is as long to them as to us.
 */
export function encodeRecord(record: object): Uint8Array {
  const escaped = JSON.stringify(record).replaceAll(
    /[<>&\u2028\u2029]/g,
    (of) => `\\u${of.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return new TextEncoder().encode(escaped);
}

/**
 * A record that is no longer than {@link MAX_RECORD_BYTES}. Texts that are too long by themselves are cut; when all
 * together are still too long there go, one after the other and only as far as needed: the skills' tags, their
 * descriptions beyond 100 characters, all of these, the agent's description beyond 400 characters, and skills from the
 * end of the list.
 */
export function fitted(record: PeerRecord): PeerRecord {
  const { card, extendedCard } = record;
  let next: PeerRecord = {
    ...record,
    card: {
      ...card,
      description: cut(card.description, MAX_CARD_DESCRIPTION),
      version: cut(card.version, MAX_CARD_NAME) || "unknown",
      skills: card.skills.map((skill) => ({
        ...skill,
        name: cut(skill.name, MAX_CARD_NAME) || skill.id,
        description: cut(skill.description, MAX_SKILL_DESCRIPTION),
        tags: skill.tags.slice(0, MAX_CARD_TAGS).map((tag) => cut(tag, MAX_CARD_TAG)),
      })),
    },
    extendedCard: { ...extendedCard, display_name: cut(extendedCard.display_name, MAX_CARD_NAME) },
  };
  for (const shorten of SHORTER) {
    if (fits(next)) return next;
    next = shorten(next);
  }
  return fits(next) ? next : withSkills(next, mostThatFit(next));
}

type Shorten = (record: PeerRecord) => PeerRecord;

const SHORTER: readonly Shorten[] = [
  eachSkill((skill) => ({ ...skill, tags: [] })),
  eachSkill((skill) => ({ ...skill, description: cut(skill.description, 100) })),
  eachSkill((skill) => ({ ...skill, description: "" })),
  (record) => ({
    ...record,
    card: { ...record.card, description: cut(record.card.description, 400) },
  }),
];

function eachSkill(shorten: (skill: CardSkill) => CardSkill): Shorten {
  return (record) => withSkills(record, record.card.skills.map(shorten));
}

function withSkills(record: PeerRecord, skills: readonly CardSkill[]): PeerRecord {
  return { ...record, card: { ...record.card, skills } };
}

function fits(record: PeerRecord): boolean {
  return encodeRecord(record).byteLength <= MAX_RECORD_BYTES;
}

/** As many skills, from the first on, as the record has room for. */
function mostThatFit(record: PeerRecord): readonly CardSkill[] {
  const { skills } = record.card;
  let [enough, tooMany] = [0, skills.length];
  while (tooMany - enough > 1) {
    const middle = (enough + tooMany) >> 1;
    if (fits(withSkills(record, skills.slice(0, middle)))) enough = middle;
    else tooMany = middle;
  }
  return skills.slice(0, enough);
}

/**
 * The beginning of a text, by whole characters. What a cut makes of a text may be what peers blank (the first twenty of
 * thirty digits): then it goes as well.
 */
function cut(text: string, characters: number): string {
  if (text.length <= characters) return text;
  for (let end = characters - 1; end > 0; end = Math.floor(end * 0.9)) {
    const begun = `${text
      .slice(0, end)
      .replace(/[\uD800-\uDBFF]$/, "")
      .trimEnd()}…`;
    if (isClean(begun)) return begun;
  }
  return "";
}
