import type { RemoteConfig } from "../config/remotes.ts";
import type { CardInterface } from "../remotes/card.ts";
import type { CardExtensions } from "../remotes/extensions.ts";
import type { Probe } from "../remotes/probe.ts";
import { type RemoteSkill, reconcileSkills } from "../remotes/skills.ts";
import { BINDING } from "../wire/envelope.ts";
import type {
  Amiss,
  ExtendedFacts,
  HttpFacts,
  NatsFacts,
  PeerFacts,
  Sighting,
  SignatureFacts,
  Standing,
  Transport,
} from "./peer-facts.ts";
import { httpStatus, natsStatus, type PeerStatus } from "./peer-status.ts";
import type { PeerStore, Stored } from "./peer-store.ts";

/** A peer as it is known now. Times are in milliseconds since 1970. */
export interface Peer {
  readonly transport: Transport;
  /** Its runtime id on NATS; over HTTP its name in the operator's file. */
  readonly id: string;
  /** What it calls itself: another's text, and nothing to know it by. */
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly skills: readonly RemoteSkill[];
  readonly interfaces: readonly CardInterface[];
  /** Names of what it says that it can, such as `streaming`. */
  readonly capabilities: readonly string[];
  /** Whether it speaks what we speak; nothing while that is not known. */
  readonly supported?: boolean;
  readonly extensions?: CardExtensions;
  readonly signature: SignatureFacts;
  readonly status: PeerStatus;
  readonly firstSeen?: number;
  readonly lastSeen?: number;
  /** Over HTTP: how often refreshing its card has failed in a row, since when and why, and a key that waits to be accepted. */
  readonly failing?: Pick<Standing, "failures" | "failingSince" | "reason" | "offeredKey">;
  /** Over HTTP: how it was when it was looked after last. */
  readonly health?: Probe;
  /** On NATS: its extended card, and until when its record holds. */
  readonly extended?: ExtendedFacts;
  readonly expiresAt?: number;
  /** What of its card is not as expected, and what that counts as. */
  readonly notes: readonly string[];
}

/** All that is known of peers. */
export interface PeersKnown {
  /** Those on NATS by id, then those of the operator's file in its order. */
  readonly peers: readonly Peer[];
  /** Records on NATS that are none. */
  readonly amiss: readonly Amiss[];
  /** When the bucket of cards was last looked through. */
  readonly lookedAt: number;
}

/** What is known of all peers: those on NATS that were ever seen, and those of the operator's file, seen or not. */
export async function peersKnown(
  store: PeerStore,
  remotes: readonly RemoteConfig[],
  now: number,
): Promise<PeersKnown> {
  const [nats, natsLedger, http, httpLedger] = await Promise.all([
    store.facts("nats"),
    store.ledger("nats"),
    remotes.length === 0 ? new Map<string, Stored<PeerFacts>>() : store.facts("http"),
    store.ledger("http"),
  ]);
  const { lookedAt, sightings, amiss } = natsLedger.value;
  const seen = new Map(sightings.map((of) => [of.id, of]));
  const standings = new Map(httpLedger.value.standings.map((of) => [of.id, of]));
  const onNats = [...nats.values()].flatMap(({ value }) =>
    value.transport === "nats" ? [natsPeer(value, seen.get(value.id), lookedAt, now)] : [],
  );
  const overHttp = remotes.map((remote) => {
    const facts = http.get(remote.name)?.value;
    // At another address it is another agent.
    const own = facts?.transport === "http" && facts.url === remote.url ? facts : undefined;
    return httpPeer(remote, own, standings.get(remote.name));
  });
  return { peers: [...onNats, ...overHttp], amiss, lookedAt };
}

/**
 * An agent on NATS as its record and its last sighting tell.
 *
 * @param lookedAt when the bucket was last looked through; times are in milliseconds since 1970
 */
export function natsPeer(
  facts: NatsFacts,
  sighting: Sighting | undefined,
  lookedAt: number,
  now: number,
): Peer {
  const { id, extended, interfaces, capabilities, description, version, firstSeen } = facts;
  return {
    transport: "nats",
    id,
    name: extended.display_name ?? id,
    description,
    version,
    skills: facts.skills.map((of) => ({ ...of, from: "card" })),
    interfaces,
    capabilities,
    supported: interfaces.some((of) => of.protocolBinding === BINDING && of.protocolVersion === "1.0"),
    signature: { state: "unsigned" },
    status: natsStatus(sighting, lookedAt, now),
    firstSeen,
    ...(sighting && { lastSeen: sighting.seen, expiresAt: sighting.expiresAt }),
    extended,
    notes: [],
  };
}

/** What the client of A2A speaks. */
const BINDINGS: ReadonlySet<string> = new Set(["JSONRPC", "HTTP+JSON"]);
const VERSIONS: ReadonlySet<string> = new Set(["0.3", "1.0"]);

function httpPeer(remote: RemoteConfig, facts: HttpFacts | undefined, standing: Standing | undefined): Peer {
  const card = facts?.card;
  const { seen, probe, failures = 0, failingSince, reason, offeredKey } = standing ?? {};
  return {
    transport: "http",
    id: remote.name,
    name: card?.name ?? remote.name,
    description: card?.description ?? "",
    version: card?.version ?? "",
    skills: reconcileSkills(card?.skills ?? [], [], remote.skills).skills,
    interfaces: card?.interfaces ?? [],
    capabilities: Object.entries(card?.capabilities ?? { streaming: remote.streaming }).flatMap(
      ([name, can]) => (can ? [name] : []),
    ),
    ...(card && {
      supported: card.interfaces.some(
        (of) => BINDINGS.has(of.protocolBinding) && VERSIONS.has(of.protocolVersion),
      ),
      extensions: card.extensions,
    }),
    signature: facts?.signature ?? { state: "unverified" },
    status: httpStatus(standing),
    ...(facts && { firstSeen: facts.firstSeen }),
    ...(seen !== undefined && { lastSeen: seen }),
    ...(failures > 0 && { failing: { failures, failingSince, reason, offeredKey } }),
    ...(probe && { health: probe }),
    notes: facts?.notes ?? [],
  };
}
