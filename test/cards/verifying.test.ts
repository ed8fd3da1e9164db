import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { generateAgentCardSignature, AgentCard as SdkCard, verifyAgentCardSignature } from "@a2a-js/sdk";
import fc from "fast-check";
import { CompactSign, FlattenedSign, type JWSHeaderParameters } from "jose";
import * as z from "zod";
import { canonicalJson } from "../../shared/cards/canonical.ts";
import { didOf, keyUrl, readDidKey } from "../../shared/cards/did-key.ts";
import { signedPart } from "../../shared/cards/presence.ts";
import { CardError, cardSigner, MAX_CARD_BYTES, signCard } from "../../shared/cards/signing.ts";
import { SigningKey } from "../../shared/cards/signing-key.ts";
import { stateSuccession } from "../../shared/cards/succession.ts";
import {
  type CardVerdict,
  type InvalidReason,
  MAX_CARD_SIGNATURES,
  verifyCard,
} from "../../shared/cards/verifying.ts";
import { cardOf } from "./card.ts";

const NOW = new Date("2026-08-01T12:00:00Z");
const key = SigningKey.make(NOW);
const other = SigningKey.make(NOW);

const members = z.record(z.string(), z.unknown());
/** A card as it comes out of HTTP. */
const sent = (card: object) => members.parse(JSON.parse(JSON.stringify(card)));
const signed = async (by = key) => sent(await signCard(cardOf({ identity: by }), by));
const invalid = (reason: InvalidReason) => ({ state: "invalid", reason });
function assertValid(verdict: CardVerdict, expected: object): void {
  assert.ok(verdict.state === "valid", JSON.stringify(verdict));
  const { state: _, card: __, ...rest } = verdict;
  assert.deepEqual(rest, expected);
}
/** A card signed as it is, whatever it is, by whatever header. */
async function signedAs(card: object, header: JWSHeaderParameters, by: Parameters<FlattenedSign["sign"]>[0]) {
  const jws = await new FlattenedSign(Buffer.from(canonicalJson(signedPart(sent(card)))))
    .setProtectedHeader(header)
    .sign(by);
  return { ...sent(card), signatures: [{ protected: jws.protected, signature: jws.signature }] };
}

test("a card that is signed is valid, by the key that its kid names", async () => {
  const card = await signed();
  const kid = keyUrl(key.did);
  const { signatures: _, ...signedCard } = card;
  const valid = { state: "valid", kid, key: key.did, card: signedCard };
  assert.deepEqual(await verifyCard(card), valid);
  assert.deepEqual(await verifyCard(card, { did: key.did }), valid);
  const [signature] = z.array(z.object({ protected: z.string() })).parse(card.signatures);
  assert.deepEqual(JSON.parse(Buffer.from(signature?.protected ?? "", "base64url").toString()), {
    alg: "EdDSA",
    typ: "JOSE",
    kid,
  });
});

test("a card without a signature is unsigned, or missing one where there was one before", async () => {
  for (const signatures of [{}, { signatures: [] }, { signatures: null }]) {
    assert.deepEqual(await verifyCard({ ...sent(cardOf()), ...signatures }), { state: "unsigned" });
    assert.deepEqual(
      await verifyCard({ ...sent(cardOf()), ...signatures }, { did: key.did }),
      invalid("signature_missing"),
    );
  }
});

