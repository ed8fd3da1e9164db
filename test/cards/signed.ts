import assert from "node:assert/strict";
import { FlattenedSign, type JWSHeaderParameters } from "jose";
import * as z from "zod";
import { canonicalJson } from "../../shared/cards/canonical.ts";
import { signedPart } from "../../shared/cards/presence.ts";
import { signCard } from "../../shared/cards/signing.ts";
import { SigningKey } from "../../shared/cards/signing-key.ts";
import type { CardVerdict, InvalidReason } from "../../shared/cards/verifying.ts";
import { cardOf } from "./card.ts";

export const NOW = new Date("2026-08-01T12:00:00Z");
/** Two deployments' keys. */
export const key = SigningKey.make(NOW);
export const other = SigningKey.make(NOW);

export const members = z.record(z.string(), z.unknown());
/** A card as it comes out of HTTP. */
export const sent = (card: object) => members.parse(JSON.parse(JSON.stringify(card)));
export const signed = async (by = key) => sent(await signCard(cardOf({ identity: by }), by));

export const invalid = (reason: InvalidReason) => ({ state: "invalid", reason });
export function assertValid(verdict: CardVerdict, expected: object): void {
  assert.ok(verdict.state === "valid", JSON.stringify(verdict));
  const { state: _, card: __, ...rest } = verdict;
  assert.deepEqual(rest, expected);
}

/** A card signed as it is, whatever it is, by whatever header: by jose alone. */
export async function signedAs(
  card: object,
  header: JWSHeaderParameters,
  by: Parameters<FlattenedSign["sign"]>[0],
) {
  const jws = await new FlattenedSign(Buffer.from(canonicalJson(signedPart(sent(card)))))
    .setProtectedHeader(header)
    .sign(by);
  return { ...sent(card), signatures: [{ protected: jws.protected, signature: jws.signature }] };
}
