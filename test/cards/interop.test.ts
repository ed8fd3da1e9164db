import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { describe, test } from "node:test";
import {
  canonicalizeAgentCard,
  generateAgentCardSignature,
  AgentCard as SdkCard,
  verifyAgentCardSignature,
} from "@a2a-js/sdk";
import fc from "fast-check";
import * as z from "zod";
import { canonicalJson } from "../../shared/cards/canonical.ts";
import { didOf, keyUrl, readDidKey } from "../../shared/cards/did-key.ts";
import { signedPart, withoutEmpties } from "../../shared/cards/presence.ts";
import { verifyCard } from "../../shared/cards/verifying.ts";
import { cardOf } from "./card.ts";
import { assertValid, invalid, key, members, sent, signed } from "./signed.ts";

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

  test("schemes that the SDK of A2A loses when it signs are not used", async () => {
    const sign = generateAgentCardSignature(key.key, { alg: "EdDSA", typ: "JOSE", kid: keyUrl(key.did) });
    const securitySchemes = { key: { apiKeySecurityScheme: { location: "header", name: "x-api-key" } } };
    const served = SdkCard.toJSON(await sign(SdkCard.fromJSON({ ...cardOf(), securitySchemes })));
    const verdict = await verifyCard(served);
    assertValid(verdict, { kid: keyUrl(key.did), key: key.did });
    assert.ok("securitySchemes" in members.parse(served));
    assert.ok(verdict.state === "valid" && !("securitySchemes" in verdict.card));
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

describe("any card of A2A 1.0", () => {
  const text = fc.oneof(fc.constant(""), fc.string({ maxLength: 8 }));
  const texts = fc.array(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 3 });
  const record = <T>(of: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(of, { requiredKeys: [] });
  const named = <T>(of: fc.Arbitrary<T>) =>
    fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), of, { maxKeys: 3 });
  const requirements = fc.array(record({ schemes: named(record({ list: texts })) }), { maxLength: 2 });
  const params = fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), fc.jsonValue({ maxDepth: 2 }), {
    maxKeys: 3,
  });
  const flow = { tokenUrl: text, refreshUrl: text, scopes: named(text) };
  const flows = fc.oneof(
    record({ authorizationCode: record({ ...flow, authorizationUrl: text, pkceRequired: fc.boolean() }) }),
    record({ clientCredentials: record(flow) }),
    record({ deviceCode: record({ ...flow, deviceAuthorizationUrl: text }) }),
  );
  const scheme = fc.oneof(
    fc.record({ apiKeySecurityScheme: record({ description: text, location: text, name: text }) }),
    fc.record({ httpAuthSecurityScheme: record({ description: text, scheme: text, bearerFormat: text }) }),
    fc.record({ oauth2SecurityScheme: record({ description: text, flows, oauth2MetadataUrl: text }) }),
    fc.record({ openIdConnectSecurityScheme: record({ description: text, openIdConnectUrl: text }) }),
    fc.record({ mtlsSecurityScheme: record({ description: text }) }),
  );
  const card = record({
    name: text,
    description: text,
    version: text,
    supportedInterfaces: fc.array(
      record({ url: text, protocolBinding: text, tenant: text, protocolVersion: text }),
      { maxLength: 2 },
    ),
    provider: record({ url: text, organization: text }),
    documentationUrl: text,
    iconUrl: text,
    capabilities: record({
      streaming: fc.boolean(),
      pushNotifications: fc.boolean(),
      extendedAgentCard: fc.boolean(),
      extensions: fc.array(record({ uri: text, description: text, required: fc.boolean(), params }), {
        maxLength: 2,
      }),
    }),
    securitySchemes: named(scheme),
    securityRequirements: requirements,
    defaultInputModes: texts,
    defaultOutputModes: texts,
    skills: fc.array(
      record({
        ...{ id: text, name: text, description: text, tags: texts, examples: texts },
        ...{ inputModes: texts, outputModes: texts, securityRequirements: requirements },
      }),
      { maxLength: 2 },
    ),
  });

  test("has one of our forms that is what the SDK of A2A signs of it", () => {
    fc.assert(
      fc.property(card, (of) => {
        const json = sent(of);
        const { securitySchemes: _, ...lossy } = signedPart(json);
        const instance = SdkCard.fromJSON(json);
        // Given as JSON, the card is whole; made in memory, it loses its schemes.
        const read = Object.assign(SdkCard.fromJSON({}), json);
        assert.equal(canonicalizeAgentCard(read), canonicalJson(withoutEmpties(signedPart(json))));
        assert.equal(canonicalizeAgentCard(instance), canonicalJson(withoutEmpties(lossy)));
      }),
      { numRuns: 200 },
    );
  });
});