describe("a signed card", () => {
  /** The place of each value in it, but for those of the signatures. */
  function places(value: unknown, path: readonly string[] = []): (readonly string[])[] {
    if (typeof value !== "object" || value === null) return [path];
    return Object.entries(value).flatMap(([name, of]) =>
      path.length === 0 && name === "signatures" ? [] : places(of, [...path, name]),
    );
  }

  /** The same with another value, or none, in a place. */
  function changed(value: unknown, [name = "", ...rest]: readonly string[], to: unknown): unknown {
    const put = (of: unknown) => (rest.length === 0 ? to : changed(of, rest, to));
    if (Array.isArray(value)) return value.map((of: unknown, i) => (String(i) === name ? put(of) : of));
    const { [name]: old, ...others } = members.parse(value);
    const next = put(old);
    return next === undefined ? others : { ...others, [name]: next };
  }

  /** Whether nothing is in it at any depth, so that it may be said not to be there. */
  const isEmpty = (value: unknown): boolean =>
    typeof value === "object" && value !== null
      ? Object.values(value).every(isEmpty)
      : value === undefined || value === null || value === "" || value === false || value === 0;

  /** What is empty may be overlooked; but then what was signed is used, and nothing of it. */
  function assertUsedAsSigned(verdict: CardVerdict, { signatures: _, ...card }: Record<string, unknown>) {
    if (verdict.state === "valid") assert.deepEqual(verdict.card, card);
    else assert.equal(verdict.state, "invalid");
  }

  test("is invalid once any value in it is another, or gone", async () => {
    const card = await signed();
    const place = fc.constantFrom(...places(card));
    const value = fc.oneof(fc.constant(undefined), fc.jsonValue());
    await fc.assert(
      fc.asyncProperty(place, value, async (path, to) => {
        const next = sent(Object(changed(card, path, to)));
        fc.pre(!isDeepStrictEqual(next, card));
        const verdict = await verifyCard(next);
        if (isEmpty(to)) assertUsedAsSigned(verdict, card);
        else assert.equal(verdict.state, "invalid");
      }),
      { numRuns: 300 },
    );
  });

  test("is invalid with anything added, known to A2A or not", async () => {
    const card = await signed();
    const path = fc.constantFrom<string[]>(
      [],
      ["capabilities"],
      ["skills", "0"],
      ["supportedInterfaces", "0"],
    );
    const name = fc.oneof(
      fc.constantFrom(
        "url",
        "security",
        "additionalInterfaces",
        "documentationUrl",
        "securitySchemes",
        "__proto__",
      ),
      fc.string({ minLength: 1 }),
    );
    await fc.assert(
      fc.asyncProperty(path, name, fc.jsonValue(), async (at, added, to) => {
        const next = sent(Object(changed(card, [...at, added], to)));
        fc.pre(!isDeepStrictEqual(next, card) && !(at.length === 0 && added === "signatures"));
        const verdict = await verifyCard(next);
        if (isEmpty(to)) assertUsedAsSigned(verdict, card);
        else assert.equal(verdict.state, "invalid");
      }),
      { numRuns: 300 },
    );
  });

  test("is invalid once a character of its signature is another", async () => {
    const card = await signed();
    const [signature] = z
      .array(z.object({ protected: z.string(), signature: z.string() }))
      .parse(card.signatures);
    assert.ok(signature);
    const part = fc.constantFrom("protected" as const, "signature" as const);
    await fc.assert(
      fc.asyncProperty(part, fc.nat(80), fc.string({ maxLength: 2 }), async (name, at, to) => {
        const text = signature[name];
        const next = `${text.slice(0, at)}${to}${text.slice(at + 1)}`;
        fc.pre(next !== text);
        const verdict = await verifyCard({ ...card, signatures: [{ ...signature, [name]: next }] });
        assert.equal(verdict.state, "invalid");
      }),
      { numRuns: 200 },
    );
  });

  test("stays valid whatever the order of its members and its white space", async () => {
    const card = await signed();
    function turned(value: unknown): unknown {
      if (Array.isArray(value)) return value.map(turned);
      if (typeof value !== "object" || value === null) return value;
      const entries = Object.entries(value).map(([name, of]) => [name, turned(of)] as const);
      return Object.fromEntries(entries.toReversed());
    }
    const again: unknown = JSON.parse(JSON.stringify(turned(card), null, "\t\t"));
    assert.equal((await verifyCard(again)).state, "valid");
  });

  test("stays valid with members at their default, which are not signed", async () => {
    const { capabilities, skills, ...card } = await signed();
    const more = {
      ...card,
      capabilities,
      skills: z
        .array(members)
        .parse(skills)
        .map((of) => ({ ...of, examples: [], securityRequirements: [] })),
      securitySchemes: {},
      securityRequirements: [],
      documentationUrl: null,
    };
    assert.equal((await verifyCard(more)).state, "valid");
    assert.equal((await verifyCard({ ...more, documentationUrl: "" })).state, "valid", "as SDKs sign");
  });

  test("any JSON in its place is judged, and nothing throws", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.jsonValue(), async (of, signatures) => {
        const card = typeof of === "object" && of !== null && !Array.isArray(of) ? { ...of, signatures } : of;
        assert.ok(["unsigned", "invalid"].includes((await verifyCard(card)).state));
      }),
    );
  });
});

