import { isDeepStrictEqual } from "node:util";
import type { HttpFacts, SignatureFacts, Standing } from "../cards/peer-facts.ts";
import type { Stored } from "../cards/peer-store.ts";
import type { RemoteConfig } from "../config/remotes.ts";
import { given } from "../wire/reading.ts";
import { readCard } from "./card.ts";
import { type CardFetch, fetchCard } from "./fetch-card.ts";
import { MAX_REASON } from "./probe.ts";
import type { SendRequest } from "./request.ts";
import { reconcileSkills } from "./skills.ts";

/** Notes that are kept of a card. */
export const MAX_NOTES = 20;

/** What a card's signatures say, as far as it decides (docs/cards-signing.md). */
export type Verdict =
  /** `note`: what an operator should know of it. */
  | { readonly state: "unsigned"; readonly note?: string }
  /** `card`: what was signed, in place of all that came. */
  | { readonly state: "valid"; readonly kid: string; readonly key: string; readonly card?: unknown }
  | { readonly state: "invalid"; readonly reason: string }
  /** Well signed by another key than the pinned one. */
  | { readonly state: "changed"; readonly offered: string };

/**
 * Judges a card's signatures.
 *
 * @param card as `JSON.parse` gave it
 * @param pinned the key that cards of the agent were signed with so far
 */
export type VerifyCard = (
  card: unknown,
  pinned?: { readonly key: string; readonly kid?: string },
) => Promise<Verdict>;

