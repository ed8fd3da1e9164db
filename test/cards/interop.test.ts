import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { describe, test } from "node:test";
import { generateAgentCardSignature, AgentCard as SdkCard, verifyAgentCardSignature } from "@a2a-js/sdk";
import * as z from "zod";
import { didOf, keyUrl, readDidKey } from "../../shared/cards/did-key.ts";
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
