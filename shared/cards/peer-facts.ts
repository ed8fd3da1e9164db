import type { RemoteCard } from "../remotes/card.ts";
import type { Probe } from "../remotes/probe.ts";

/**
 * What is kept of each peer. Facts change seldom and are an item each; when a peer was last seen changes all the time, and
 * so stands for all of them together in one, the ledger (docs/table.md, peers).
 */

/** What a signature on a card was found to be. */
export interface SignatureFacts {
  /** `unverified`: nobody has looked. */
  readonly state: "unsigned" | "valid" | "unverified";
  /** The key that has signed, as a `did:key`: later cards must be signed by it or its successor. */
  readonly key?: string | undefined;
  /** What the signer calls the key. */
  readonly kid?: string | undefined;
}

/** An agent on NATS, as its record in the bucket of cards has it. */
export interface NatsFacts {
  readonly transport: "nats";
  /** Its runtime id. */
  readonly id: string;
  readonly instanceId: string;
  readonly description: string;
  readonly version: string;
  readonly skills: readonly {
    /** `<channelRef>/<slug>`. */
    readonly id: string;
    readonly name: string;
    readonly description: string;
    readonly tags: readonly string[];
  }[];
  readonly interfaces: readonly {
    readonly url: string;
    readonly protocolBinding: string;
    readonly protocolVersion: string;
  }[];
  readonly capabilities: readonly string[];
  /** The extended card's texts, by their names there; what is not said is left out. */
  readonly extended: ExtendedFacts;
  /** Milliseconds since 1970. */
  readonly firstSeen: number;
}

/** The members of an extended card that are texts. */
export const EXTENDED_TEXTS = [
  "channel_ref",
  "runtime",
  "bot_agent_id",
  "display_name",
  "discord_guild_id",
  "discord_channel_id",
  "discord_thread_id",
  "trigger_guidance",
  "max_task_duration_class",
  "credential_issuer",
  "credential_fingerprint",
  "public_key_fingerprint",
  "signature_status",
] as const;
export type ExtendedFacts = {
  readonly [name in (typeof EXTENDED_TEXTS)[number]]?: string | undefined;
} & { readonly result_visibility_support?: readonly string[] | undefined };

/** An agent over HTTP, as its last good card has it. */
export interface HttpFacts {
  readonly transport: "http";
  /** Its name in the operator's file. */
  readonly id: string;
  /** Where the operator had it when the card was fetched; at another address it is another agent. */
  readonly url: string;
  /** Where its card was found, and what it is called there. */
  readonly path: string;
  readonly etag?: string | undefined;
  readonly card: RemoteCard;
  /** What of the card is not as expected, and what that counts as. */
  readonly notes: readonly string[];
  readonly signature: SignatureFacts;
  /** Milliseconds since 1970. */
  readonly firstSeen: number;
}

export type PeerFacts = NatsFacts | HttpFacts;
export type Transport = PeerFacts["transport"];

/** When an agent on NATS was seen last. Times are in milliseconds since 1970. */
export interface Sighting {
  readonly id: string;
  /** When its newest record was put. */
  readonly seen: number;
  /** Until when that holds, as it says. */
  readonly expiresAt: number;
  /** Whether it was taken away after that. */
  readonly gone?: boolean | undefined;
}

/** A record that is none, and why; it hides no other. */
export interface Amiss {
  readonly key: string;
  readonly reason: string;
  /** Since when it is so, in milliseconds since 1970. */
  readonly since: number;
}

/** What is known of who is there on NATS. */
export interface NatsLedger {
  /** When somebody last looked through the whole bucket, in milliseconds since 1970. */
  readonly lookedAt: number;
  readonly sightings: readonly Sighting[];
  readonly amiss: readonly Amiss[];
}

/** How it stands with an agent over HTTP. Times are in milliseconds since 1970. */
export interface Standing {
  readonly id: string;
  /** When it last had a card that counts. */
  readonly seen?: number | undefined;
  /** Until when that need not be asked for again. */
  readonly freshUntil?: number | undefined;
  /** Refreshes that have failed in a row, since when, and why the last one did. */
  readonly failures: number;
  readonly failingSince?: number | undefined;
  readonly reason?: string | undefined;
  /** A key that has signed in place of the known one, and waits to be accepted by an operator. */
  readonly offeredKey?: string | undefined;
  readonly probe?: Probe | undefined;
}

/** What is known of how it stands with agents over HTTP. */
export interface HttpLedger {
  readonly standings: readonly Standing[];
}