export interface RefreshOptions {
  readonly send: SendRequest;
  /** Without it signatures are not looked at, and say so. */
  readonly verify?: VerifyCard;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Also asks for a card that is still fresh. */
  readonly force?: boolean;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** What is known of an agent before a refresh. */
export interface KnownRemote {
  readonly facts?: Stored<HttpFacts> | undefined;
  readonly standing?: Standing | undefined;
}

/** What came of refreshing an agent's card. */
export interface RefreshResult {
  readonly name: string;
  /** `fresh`: not asked for, the one there is still holds; `unchanged`; `updated`; `failed`: the last good one is kept. */
  readonly outcome: "fresh" | "unchanged" | "updated" | "failed";
  /** Facts that take the place of those of `version`. */
  readonly facts?: HttpFacts;
  readonly version: number;
  readonly standing: Standing;
  /** Ids of skills that have come, and that have gone; those of the file are never among them. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Of `failed`: all that was tried and why it failed, since when, and what is kept; for one line of the log. */
  readonly warning?: string;
}

/**
 * Asks a remote agent for its card, and says what has changed. A card that cannot be had or that must not be taken, such
 * as one that another key has signed, changes nothing of what is known but that.
 *
 * @throws only the reason of `options.signal`
 */
export async function refreshRemote(
  remote: Pick<RemoteConfig, "name" | "url" | "headers" | "skills">,
  known: KnownRemote,
  options: RefreshOptions,
): Promise<RefreshResult> {
  // At another address it is another agent, whatever it is called.
  const stored = known.facts?.value.url === remote.url ? known.facts.value : undefined;
  const version = known.facts?.version ?? 0;
  const before: Standing =
    known.standing !== undefined && (stored !== undefined || known.facts === undefined)
      ? known.standing
      : { id: remote.name, failures: 0 };
  const nothing = { name: remote.name, version, added: [], removed: [] };
  const { force = false, now } = options;
  const current = readAsNow(stored);
  if (!force && current !== undefined && before.failures === 0 && now() < (before.freshUntil ?? 0))
    return { ...nothing, outcome: "fresh", standing: before };

  const { url, headers } = remote;
  const { send, signal, timeoutMs } = options;
  const fetched = await fetchCard({
    ...{ url, headers, send, now, known: current },
    ...(signal && { signal }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  });
  const judged = await judge(fetched, { url, stored, verify: options.verify });
  if ("reason" in judged) {
    const standing = failedStanding(before, judged, now());
    return {
      ...nothing,
      outcome: "failed",
      standing,
      warning: warningOf(remote, standing, stored),
    };
  }
  const standing = given<Standing>({
    id: remote.name,
    seen: now(),
    freshUntil: judged.fetched.freshUntil > now() ? judged.fetched.freshUntil : undefined,
    failures: 0,
    probe: before.probe,
  });
  if (judged.fetched.kind === "unchanged") return { ...nothing, outcome: "unchanged", standing };

  const { card, path, etag, notes } = judged.fetched;
  const facts: HttpFacts = given({
    transport: "http",
    id: remote.name,
    url,
    path,
    etag,
    card,
    notes: notes.slice(0, MAX_NOTES),
    signature: judged.signature,
    firstSeen: stored?.firstSeen ?? now(),
  });
  // As it would be read again: what is undefined is not stored.
  if (isDeepStrictEqual(stored, JSON.parse(JSON.stringify(facts))))
    return { ...nothing, outcome: "unchanged", standing };
  const { toAdd, toRemove } = reconcileSkills(card.skills, stored?.card.skills ?? [], remote.skills);
  return { ...nothing, outcome: "updated", facts, standing, added: toAdd, removed: toRemove };
}

/** Undefined of what was stored before `unread` was looked at: it may be too lenient, and so is read anew at once. */
function readAsNow(stored: HttpFacts | undefined): HttpFacts | undefined {
  return stored?.card.extensions.unread === undefined ? undefined : stored;
}

type Taken = Exclude<CardFetch, { kind: "failed" }>;
interface Refused {
  readonly reason: string;
  readonly offeredKey?: string;
}

/** Whether what came may be taken. */
async function judge(
  fetched: CardFetch,
  {
    url,
    stored,
    verify,
  }: {
    readonly url: string;
    readonly stored: HttpFacts | undefined;
    readonly verify: VerifyCard | undefined;
  },
): Promise<{ readonly fetched: Taken; readonly signature: SignatureFacts } | Refused> {
  if (fetched.kind === "failed") return fetched;
  if (fetched.kind === "unchanged" || verify === undefined)
    return { fetched, signature: stored?.signature ?? { state: "unverified" } };
  const { key, kid } = stored?.signature ?? {};
  const pinned = key === undefined ? undefined : { key, ...(kid !== undefined && { kid }) };
  const verdict = await verify(fetched.value, pinned);
  switch (verdict.state) {
    case "unsigned":
      return { fetched: noted(fetched, verdict.note), signature: { state: "unsigned" } };
    case "valid": {
      const signed = verdict.card === undefined ? fetched : signedOf(fetched, verdict.card, url);
      if ("reason" in signed) return signed;
      return { fetched: signed, signature: { state: "valid", key: verdict.key, kid: verdict.kid } };
    }
    case "invalid":
      return { reason: `${fetched.path}: its signature counts for nothing: ${verdict.reason}` };
    case "changed":
      return {
        reason: `${fetched.path}: it is signed by another key than before, which an operator must accept`,
        offeredKey: verdict.offered,
      };
  }
}

function noted<T extends Extract<CardFetch, { kind: "card" }>>(fetched: T, note: string | undefined): T {
  return note === undefined ? fetched : { ...fetched, notes: [note, ...fetched.notes] };
}

/** The card that was fetched, as far as it was signed: what the signature does not cover might be anybody's. */
function signedOf(
  fetched: Extract<CardFetch, { kind: "card" }>,
  card: unknown,
  url: string,
): Extract<CardFetch, { kind: "card" }> | Refused {
  const read = readCard(Buffer.from(JSON.stringify(card)), url);
  if (read.ok) return { ...fetched, ...read.value };
  return { reason: `${fetched.path}: what of it is signed is no card: ${read.reason}` };
}

function failedStanding(before: Standing, { reason, offeredKey }: Refused, now: number): Standing {
  return given<Standing>({
    ...before,
    freshUntil: undefined,
    failures: before.failures + 1,
    failingSince: before.failures === 0 ? now : before.failingSince,
    reason: reason.slice(0, MAX_REASON),
    offeredKey,
  });
}

function warningOf(
  { name }: Pick<RemoteConfig, "name">,
  { failures, failingSince = 0, seen, reason }: Standing,
  stored: HttpFacts | undefined,
): string {
  const at = (ms: number) => new Date(ms).toISOString();
  const kept =
    stored === undefined ? "no card of it is known" : `its card of ${at(seen ?? stored.firstSeen)} is kept`;
  return `remote agent ${name}: its card cannot be refreshed (${failures} in a row, since ${at(failingSince)}), ${kept}: ${reason}`;
}

/**
 * The facts with another key pinned: what an operator does who accepts the one that was offered.
 *
 * @param key none to take the next card by whatever key, or unsigned
 */
export function withAcceptedKey(facts: HttpFacts, key: string | undefined): HttpFacts {
  const { etag: _, ...rest } = facts;
  // Without what the card was called it comes anew, and is judged by this key.
  return { ...rest, signature: { state: "unverified", ...(key !== undefined && { key }) } };
}
