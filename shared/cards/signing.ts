import { createHash } from "node:crypto";
import type { AgentCard } from "./agent-card.ts";
import { canonicalJson } from "./canonical.ts";
import type { DidKey } from "./did-key.ts";
import { type DetachedJws, signText } from "./jws.ts";
import { signedPart } from "./presence.ts";
import type { SigningKey } from "./signing-key.ts";

/** A card with its signatures (A2A 1.0 §8.4.2). */
export type SignedAgentCard = AgentCard & { readonly signatures: readonly DetachedJws[] };

/** How large a card may be as canonical JSON: neither is a larger one signed, nor is one looked at. */
export const MAX_CARD_BYTES = 262_144;
/** How many signed cards are kept, so that what has not changed is not signed again. */
const MAX_SIGNED_CARDS = 256;

/** A card cannot be signed. */
export class CardError extends Error {
  override readonly name = "CardError";
}

/** The text of a card that is signed (A2A 1.0 §8.4.1). */
export function signedText(card: AgentCard): string {
  return canonicalJson(signedPart({ ...card }));
}

/**
 * Signs a card. Signatures that it has are replaced.
 *
 * @throws CardError for a card larger than {@link MAX_CARD_BYTES}
 * @throws CanonicalError for one that canonical JSON cannot hold
 */
export async function signCard(card: AgentCard, key: SigningKey): Promise<SignedAgentCard> {
  return { ...card, signatures: [await signText(bounded(signedText(card), card), key, "JOSE")] };
}

/** Signs cards by whatever key is current, each again only when it, or the key, has changed. */
export function cardSigner(): (card: AgentCard, key: SigningKey) => Promise<SignedAgentCard> {
  const known = new Map<string, { readonly did: DidKey; readonly signature: DetachedJws }>();
  return async (card, key) => {
    const text = bounded(signedText(card), card);
    const digest = createHash("sha256").update(text).digest("hex");
    const found = known.get(digest);
    const signature = found?.did === key.did ? found.signature : await signText(text, key, "JOSE");
    known.delete(digest); // the least recently used goes first
    known.set(digest, { did: key.did, signature });
    for (const oldest of known.keys()) {
      if (known.size <= MAX_SIGNED_CARDS) break;
      known.delete(oldest);
    }
    return { ...card, signatures: [signature] };
  };
}

function bounded(text: string, { name }: AgentCard): string {
  const size = Buffer.byteLength(text);
  if (size <= MAX_CARD_BYTES) return text;
  throw new CardError(`the card of ${name}: expected at most ${MAX_CARD_BYTES} bytes, got ${size}`);
}
