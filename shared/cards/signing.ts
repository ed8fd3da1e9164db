import type { AgentCard } from "./agent-card.ts";
import { canonicalJson } from "./canonical.ts";
import { type DetachedJws, signText } from "./jws.ts";
import { signedPart } from "./presence.ts";
import type { SigningKey } from "./signing-key.ts";

/** A card with its signatures (A2A 1.0 §8.4.2). */
export type SignedAgentCard = AgentCard & { readonly signatures: readonly DetachedJws[] };

/** How large a card may be as canonical JSON: neither is a larger one signed, nor is one looked at. */
export const MAX_CARD_BYTES = 262_144;

/** A card cannot be signed. */
export class CardError extends Error {
  override readonly name = "CardError";
}

/**
 * The text of a card that is signed (A2A 1.0 §8.4.1).
 *
 * @throws CardError for a card larger than {@link MAX_CARD_BYTES}
 * @throws CanonicalError for one that canonical JSON cannot hold
 */
export function signedText(card: AgentCard): string {
  const text = canonicalJson(signedPart({ ...card }));
  const size = Buffer.byteLength(text);
  if (size <= MAX_CARD_BYTES) return text;
  throw new CardError(`the card of ${card.name}: expected at most ${MAX_CARD_BYTES} bytes, got ${size}`);
}

/** Signs a card. Signatures that it has are replaced. @throws as {@link signedText} */
export async function signCard(card: AgentCard, key: SigningKey): Promise<SignedAgentCard> {
  return { ...card, signatures: [await signText(signedText(card), key, "JOSE")] };
}
