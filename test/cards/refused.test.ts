import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import * as z from "zod";
import { canonicalJson } from "../../shared/cards/canonical.ts";
import { didOf, keyUrl, readDidKey } from "../../shared/cards/did-key.ts";
import { CardError, MAX_CARD_BYTES, signCard } from "../../shared/cards/signing.ts";
import type { SigningKey } from "../../shared/cards/signing-key.ts";
import { MAX_CARD_SIGNATURES, verifyCard } from "../../shared/cards/verifying.ts";
import { cardOf } from "./card.ts";
import { assertValid, invalid, key, other, sent, signed, signedAs } from "./signed.ts";

test("algorithms other than EdDSA and ES256 are refused, and a key is used for its own alone", async () => {
  const card = cardOf();
  const kid = keyUrl(key.did);
  const none = Buffer.from(JSON.stringify({ alg: "none", kid, typ: "JOSE" })).toString("base64url");
  assert.deepEqual(
    await verifyCard({ ...card, signatures: [{ protected: none, signature: "AA" }] }),
    invalid("algorithm_refused"),
  );
  // The public key as the shared secret.
  const secret = Buffer.from(readDidKey(key.did)?.jwk.x ?? "", "base64url");
  const shared = await signedAs(card, { alg: "HS256", kid, typ: "JOSE" }, secret);
  assert.deepEqual(await verifyCard(shared), invalid("algorithm_refused"));
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2_048 }).privateKey;
  assert.deepEqual(
    await verifyCard(await signedAs(card, { alg: "PS256", kid }, rsa)),
    invalid("algorithm_refused"),
  );
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  assert.deepEqual(
    await verifyCard(await signedAs(card, { alg: "ES256", kid }, ec)),
    invalid("algorithm_refused"),
  );
});

test("a key that only jku would tell is unknown, unless it is pinned under its name", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  const did = didOf({ kty: "EC", crv: "P-256", x, y });
  const header = { alg: "ES256", typ: "JOSE", kid: "key-1", jku: "http://169.254.169.254/jwks.json" };
  const card = await signedAs(cardOf(), header, privateKey);
  assert.deepEqual(await verifyCard(card), invalid("key_unknown"));
  assert.deepEqual(await verifyCard(card, { did }), invalid("key_unknown"));
  assert.deepEqual(await verifyCard(card, { did: key.did, kid: "key-1" }), invalid("algorithm_refused"));
  assertValid(await verifyCard(card, { did, kid: "key-1" }), { kid: "key-1", key: did });

  const wrong = await signedAs(cardOf(), { alg: "ES256", typ: "JOSE", kid: keyUrl(did) }, privateKey);
  const both = { ...card, description: "another", signatures: [...card.signatures, ...wrong.signatures] };
  assert.deepEqual(
    await verifyCard(both),
    invalid("signature_wrong"),
    "what is wrong says more than what is unknown",
  );
});

test("headers that change what is signed, or are not understood, are refused", async () => {
  const kid = keyUrl(key.did);
  const [plain] = z.array(z.object({ signature: z.string() })).parse((await signed()).signatures);
  const headers = [
    {},
    { alg: "EdDSA" },
    { kid },
    { alg: "EdDSA", kid, crit: ["x"], x: 1 },
    { alg: "EdDSA", kid, b64: false },
  ];
  for (const header of headers) {
    const text = Buffer.from(JSON.stringify(header)).toString("base64url");
    const signatures = [{ protected: text, signature: plain?.signature }];
    assert.deepEqual(await verifyCard({ ...cardOf(), signatures }), invalid("signature_malformed"));
  }
  const succession = await signedAs(cardOf(), { alg: "EdDSA", kid, typ: "sluice-key-succession" }, key.key);
  assert.deepEqual(await verifyCard(succession), invalid("signature_malformed"));
});

test("several signatures: one good one is enough, and there may be so many and no more", async () => {
  const card = await signed();
  const [good] = z.array(z.unknown()).parse(card.signatures);
  const bad = { protected: "e30", signature: "AA" };
  const fill = (count: number) => Array.from({ length: count }, () => bad);
  const state = async (signatures: unknown[], pinned?: SigningKey) =>
    (await verifyCard({ ...card, signatures }, pinned && { did: pinned.did })).state;
  assert.equal(await state([...fill(MAX_CARD_SIGNATURES - 1), good]), "valid");
  assert.deepEqual(
    await verifyCard({ ...card, signatures: [good, ...fill(MAX_CARD_SIGNATURES)] }),
    invalid("too_many_signatures"),
  );
  const [others] = z
    .array(z.unknown())
    .parse(sent(await signCard(cardOf({ identity: key }), other)).signatures);
  assert.equal(await state([others, good], key), "valid");
  assert.equal(await state([bad, others], key), "changed");
});

test("a card may be so large and no larger", async () => {
  const sized = (more: number) => ({ ...cardOf(), description: "x".repeat(1_000 + more) });
  const room = MAX_CARD_BYTES - Buffer.byteLength(canonicalJson(sized(0)));
  assert.equal((await verifyCard(sent(await signCard(sized(room), key)))).state, "valid");
  await assert.rejects(signCard(sized(room + 1), key), CardError);
  const larger = await signedAs(sized(room + 1), { alg: "EdDSA", kid: keyUrl(key.did) }, key.key);
  assert.deepEqual(await verifyCard(larger), invalid("card_too_large"));
});

test("a header, a key's name and a signature may be so long and no longer", async () => {
  const encoded = (header: object) => Buffer.from(JSON.stringify(header)).toString("base64url");
  const base = { alg: "EdDSA", kid: "k" };
  const spare = 3_072 - JSON.stringify({ ...base, x: "" }).length; // three bytes are four characters
  const reason = async (header: object, signature = "AA") =>
    verifyCard({ ...cardOf(), signatures: [{ protected: encoded(header), signature }] });
  const known = invalid("key_unknown");
  const malformed = invalid("signature_malformed");
  assert.deepEqual(await reason({ ...base, x: "x".repeat(spare) }), known);
  assert.deepEqual(await reason({ ...base, x: "x".repeat(spare + 1) }), malformed);
  assert.deepEqual(await reason({ ...base, kid: "k".repeat(512) }), known);
  assert.deepEqual(await reason({ ...base, kid: "k".repeat(513) }), malformed);
  assert.deepEqual(await reason(base, "A".repeat(1_024)), known);
  assert.deepEqual(await reason(base, "A".repeat(1_025)), malformed);
});
