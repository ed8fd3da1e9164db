import { given, optional } from "../wire/reading.ts";
import * as z from "../zod.ts";
import { BLAST_RADII, type BlastRadius, HITL_MODES, type HitlMode } from "./hitl/scales.ts";

/**
 * The extensions of a card that we know, with their parameters as typed values. What is not as expected is noted, one entry
 * at a time: a card is no worse for a slip in one of its entries. A skill of which something is said that cannot be read
 * is held as if the strictest had been said of it, and where it cannot be read of which skills, that counts of each
 * (docs/hitl.md, what a card says).
 */

/** Where the URIs of the extensions begin; the second is what they were called before. */
const BASES = ["https://proto-labs.ai/a2a/ext/", "https://protolabs.ai/a2a/ext/"];

/** What they are called there. */
const KNOWN: readonly string[] = [
  "hitl-mode-v1",
  "blast-v1",
  "cost-v1",
  "confidence-v1",
  "tool-call-v1",
  "worldstate-delta-v1",
  "effect-domain-v1",
  "trace-v1",
];

/** The longest time in which a veto counts: a week. */
const MAX_VETO_MS = 7 * 86_400_000;
const MAX_NOTE = 1_000;

const cutText = (most: number) =>
  optional(
    z.pipe(
      z.string(),
      z.transform((text) => text.slice(0, most)),
    ),
  );

const hitlEntry = z.whenUsed(() =>
  z.object({
    mode: z.enum(HITL_MODES),
    vetoTtlMs: optional(z.int().check(z.gte(1), z.lte(MAX_VETO_MS))),
    reviewer: optional(z.string().check(z.minLength(1), z.maxLength(128))),
    note: cutText(MAX_NOTE),
  }),
);
const blastEntry = z.whenUsed(() => z.object({ radius: z.enum(BLAST_RADII), note: cutText(MAX_NOTE) }));

/** What a card says of who must agree before a skill acts. */
export interface HitlEntry {
  readonly skill: string;
  readonly mode: HitlMode;
  /** How long a veto counts, in milliseconds. */
  readonly vetoTtlMs?: number | undefined;
  readonly reviewer?: string | undefined;
  readonly note?: string | undefined;
}
/** What a card says of how far a skill reaches. */
export interface BlastEntry {
  readonly skill: string;
  readonly radius: BlastRadius;
  readonly note?: string | undefined;
}

/** The extensions that tell by skill how it is to be held. */
export const BY_SKILL = ["hitl-mode-v1", "blast-v1"] as const;

/** An extension as a card declares it (A2A 1.0 §4.4.4). */
export interface DeclaredExtension {
  readonly uri: string;
  readonly required: boolean;
  readonly params?: unknown;
}

/** What a card's extensions say, as far as we know them. */
export interface CardExtensions {
  /** All URIs, known or not. */
  readonly uris: readonly string[];
  /** Those among them that the agent insists on. */
  readonly required: readonly string[];
  readonly hitl: readonly HitlEntry[];
  readonly blast: readonly BlastEntry[];
  /**
   * Those of which not all could be read, so that no skill is known to be free of them: of each of the card's skills they
   * say the strictest. Absent of a card that was read when this was not yet looked at.
   */
  readonly unread?: readonly (typeof BY_SKILL)[number][] | undefined;
  /** Whether it tells what a task has cost, how sure it is, which tools it calls, what it has changed; and takes a trace. */
  readonly cost: boolean;
  readonly confidence: boolean;
  readonly toolCall: boolean;
  readonly worldstateDelta: boolean;
  readonly trace: boolean;
}

