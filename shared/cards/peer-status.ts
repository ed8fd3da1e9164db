import { STALE_AFTER_MS } from "./bucket-facts.ts";
import type { Sighting, Standing } from "./peer-facts.ts";

/** Refreshes of an agent over HTTP that must fail in a row until it counts as stale. */
export const FAILED_REFRESHES = 3;

/** Whether a peer is there. */
export type PeerStatus =
  | { readonly state: "live" }
  /** Nothing was heard of it yet. */
  | { readonly state: "unseen" }
  | {
      readonly state: "stale";
      /** `silent`: no new record; `expired`: it says itself that it holds no longer; `gone`: taken away; `failing`: HTTP. */
      readonly reason: "silent" | "expired" | "gone" | "failing";
      /** Milliseconds since 1970. */
      readonly since: number;
    };

/**
 * Whether an agent on NATS is there: it is stale once 90 seconds have passed without a new record of it, or its record
 * says itself that it has expired; and back with its next record.
 *
 * Whoever watches the bucket looks at any moment, so that `lookedAt` is now, and the answer exact. A function that looks
 * each minute does not know what came since: an agent that puts its record each minute, 59 seconds before the look,
 * would be taken for stale in half of all minutes. So nobody is stale by what was not looked for: the silence must have
 * lasted until a look. Where nobody has looked for as long as that, nobody is known to be there.
 *
 * @param lookedAt when the bucket was last looked through; times are in milliseconds since 1970
 */
export function natsStatus(sighting: Sighting | undefined, lookedAt: number, now: number): PeerStatus {
  if (sighting === undefined) return { state: "unseen" };
  const { seen, expiresAt, gone = false } = sighting;
  if (gone) return { state: "stale", reason: "gone", since: seen };
  const silent = seen + STALE_AFTER_MS;
  const due = Math.min(silent, expiresAt);
  const looked = lookedAt >= due || now - lookedAt >= STALE_AFTER_MS;
  if (now < due || !looked) return { state: "live" };
  return { state: "stale", reason: expiresAt < silent ? "expired" : "silent", since: due };
}

/** Whether an agent over HTTP is there: stale once three refreshes in a row have failed, and back with the next good one. */
export function httpStatus(standing: Standing | undefined): PeerStatus {
  if (standing === undefined) return { state: "unseen" };
  const { failures, failingSince, seen } = standing;
  if (failures >= FAILED_REFRESHES)
    return { state: "stale", reason: "failing", since: failingSince ?? seen ?? 0 };
  return seen === undefined ? { state: "unseen" } : { state: "live" };
}
