import { isDeepStrictEqual } from "node:util";
import type { Amiss, NatsFacts, NatsLedger, PeerFacts, Sighting } from "./peer-facts.ts";
import { type ReadRecord, readPeerRecord } from "./peer-record.ts";
import { natsStatus } from "./peer-status.ts";
import type { Stored } from "./peer-store.ts";

/** Peers on NATS that are kept; a new one takes the place of the one that has been stale for longest, never of a live one. */
export const MAX_PEERS = 256;
/** Records that are no records which are kept, with their reasons. */
export const MAX_AMISS = 100;
/** How long a peer is remembered that is not there. */
export const FORGET_PEERS_AFTER_MS = 30 * 86_400_000;
/**
 * How often it is written, in milliseconds, that nothing new was seen. What is stored is at most so much older than the
 * last look, and a look comes each minute: together no more than the 90 seconds after which nobody would be known to be
 * there. Whether a peer was silent for 90 seconds is told from what one look has seen and when, which are written
 * together, so that this delays the news of a silence, but makes none (peer-status.ts).
 */
export const SEEN_EVERY_MS = 30_000;

/** A key's value in the bucket of cards. */
export interface LookedAt {
  readonly key: string;
  /** When it was put or taken away, in milliseconds since 1970 by the server's clock. */
  readonly at: number;
  /** Its bytes; nothing where it was taken away. */
  readonly bytes?: Uint8Array | undefined;
}

/** All that a look through the bucket has found. */
export interface Look {
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  readonly entries: readonly LookedAt[];
  /** Keys that are our own agents': no peers. */
  readonly own?: ReadonlySet<string>;
}

/** What is to be written after a look. */
export interface AfterLook {
  /** Facts that are new or have changed. */
  readonly put: readonly NatsFacts[];
  readonly forget: readonly string[];
  /** The ledger; nothing when what is stored is still good enough. */
  readonly ledger?: NatsLedger;
  /** What is known by now of who is there, whether it is to be written or not. */
  readonly known: NatsLedger;
}

type Known = ReadonlyMap<string, Stored<PeerFacts>>;
/** A record that was read: what it says is read again where it is wanted, for a look may hold a great many. */
interface Reading extends Pick<ReadRecord, "expiresAt"> {
  readonly seen: number;
  readonly entry: LookedAt;
}

/** Puts what a look has found together with what was known. Pure; a malformed record is listed, and hides no other. */
export function afterLook(known: Known, before: NatsLedger, look: Look): AfterLook {
  const { readings, gone, wrong } = readLook(look);
  const merged = mergedSightings(before, readings, gone, look.at);
  const { kept, refused } = withinBound(merged, before, look.at);
  const amiss = mergedAmiss(before.amiss, [...wrong, ...refused], look.at);
  const ledger = { lookedAt: Math.max(before.lookedAt, look.at), sightings: kept, amiss };
  const seen = new Map(kept.map((of) => [of.id, of.seen]));
  // A record that is older than what is known says nothing any more.
  const newest = [...readings].filter(([id, of]) => of.seen === seen.get(id));
  return {
    put: newest.flatMap(([id, of]) => changed(known.get(id), of, look.at)),
    forget: [...known.keys()].filter((id) => !seen.has(id)),
    ...(isWorthWriting(before, ledger, look.at) && { ledger }),
    known: ledger,
  };
}

/** The records of a look by their agents, the agents that were taken away, and what is no record. */
function readLook({ at, entries, own }: Look) {
  const readings = new Map<string, Reading>();
  const gone = new Map<string, number>();
  const wrong: Omit<Amiss, "since">[] = [];
  for (const entry of entries.filter(({ key }) => !own?.has(key))) {
    // A server whose clock is ahead puts nothing in the future.
    const seen = Math.min(entry.at, at);
    if (entry.bytes === undefined) gone.set(entry.key, seen);
    else {
      const read = readPeerRecord(entry.key, entry.bytes, seen);
      if (read.ok) readings.set(entry.key, { expiresAt: read.value.expiresAt, seen, entry });
      else wrong.push({ key: entry.key.slice(0, 128), reason: read.reason });
    }
  }
  return { readings, gone, wrong };
}