/** Reads what a card declares; each of `notes` names the place of what is not as expected. */
export function readExtensions(declared: readonly DeclaredExtension[]): {
  readonly extensions: CardExtensions;
  readonly notes: readonly string[];
} {
  const notes: string[] = [];
  const whole = new Set<string>();
  const names = declared.map(({ uri }) => nameOf(uri));
  const has = (...known: string[]) => names.some((name) => name !== undefined && known.includes(name));
  const entries = <T extends object>(name: string, schema: () => z.ZodMiniType<T>, unread: Unread) =>
    declared.flatMap(({ params }, at) => {
      // Absent, and null in ProtoJSON, is nothing declared; whatever else stands there was meant to say something.
      if (names[at] !== name || params === undefined || params === null) return [];
      const place = `extensions[${at}] (${name})`;
      const { problem, found } = readEntries(params, { schema: schema(), unread, place, notes });
      if (problem === undefined) return found;
      whole.add(name);
      // First, for notes are bounded where they are kept.
      notes.unshift(`${place}: every skill counts as ${Object.values(unread).join()}: ${problem}`);
      return found;
    });
  const extensions = {
    uris: [...new Set(declared.map(({ uri }) => uri))],
    required: [...new Set(declared.filter(({ required }) => required).map(({ uri }) => uri))],
    hitl: firstOfEach(entries("hitl-mode-v1", hitlEntry, { mode: "gated" }), "hitl-mode-v1", notes),
    blast: firstOfEach(entries("blast-v1", blastEntry, { radius: "public" }), "blast-v1", notes),
    unread: BY_SKILL.filter((name) => whole.has(name)),
    cost: has("cost-v1"),
    confidence: has("confidence-v1"),
    toolCall: has("tool-call-v1"),
    worldstateDelta: has("worldstate-delta-v1", "effect-domain-v1"),
    trace: has("trace-v1"),
  };
  return { extensions, notes };
}

/** Those of a card's extensions that we understand, by their URIs. */
export function understood(uris: readonly string[]): string[] {
  return uris.filter((uri) => KNOWN.includes(nameOf(uri) ?? ""));
}

function nameOf(uri: string): string | undefined {
  const base = BASES.find((of) => uri.startsWith(of));
  return base === undefined ? undefined : uri.slice(base.length);
}

const bySkill = z.whenUsed(() => z.object({ skills: z.record(z.string(), z.unknown()) }));

/** More skills than a card may have are not looked at one by one. */
const MOST_ENTRIES = 256;

/** What an entry counts as that cannot be read. */
type Unread = Readonly<Record<string, string>>;

/** The entries that there are, and what makes that they are not all. */
function readEntries<T extends object>(
  params: unknown,
  of: { schema: z.ZodMiniType<T>; unread: Unread; place: string; notes: string[] },
): { readonly problem?: string; readonly found: (T & { readonly skill: string })[] } {
  const { schema, unread, place, notes } = of;
  const parsed = bySkill().safeParse(params);
  if (!parsed.success)
    return { problem: "expected params.skills to be an object by the skills' ids", found: [] };
  const all = Object.entries(parsed.data.skills);
  const found = all.slice(0, MOST_ENTRIES).flatMap(([skill, value], at) => {
    // The skill's name is the other side's text, and so is told by its number.
    const entry = `${place}: entry ${at + 1}`;
    if (skill.length === 0 || skill.length > 128) {
      notes.push(`${entry} is left out: its name is not as expected`);
      return [];
    }
    const read = schema.safeParse(value);
    if (read.success) return [given({ ...read.data, skill })];
    const field = read.error.issues[0]?.path.join(".") || "value";
    notes.push(`${entry} counts as ${Object.values(unread).join()}: its ${field} is not as expected`);
    return [given({ ...schema.parse(unread), skill })];
  });
  return all.length > MOST_ENTRIES
    ? { problem: `expected at most ${MOST_ENTRIES} skills`, found }
    : { found };
}

/** What is said of a skill twice is not chosen among: the first counts. */
function firstOfEach<T extends { readonly skill: string }>(
  entries: readonly T[],
  name: string,
  notes: string[],
): T[] {
  const seen = new Set<string>();
  const kept = entries.filter(({ skill }) => !seen.has(skill) && seen.add(skill));
  if (kept.length < entries.length)
    notes.push(`${name}: a skill that is told twice counts as it is told first`);
  return kept;
}
