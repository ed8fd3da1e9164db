import { createHash } from "node:crypto";
import * as z from "../zod.ts";

const AGENT_ID_LENGTH = 64;
const ALIAS_LENGTH = 64;

/** An id that changes with every start of a process cannot be anyone's address (docs/wire.md §2). */
function isStable(id: string): boolean {
  return !/^\d+$/.test(id) && !/(^|[-_])pid[-_]?\d+($|[-_])/i.test(id) && !/[-_]\d{10,}$/.test(id);
}

/** The id of a runtime: sender or receiver of messages. */
export const agentId = z.whenUsed(() =>
  z
    .string()
    .check(
      z.regex(/^[A-Za-z0-9_-]{1,64}$/, "expected 1 to 64 of A-Z, a-z, 0-9, _ and -"),
      z.refine(isStable, "expected an id that is neither all digits nor made of a process id or a timestamp"),
    ),
);

const token = z.whenUsed(() =>
  z.string().check(z.regex(/^[A-Za-z0-9_-]{1,128}$/, "expected 1 to 128 of A-Z, a-z, 0-9, _ and -")),
);

/** The id of a message, and of any other single token: kinds, instances. */
export const messageId = token;

/** The id of a task. The prefix `msg_` is kept for the keys of tasks that were never accepted. */
export const taskId = z.whenUsed(() =>
  z.string().check(
    z.regex(/^[A-Za-z0-9_-]{1,96}$/, "expected 1 to 96 of A-Z, a-z, 0-9, _ and -"),
    z.refine((id) => !id.startsWith("msg_"), "expected an id that does not start with msg_"),
  ),
);

/** What an event's subject names its task by: a task id, or `msg_` and the message id. */
export const taskKey = token;

/** The id of an artifact, unique in its task; it is also the message id of the artifact's event. */
export const artifactId = token;

/** `msg_` and the message id: the key of a task that is rejected before it has an id. */
export function rejectionKey(message: string): string {
  return `msg_${message}`;
}

/** The longest message id whose rejection still has a valid key. */
export const MAX_TASK_MESSAGE_ID = 128 - rejectionKey("").length;

/** The task that a message asks for: the same three values give the same task, whoever computes it. */
export function taskIdOf(from: string, to: string, message: string): string {
  return `task_${sha256(`${from}:${to}:${message}`).slice(0, 24)}`;
}

/**
 * The public alias (`channelRef`) of a named place.
 *
 * @param stableKey what identifies the place whatever its name; parts are trimmed and joined with NUL
 */
export function runtimeAlias(name: string, stableKey: readonly string[]): string {
  const key = stableKey.map((part) => part.trim()).join("\0");
  const slug = slugOf(name);
  const hash = sha256(key === "" ? name : key).slice(0, 8);
  if (!isPublic(slug)) return `ch-${hash}`;
  if (key === "") return cut(slug, ALIAS_LENGTH);
  return `${cut(slug, ALIAS_LENGTH - 1 - hash.length)}-${hash}`;
}

/**
 * The id of the runtime that a bot (or deployment) runs under an alias: `<bot>-<alias>` where that is a valid id,
 * otherwise one with a hash.
 *
 * @throws RangeError when no valid id comes of it (a hash of digits alone, a bot id with other characters)
 */
export function runtimeAgentId(bot: string, alias: string, stableKey: string): string {
  const slug = slugOf(alias);
  const plain = `${bot}-${slug}`;
  if (isPublic(slug) && agentId().safeParse(plain).success) return plain;

  const hash = sha256(`${bot}\0${stableKey.trim() === "" ? alias : stableKey}`).slice(0, 12);
  const tail = `-rt-${hash}`;
  const hashed = `${cut(bot, AGENT_ID_LENGTH - tail.length) || "rt"}${tail}`;
  if (agentId().safeParse(hashed).success) return hashed;
  throw new RangeError(`runtime id: expected one of A-Z, a-z, 0-9, _ and - that is stable, got ${hashed}`);
}

/**
 * What existing peers blank wherever it stands in a card: words that secrets are called by, with the folding of Unicode
 * that their patterns have, and numbers that may be the ids of persons (docs/cards.md, what peers blank).
 */
export const BLANKED_WORDS = /token|secret|password|api[_-]?key|credential|mcp\.json/giu;
export const BLANKED_NUMBERS = /\b\d{17,20}\b/g;

/** The first part of an id that peers would blank, if there is one: a card with such an id is invalid to them. */
export function blankedIn(id: string): string | undefined {
  return (id.match(BLANKED_WORDS) ?? id.match(BLANKED_NUMBERS))?.[0];
}

function slugOf(raw: string): string {
  return raw
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .toLowerCase();
}

/** Whether a slug may be shown: it says something, and is no number that could be somebody's account id. */
function isPublic(slug: string): boolean {
  return slug !== "" && !/^\d+$/.test(slug) && !/\d{15}/.test(slug);
}

function cut(id: string, length: number): string {
  return id.slice(0, length).replace(/[-_]+$/, "");
}

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}
