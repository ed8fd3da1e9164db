import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import * as z from "zod";
import { canonicalJson } from "../../shared/cards/canonical.ts";
import { keyUrl } from "../../shared/cards/did-key.ts";
import { signedPart } from "../../shared/cards/presence.ts";
import { type CardVerdict, verifyCard } from "../../shared/cards/verifying.ts";
import { cardOf } from "./card.ts";
import { invalid, key, members, sent, signed } from "./signed.ts";

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

  test("is invalid with anything added, known to A2A or not, or used without", async () => {
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
        // Schemes that were not signed are passed over: an SDK of A2A loses them (interop.test.ts).
        const isLost = at.length === 0 && added === "securitySchemes";
        if (isEmpty(to) || isLost) assertUsedAsSigned(verdict, card);
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
