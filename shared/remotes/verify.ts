import { readDidKey } from "../cards/did-key.ts";
import { verifyCard } from "../cards/verifying.ts";
import type { VerifyCard } from "./refresh.ts";

const UNKNOWN_KEY =
  "its signature is by a key that its kid does not hold (no did:key): it counts as not signed";

/** How remote agents' cards are judged: as all cards of others (docs/cards-signing.md). */
export const verifyRemoteCard: VerifyCard = async (card, pinned) => {
  const did = pinned && readDidKey(pinned.key)?.did;
  // A key that cannot be read must not become one that is not pinned.
  if (pinned !== undefined && did === undefined)
    return { state: "invalid", reason: "the pinned key is none" };
  const kid = pinned?.kid;
  const verdict = await verifyCard(card, did && { did, ...(kid !== undefined && { kid }) });
  switch (verdict.state) {
    case "valid": {
      const { kid: signer, key, card: signed } = verdict;
      return { state: "valid", kid: signer, key, card: signed };
    }
    case "changed":
      return { state: "changed", offered: verdict.offered };
    case "invalid":
      // Who could put a signature there that nobody can look at could as well have left it out (A2A 1.0 §8.4): no more
      // is believed of such a card than of one that is not signed, and no less, as long as no key is pinned.
      return pinned === undefined && verdict.reason === "key_unknown"
        ? { state: "unsigned", note: UNKNOWN_KEY }
        : verdict;
    default:
      return verdict;
  }
};
