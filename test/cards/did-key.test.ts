import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import * as z from "zod";
import { didOf, keyUrl, type PublicJwk, readDidKey } from "../../shared/cards/did-key.ts";

/** The test vectors of "The did:key Method" (W3C CCG). */
const VECTORS: Readonly<Record<string, PublicJwk>> = {
  "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp": {
    kty: "OKP",
    crv: "Ed25519",
    x: "O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik",
  },
  "did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169": {
    kty: "EC",
    crv: "P-256",
    x: "fyNYMN0976ci7xqiSdag3buk-ZCwgXU4kz9XNkBlNUI",
    y: "hW2ojTNfH7Jbi8--CJUo3OCbH3y5n91g-IMA9MLMbTU",
  },
};

test("keys have the names that the method's own examples have", () => {
  for (const [did, jwk] of Object.entries(VECTORS)) {
    assert.equal(didOf(jwk), did);
    assert.deepEqual(readDidKey(did)?.jwk, jwk);
    assert.deepEqual(readDidKey(keyUrl(didOf(jwk))), readDidKey(did));
  }
});

const jwk = z.union([
  z.object({ kty: z.literal("OKP"), crv: z.literal("Ed25519"), x: z.string() }),
  z.object({ kty: z.literal("EC"), crv: z.literal("P-256"), x: z.string(), y: z.string() }),
]);

test("any key is read from its name", () => {
  for (let i = 0; i < 20; i++)
    for (const { publicKey } of [
      generateKeyPairSync("ed25519"),
      generateKeyPairSync("ec", { namedCurve: "P-256" }),
    ]) {
      const key = jwk.parse(publicKey.export({ format: "jwk" }));
      const read = readDidKey(didOf(key));
      assert.deepEqual(read?.jwk, key);
      assert.equal(read?.alg, key.kty === "OKP" ? "EdDSA" : "ES256");
    }
});

test("what is no did:key of these two kinds is none, and never throws", () => {
  const [ed = "", p256 = ""] = Object.keys(VECTORS);
  const wrong = [
    "",
    "did:key:",
    "did:key:z",
    "did:web:example.com",
    ed.replace("did:key:z", "did:key:m"),
    `${ed}#`,
    `${ed}#${p256.slice(8)}`,
    `${ed}#${ed.slice(8)}#`,
    `${ed} `,
    `${ed.slice(0, -1)}0`,
    ed.slice(0, -1),
    `${ed}${"1".repeat(1_000)}`,
    // X25519 and secp256k1.
    "did:key:z6LSbysY2xFMRpGMhb7tFTLMpeuPRaqaWM1yECx2AtzE3KCc",
    "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme",
  ];
  for (const text of wrong) assert.equal(readDidKey(text), undefined, text);
  fc.assert(fc.property(fc.string(), (text) => readDidKey(`did:key:z${text}`) === undefined));
});