test("the example of A2A 1.0 §8.4.1 has the payload that it says", () => {
  const card = {
    name: "Example Agent",
    description: "",
    capabilities: { streaming: false, pushNotifications: false, extensions: [] },
    skills: [],
  };
  assert.equal(
    canonicalJson(signedPart(card)),
    '{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent","skills":[]}',
  );
});

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

test("a signer signs again only what has changed", async () => {
  const sign = cardSigner();
  const first = await sign(cardOf(), key);
  assert.equal((await sign(cardOf(), key)).signatures[0], first.signatures[0]);
  assert.notEqual((await sign(cardOf({}, { version: "2" }), key)).signatures[0], first.signatures[0]);
  assert.equal((await verifyCard(sent(await sign(cardOf(), other)))).state, "valid");
  for (let i = 0; i < 256; i++) await sign(cardOf({}, { version: `3.${i}` }), key);
  assert.notEqual((await sign(cardOf(), key)).signatures[0], first.signatures[0], "it was forgotten");
});

describe("another key than the pinned one", () => {
  const pinned = { did: key.did };

  test("is refused, and named for the operator", async () => {
    assert.deepEqual(await verifyCard(await signed(other), pinned), {
      state: "changed",
      kid: keyUrl(other.did),
      pinned: key.did,
      offered: other.did,
    });
  });

  test("is taken when the pinned key has said that it follows, over several steps too", async () => {
    const middle = SigningKey.make(NOW);
    const chain = [
      await stateSuccession(key, middle.did, NOW),
      await stateSuccession(middle, other.did, NOW),
    ];
    const verdict = await verifyCard(await signed(other.after(chain)), pinned);
    assertValid(verdict, {
      kid: keyUrl(other.did),
      key: other.did,
      succeeded: key.did,
    });
    const late = await verifyCard(await signed(other.after(chain)), { did: middle.did });
    assert.equal(late.state, "valid");
  });

  test("is refused when the statement is another's, of another, altered, or missing a step", async () => {
    const middle = SigningKey.make(NOW);
    const good = await stateSuccession(key, other.did, NOW);
    const [header, payload, signature] = good.split(".");
    const forged = Buffer.from(canonicalJson({ from: key.did, to: other.did, at: NOW.toISOString() }));
    const by = (typ: string) => ({ alg: "EdDSA", kid: keyUrl(key.did), typ });
    const compact = (of: SigningKey, typ: string) =>
      new CompactSign(forged).setProtectedHeader(by(typ)).sign(of.key);
    const chains: string[][] = [
      [await stateSuccession(other, other.did, NOW)],
      [await stateSuccession(key, middle.did, NOW)],
      [await stateSuccession(middle, other.did, NOW)],
      [`${header}.${Buffer.from("{}").toString("base64url")}.${signature}`],
      [`${header}.${payload}.${signature}.`],
      [`${header}.${payload}`],
      [await compact(other, "sluice-key-succession")],
      [await compact(key, "JOSE")],
      [`${good}${"A".repeat(2_048)}`],
      ["", "..", "a.b.c"],
      Array.from({ length: 9 }, () => good),
    ];
    for (const [i, chain] of chains.entries()) {
      const identity = { did: other.did, since: other.since, successions: chain };
      const card = sent(await signCard(cardOf({ identity }), other));
      assert.equal((await verifyCard(card, pinned)).state, "changed", String(i));
    }
    const identity = {
      did: other.did,
      since: other.since,
      successions: [await compact(key, "sluice-key-succession")],
    };
    const card = sent(await signCard(cardOf({ identity }), other));
    assert.equal((await verifyCard(card, pinned)).state, "valid", "made by another implementation");
  });
});

