import type { NatsConnection } from "@nats-io/transport-node";
import type { LookedAt } from "../../shared/cards/peer-look.ts";
import { readPeerRecord } from "../../shared/cards/peer-record.ts";
import { natsStatus, type PeerStatus } from "../../shared/cards/peer-status.ts";
import { natsPeer, type Peer } from "../../shared/cards/peers.ts";
import { readBucket } from "../peers.ts";
import { cleanLine } from "../text.ts";

/** How much of a name, a reason or another short text of a peer's is shown, in characters. */
const MAX_NAME = 128;
/** How much of a description is shown, in characters. */
const MAX_DESCRIPTION = 1_000;

/** Whoever has put something into the bucket of cards. Its texts are clean, on one line, and cut. */
export interface SeenPeer {
  /** The key under which the record lies: a runtime id, where the record is one. */
  readonly id: string;
  /** `amiss`: what lies there is no record, for that reason. */
  readonly status: PeerStatus | { readonly state: "amiss"; readonly reason: string };
  /** When the key was last put or taken away, in milliseconds since 1970 by the server's clock. */
  readonly at: number;
  /** What its record says; nothing of one that is none, or was taken away. */
  readonly peer?: Peer;
}

/** Who was seen in the bucket. */
export interface SeenPeers {
  /** By id. */
  readonly peers: readonly SeenPeer[];
  /** Whether there are more keys than are read, so that these are of those alone that were put lately. */
  readonly lately: boolean;
}

/**
 * Who shows a card now; agents of ours are left out.
 *
 * @param own our agents' runtime ids
 */
export async function lookForPeers(
  nc: NatsConnection,
  own: ReadonlySet<string>,
  now = Date.now(),
): Promise<SeenPeers> {
  const { entries, lately } = await readBucket(nc, undefined, now);
  const others = entries.filter(({ key }) => !own.has(key));
  const peers = others.map((entry) => seen(entry, now)).sort((one, other) => (one.id < other.id ? -1 : 1));
  return { peers, lately };
}

/** One key by itself: what is wrong with another's record is no matter here. */
function seen({ key, at, bytes }: LookedAt, now: number): SeenPeer {
  const id = cleanLine(key, MAX_NAME);
  if (bytes === undefined) return { id, at, status: { state: "stale", reason: "gone", since: at } };
  const read = readPeerRecord(key, bytes, at);
  if (!read.ok) return { id, at, status: { state: "amiss", reason: cleanLine(read.reason, MAX_NAME) } };
  const { facts, expiresAt } = read.value;
  const sighting = { id: key, seen: at, expiresAt };
  const peer = shown(natsPeer({ ...facts, firstSeen: at }, sighting, now, now));
  return { id, at, status: natsStatus(sighting, now, now), peer };
}

/** The peer with its texts as they may be shown. */
export function shown({ name, description, version, skills, interfaces, capabilities, ...peer }: Peer): Peer {
  const short = (text: string) => cleanLine(text, MAX_NAME);
  return {
    ...peer,
    name: short(name),
    description: cleanLine(description, MAX_DESCRIPTION),
    version: short(version),
    skills: skills.map((skill) => ({
      ...skill,
      name: short(skill.name),
      description: cleanLine(skill.description, MAX_DESCRIPTION),
      tags: skill.tags.map(short),
    })),
    interfaces: interfaces.map((of) => ({
      url: short(of.url),
      protocolBinding: short(of.protocolBinding),
      protocolVersion: short(of.protocolVersion),
    })),
    capabilities: capabilities.map(short),
  };
}