/** When each was seen last, by id: what is newer counts, whoever looked first. */
function mergedSightings(
  { sightings }: NatsLedger,
  readings: ReadonlyMap<string, Reading>,
  gone: ReadonlyMap<string, number>,
  now: number,
): Sighting[] {
  const merged = new Map(
    sightings.filter(({ seen }) => now - seen < FORGET_PEERS_AFTER_MS).map((of) => [of.id, of] as const),
  );
  for (const [id, { seen, expiresAt }] of readings)
    if (seen > (merged.get(id)?.seen ?? -1)) merged.set(id, { id, seen, expiresAt });
  for (const [id, at] of gone) {
    const known = merged.get(id);
    if (known !== undefined && at >= known.seen) merged.set(id, { ...known, gone: true });
  }
  return [...merged.values()].sort(byId);
}

/** As many as there may be: who is live stays, then who was seen last. */
function withinBound(sightings: readonly Sighting[], before: NatsLedger, now: number) {
  if (sightings.length <= MAX_PEERS) return { kept: sightings, refused: [] };
  const known = new Set(before.sightings.map(({ id }) => id));
  const rank = (of: Sighting) => (natsStatus(of, now, now).state === "stale" ? 2 : known.has(of.id) ? 0 : 1);
  const ranked = sightings
    .map((of) => ({ of, rank: rank(of) }))
    .sort((one, other) => one.rank - other.rank || other.of.seen - one.of.seen || byId(one.of, other.of));
  const refused = ranked
    .slice(MAX_PEERS)
    .filter(({ rank: at }) => at < 2)
    .map(({ of }) => ({ key: of.id, reason: `peers: expected at most ${MAX_PEERS} that are live` }));
  return {
    kept: ranked
      .slice(0, MAX_PEERS)
      .map(({ of }) => of)
      .sort(byId),
    refused,
  };
}

function mergedAmiss(before: readonly Amiss[], now: readonly Omit<Amiss, "since">[], at: number): Amiss[] {
  return now
    .toSorted((one, other) => (one.key < other.key ? -1 : 1))
    .slice(0, MAX_AMISS)
    .map(
      (of) =>
        before.find(({ key, reason }) => key === of.key && reason === of.reason) ?? { ...of, since: at },
    );
}

/** Facts that are not yet stored as they are now. */
function changed(
  stored: Stored<PeerFacts> | undefined,
  { entry: { key, bytes = new Uint8Array() }, seen }: Reading,
  now: number,
): NatsFacts[] {
  const read = readPeerRecord(key, bytes, seen);
  if (!read.ok) return [];
  const facts = { ...read.value.facts, firstSeen: stored?.value.firstSeen ?? now };
  // As they would be read again: what is undefined is not stored.
  return isDeepStrictEqual(stored?.value, JSON.parse(JSON.stringify(facts))) ? [] : [facts];
}

/**
 * Whether this is the first look of all, which tells that somebody looks even where nobody is found; somebody came, went
 * or came back, or has something amiss; or it is time again to say who is still there, which matters only as long as
 * somebody is.
 */
function isWorthWriting(before: NatsLedger, after: NatsLedger, now: number): boolean {
  if (before.lookedAt === 0) return true;
  if (!isDeepStrictEqual(before.amiss, after.amiss)) return true;
  if (!isDeepStrictEqual(statesOf(before, now), statesOf(after, now))) return true;
  const someLive = before.sightings.some(
    (of) => natsStatus(of, before.lookedAt, before.lookedAt).state === "live",
  );
  return someLive && now - before.lookedAt >= SEEN_EVERY_MS;
}

/** Who is there as of a ledger, and how. */
function statesOf({ sightings, lookedAt }: NatsLedger, now: number): string[] {
  return sightings.map((of) => {
    const status = natsStatus(of, lookedAt, now);
    return `${of.id} ${status.state} ${status.state === "stale" ? status.reason : ""}`;
  });
}

function byId(one: Sighting, other: Sighting): number {
  return one.id < other.id ? -1 : one.id > other.id ? 1 : 0;
}
