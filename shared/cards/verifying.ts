import { canonicalJson } from "./canonical.ts";
import { type CardAlgorithm, type DidKey, type PublicKey, readDidKey } from "./did-key.ts";
import { successionsIn } from "./identity.ts";
import { isSigned } from "./jws.ts";
import { isMembers, type Members, signedPart, withoutEmpties, withoutMirrors } from "./presence.ts";
import { readSignature, type Signature } from "./protected-header.ts";
import { MAX_CARD_BYTES } from "./signing.ts";
import { leadsTo, SUCCESSION_TYPE } from "./succession.ts";

/** How many signatures of a card are looked at; with more it is refused. */
export const MAX_CARD_SIGNATURES = 8;

const ALGORITHMS: readonly CardAlgorithm[] = ["EdDSA", "ES256"];

/** A key by which an agent's cards must be signed. */
export interface PinnedKey {
  readonly did: DidKey;
  /** What the signer calls it, where that is not the key itself. */
  readonly kid?: string;
}

/**
 * Why a card's signatures count for nothing:
 *
 * - `card_malformed`: it is no JSON object, or canonical JSON cannot hold it, or `signatures` is no list
 * - `card_too_large`, `too_many_signatures`: beyond the bounds
 * - `signature_malformed`: no signature as A2A 1.0 §8.4.2 has it, or one with header members that are not known
 * - `signature_missing`: none, although the agent's cards have been signed before
 * - `algorithm_refused`: neither EdDSA nor ES256, or not the key's own
 * - `key_unknown`: `kid` is no `did:key`, nor what the pinned key is called; nothing is fetched, `jku` least of all
 * - `signature_wrong`: the card is not what was signed
 */
export type InvalidReason =
  | "card_malformed"
  | "card_too_large"
  | "too_many_signatures"
  | "signature_malformed"
  | "signature_missing"
  | "algorithm_refused"
  | "key_unknown"
  | "signature_wrong";

/** A card that is well signed, by the pinned key, its successor, or where none is pinned by any. */
export interface Valid {
  readonly state: "valid";
  readonly kid: string;
  readonly key: DidKey;
  /** The pinned key whose successor has signed: `key` is to be pinned instead. */
  readonly succeeded?: DidKey;
  /** The card as it was signed: nothing else of what was sent may be used. */
  readonly card: Members;
}

/** What a card's signatures say. */
export type CardVerdict =
  | { readonly state: "unsigned" }
  | Valid
  | { readonly state: "invalid"; readonly reason: InvalidReason }
  /** Well signed, but by another key than the pinned one; refused until an operator accepts `offered`. */
  | { readonly state: "changed"; readonly kid: string; readonly pinned: DidKey; readonly offered: DidKey };

/**
 * Verifies a card's signatures (A2A 1.0 §8.4.3). Members that A2A 1.0 does not know are covered as well. Nothing is
 * fetched: a key is known by its `did:key`, or by being pinned.
 *
 * @param card as `JSON.parse` gave it
 * @param pinned the key that the agent's cards were signed with so far; without it the first good signature decides
 */
export async function verifyCard(card: unknown, pinned?: PinnedKey): Promise<CardVerdict> {
  if (!isMembers(card)) return invalid("card_malformed");
  const { signatures = [] } = card;
  if (signatures !== null && !Array.isArray(signatures)) return invalid("card_malformed");
  const entries: readonly unknown[] = signatures ?? [];
  if (entries.length === 0)
    return pinned === undefined ? { state: "unsigned" } : invalid("signature_missing");
  if (entries.length > MAX_CARD_SIGNATURES) return invalid("too_many_signatures");
  const forms = formsOf(card);
  if (typeof forms === "string") return invalid(forms);

  const looks = await Promise.all(entries.map((entry) => lookAt(entry, forms, pinned)));
  const good = looks.flatMap((of) => ("signer" in of ? [of] : []));
  const verdicts = await Promise.all(good.map((of) => judge(of, pinned)));
  const reasons = looks.flatMap((of) => ("reason" in of ? [of.reason] : []));
  // That a key is not known says less than what is wrong with a signature whose key is.
  const reason = reasons.find((of) => of !== "key_unknown") ?? reasons[0] ?? "signature_wrong";
  return verdicts.find(({ state }) => state === "valid") ?? verdicts[0] ?? invalid(reason);
}

/** A signature that is good: whose it is, and what was signed. */
interface Good {
  readonly kid: string;
  readonly signer: PublicKey;
  readonly card: Members;
}

async function lookAt(
  entry: unknown,
  forms: Forms,
  pinned: PinnedKey | undefined,
): Promise<Good | { readonly reason: InvalidReason }> {
  const signature = readSignature(entry);
  if (signature === undefined || signature.typ === SUCCESSION_TYPE) return { reason: "signature_malformed" };
  const { alg, kid } = signature;
  if (!ALGORITHMS.some((of) => of === alg)) return { reason: "algorithm_refused" };
  const signer = keyOf(signature, pinned);
  if (signer === undefined) return { reason: "key_unknown" };
  if (signer.alg !== alg) return { reason: "algorithm_refused" };
  for (const [text, card] of forms) if (await isSigned(text, signature, signer)) return { kid, signer, card };
  return { reason: "signature_wrong" };
}

function keyOf({ kid }: Signature, pinned: PinnedKey | undefined): PublicKey | undefined {
  return readDidKey(kid) ?? (pinned?.kid === kid ? readDidKey(pinned.did) : undefined);
}

async function judge({ card, kid, signer }: Good, pinned: PinnedKey | undefined): Promise<CardVerdict> {
  const { did: key } = signer;
  const valid: Valid = { state: "valid", kid, key, card };
  if (pinned === undefined || key === pinned.did) return valid;
  if (await leadsTo(pinned.did, key, successionsIn(card))) return { ...valid, succeeded: pinned.did };
  return { state: "changed", kid, pinned: pinned.did, offered: key };
}

/** What may have been signed, by its text. */
type Forms = ReadonlyMap<string, Members>;

/**
 * The forms of a card: as A2A 1.0 signs it; as its SDKs do, without anything empty; the same without what was added for
 * A2A 0.3; and without the security schemes, which the JavaScript SDK loses when it signs a card that was made in memory
 * (@a2a-js/sdk, issue 663). In what a later form leaves out lies what its signature does not cover.
 */
function formsOf(card: Members): Forms | InvalidReason {
  try {
    const plain = signedPart(card);
    // First of all: what follows walks through it, and is as deep.
    const text = canonicalJson(plain);
    if (Buffer.byteLength(text) > MAX_CARD_BYTES) return "card_too_large";
    const bare = withoutMirrors(plain);
    const { securitySchemes: _, ...lossy } = bare;
    const further = [plain, bare, lossy].map(withoutEmpties);
    return new Map([[text, plain], ...further.map((of) => [canonicalJson(of), of] as const)]);
  } catch {
    return "card_malformed";
  }
}

function invalid(reason: InvalidReason): CardVerdict {
  return { state: "invalid", reason };
}
