import { readDidKey } from "../cards/did-key.ts";
import { verifyCard } from "../cards/verifying.ts";
import type { VerifyCard } from "./refresh.ts";

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
    default:
      return verdict;
  }
};