describe("other implementations", () => {
  const jwk = () => readDidKey(key.did)?.jwk ?? assert.fail();

  test("node:crypto alone verifies what we sign (RFC 7515 §5.2, RFC 8032)", async () => {
    const { signatures, ...card } = await signed();
    const [of] = z.array(z.object({ protected: z.string(), signature: z.string() })).parse(signatures);
    // Nothing in our cards is empty, and all of their names are ASCII: this is their canonical form.
    const sorted = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(sorted);
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .toSorted(([a], [b]) => (a < b ? -1 : 1))
          .map(([k, v]) => [k, sorted(v)]),
      );
    };
    const payload = Buffer.from(JSON.stringify(sorted(card))).toString("base64url");
    const input = Buffer.from(`${of?.protected}.${payload}`);
    const by = createPublicKey({ key: jwk(), format: "jwk" });
    assert.ok(verify(null, input, by, Buffer.from(of?.signature ?? "", "base64url")));
  });

  test("the SDK of A2A verifies what we sign", async (t) => {
    t.mock.method(console, "debug", () => {}); // where it tells of what it refuses
    const card = SdkCard.fromJSON(await signed());
    const asked: string[] = [];
    await verifyAgentCardSignature(async (kid) => {
      asked.push(kid);
      return { ...jwk() };
    })(card);
    assert.deepEqual(asked, [keyUrl(key.did)]);
    await assert.rejects(verifyAgentCardSignature(async () => ({ ...jwk() }))({ ...card, name: "Another" }));
  });

  test("what the SDK of A2A signs is valid, as it serves it, and with what is added for A2A 0.3", async () => {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const { x = "", y = "" } = publicKey.export({ format: "jwk" });
    const did = didOf({ kty: "EC", crv: "P-256", x, y });
    const sign = generateAgentCardSignature(privateKey, { alg: "ES256", typ: "JOSE", kid: keyUrl(did) });
    const interfaces = ["JSONRPC", "HTTP+JSON"].map((protocolBinding) => {
      return { url: `https://peer.example/${protocolBinding}`, protocolBinding, protocolVersion: "1.0" };
    });
    const plain = {
      ...cardOf({ servers: [], interfaces, extensions: [{ uri: "urn:example:x" }] }),
      documentationUrl: "",
    };
    const card = await sign(SdkCard.fromJSON(plain));
    const valid = { kid: keyUrl(did), key: did };
    assertValid(await verifyCard(sent(card)), valid); // as its express handler writes it
    const served = members.parse(SdkCard.toJSON(card));
    assertValid(await verifyCard(served), valid);
    const [first, second] = interfaces;
    const legacy = {
      url: first?.url,
      preferredTransport: first?.protocolBinding,
      protocolVersion: "1.0",
      additionalInterfaces: [{ url: second?.url, transport: second?.protocolBinding }],
      supportsAuthenticatedExtendedCard: false,
    };
    const both = await verifyCard({ ...served, ...legacy });
    assertValid(both, valid);
    assert.ok(both.state === "valid" && !("url" in both.card), "what was not signed is not used");
    for (const wrong of [
      { url: "https://evil.example" },
      { preferredTransport: "GRPC" },
      { additionalInterfaces: [{ url: "https://evil.example", transport: "JSONRPC" }] },
      { supportsAuthenticatedExtendedCard: true },
    ])
      assert.deepEqual(await verifyCard({ ...served, ...legacy, ...wrong }), invalid("signature_wrong"));
  });
});
