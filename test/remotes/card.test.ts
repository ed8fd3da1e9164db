import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  MAX_CARD_BYTES,
  MAX_CARD_DEPTH,
  MAX_CARD_EXTENSIONS,
  MAX_CARD_INTERFACES,
  MAX_CARD_SKILLS,
  readCard,
} from "../../shared/remotes/card.ts";
import { currentCard, encoded, legacyCard, URL_OF } from "./support.ts";

const read = (value: unknown) => readCard(encoded(value), URL_OF);
function cardOf(value: unknown) {
  const found = read(value);
  assert.ok(found.ok, found.ok ? "" : found.reason);
  return found.value;
}
function reasonOf(value: unknown): string {
  const found = read(value);
  assert.ok(!found.ok);
  return found.reason;
}

const SKILL = { id: "audit", name: "Audit", description: "Audits it" };
const NO_EXTENSIONS = {
  uris: [],
  required: [],
  hitl: [],
  blast: [],
  unread: [],
  cost: false,
  confidence: false,
  toolCall: false,
  worldstateDelta: false,
  trace: false,
};

test("a card of 1.0, its addresses pinned", () => {
  const value = currentCard({ signatures: [{ protected: "e30", signature: "x" }] });
  const found = cardOf(value);
  assert.deepEqual(found.value, value, "the whole is there for whoever looks at signatures");
  assert.deepEqual(found.notes, []);
  assert.deepEqual(found.card, {
    protocol: "1.0",
    name: "Auditor",
    description: "Audits",
    version: "2.1.0",
    skills: [{ ...SKILL, tags: ["a"] }],
    interfaces: [
      { url: URL_OF, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: URL_OF, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
    ],
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
    extensions: NO_EXTENSIONS,
    securitySchemes: [],
  });
});

test("a card of 0.3 in the same shape", () => {
  assert.deepEqual(cardOf(legacyCard()).card, {
    protocol: "0.3",
    name: "Auditor",
    description: "Audits",
    version: "1",
    skills: [{ ...SKILL, tags: [] }],
    interfaces: [
      { url: URL_OF, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
      { url: URL_OF, protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
    ],
    capabilities: { streaming: false, pushNotifications: false, extendedAgentCard: true },
    extensions: NO_EXTENSIONS,
    securitySchemes: [],
  });
  assert.equal(cardOf({ ...legacyCard(), ...currentCard() }).card.protocol, "1.0", "one that is both");
});

test("what ProtoJSON leaves out or writes otherwise", () => {
  const { card, notes } = cardOf({
    name: "A",
    description: null,
    supported_interfaces: [{ url: "", protocol_binding: "JSONRPC", protocol_version: null }],
    capabilities: { push_notifications: true },
    skills: [
      { id: "a", name: "" },
      { id: "a", name: "again" },
    ],
  });
  assert.deepEqual(card.interfaces, [{ url: URL_OF, protocolBinding: "JSONRPC", protocolVersion: "1.0" }]);
  assert.deepEqual(card.skills, [{ id: "a", name: "a", description: "", tags: [] }]);
  assert.equal(card.capabilities.pushNotifications, true);
  assert.deepEqual(notes, ["skills: an id that is told twice counts as it is told first"]);
});

test("who one may be, of either version", () => {
  const { card } = cardOf(
    currentCard({
      securitySchemes: {
        a: { apiKeySecurityScheme: { location: "header", name: "X-API-Key" } },
        b: { httpAuthSecurityScheme: { scheme: "Bearer" } },
        c: { type: "apiKey", in: "header", name: "key" },
        d: { type: "http", scheme: "basic" },
        e: { oauth2SecurityScheme: { flows: {} } },
        f: { type: "mutualTLS" },
        g: { scheme: { $case: "x" } },
        h: 7,
      },
    }),
  );
  assert.deepEqual(
    card.securitySchemes.map(({ name, kind, detail }) => [name, kind, detail]),
    [
      ["a", "apiKey", "X-API-Key"],
      ["b", "http", "Bearer"],
      ["c", "apiKey", "key"],
      ["d", "http", "basic"],
      ["e", "oauth2", undefined],
      ["f", "mtls", undefined],
      ["g", "unknown", undefined],
      ["h", "unknown", undefined],
    ],
  );
});

const many = <T>(count: number, of: (at: number) => T) => Array.from({ length: count }, (_, at) => of(at));

test("bounds, each at it and one past it, told by the field", () => {
  const skills = (count: number) =>
    currentCard({ skills: many(count, (at) => ({ id: `s${at}`, name: "S" })) });
  assert.equal(cardOf(skills(MAX_CARD_SKILLS)).card.skills.length, MAX_CARD_SKILLS);
  assert.match(reasonOf(skills(MAX_CARD_SKILLS + 1)), /^card\.skills: Too big: .*256/);

  const interfaces = (count: number) =>
    currentCard({ supportedInterfaces: many(count, (at) => ({ url: "x", protocolBinding: `b${at}` })) });
  assert.equal(cardOf(interfaces(MAX_CARD_INTERFACES)).card.interfaces.length, MAX_CARD_INTERFACES);
  assert.match(reasonOf(interfaces(MAX_CARD_INTERFACES + 1)), /^card\.supportedInterfaces: Too big/);

  const extensions = (count: number) =>
    currentCard({ capabilities: { extensions: many(count, (at) => ({ uri: `urn:${at}` })) } });
  assert.equal(cardOf(extensions(MAX_CARD_EXTENSIONS)).card.extensions.uris.length, MAX_CARD_EXTENSIONS);
  assert.match(reasonOf(extensions(MAX_CARD_EXTENSIONS + 1)), /^card\.capabilities\.extensions: Too big/);

  const named = (length: number) => currentCard({ name: "n".repeat(length) });
  assert.equal(cardOf(named(256)).card.name.length, 256);
  assert.match(reasonOf(named(257)), /^card\.name: Too big/);
  const described = (length: number) =>
    currentCard({ skills: [{ id: "a", description: "d".repeat(length) }] });
  cardOf(described(8_192));
  assert.match(reasonOf(described(8_193)), /^card\.skills\.0\.description: Too big/);

  const nested = (depth: number) => {
    const deep = many(depth - 1, () => "[").join("") + many(depth - 1, () => "]").join("");
    return readCard(
      new TextEncoder().encode(`{"x":${deep},${JSON.stringify(currentCard()).slice(1)}`),
      URL_OF,
    );
  };
  assert.ok(nested(MAX_CARD_DEPTH).ok);
  assert.deepEqual(nested(MAX_CARD_DEPTH + 1), {
    ok: false,
    reason: "card: expected JSON nested at most 32 deep",
  });

  const empty = encoded(currentCard({ pad: "" })).byteLength;
  const padded = (size: number) => encoded(currentCard({ pad: "x".repeat(size - empty) }));
  assert.ok(readCard(padded(MAX_CARD_BYTES), URL_OF).ok);
  assert.deepEqual(readCard(padded(MAX_CARD_BYTES + 1), URL_OF), {
    ok: false,
    reason: "card: expected at most 262144 bytes",
  });
});

test("what is no card is told by its field", () => {
  for (const [value, reason] of [
    [[], /^card: expected an object$/],
    [null, /^card: expected an object$/],
    [{}, /^card\.name: expected string/],
    [currentCard({ name: "" }), /^card\.name: Too small/],
    [currentCard({ supportedInterfaces: [] }), /^card\.supportedInterfaces: Too small/],
    [currentCard({ skills: [{ id: "a\u0000b" }] }), /^card\.skills\.0\.id: expected no control characters$/],
    [currentCard({ skills: [{ id: " a" }] }), /^card\.skills\.0\.id: expected no spaces around it$/],
    [currentCard({ capabilities: { streaming: "yes" } }), /^card\.capabilities\.streaming: expected boolean/],
    [legacyCard({ url: 1 }), /^card\.url: expected string/],
  ] as const)
    assert.match(reasonOf(value), reason);
  assert.match(readCard(new TextEncoder().encode("<html>hunter2"), URL_OF).ok ? "" : "refused", /refused/);
  const html = readCard(new TextEncoder().encode("<html>hunter2"), URL_OF);
  assert.deepEqual(html, { ok: false, reason: "card: expected JSON" });
});

test("nothing that is JSON makes reading throw, and no address of a card is ever taken", () => {
  const hostile = fc.dictionary(
    fc.constantFrom(
      "name",
      "url",
      "skills",
      "capabilities",
      "supportedInterfaces",
      "supported_interfaces",
      "__proto__",
    ),
    fc.jsonValue({ maxDepth: 4 }),
  );
  const sound = fc.record({
    supportedInterfaces: fc.array(
      fc.record({
        url: fc.webUrl(),
        protocolBinding: fc.constantFrom("JSONRPC", "HTTP+JSON", "GRPC", "urn:x"),
      }),
      { minLength: 1, maxLength: 5 },
    ),
    securitySchemes: fc.jsonValue({ maxDepth: 3 }),
    capabilities: fc.record({
      extensions: fc.array(
        fc.record({
          uri: fc.constantFrom(
            "https://proto-labs.ai/a2a/ext/hitl-mode-v1",
            "https://proto-labs.ai/a2a/ext/blast-v1",
            "urn:x",
          ),
          params: fc.jsonValue({ maxDepth: 4 }),
        }),
        { maxLength: 3 },
      ),
    }),
  });
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), hostile, sound), (value) => {
      const found = read(
        typeof value === "object" && value !== null ? { ...currentCard(), ...value } : value,
      );
      if (found.ok) for (const { url } of found.value.card.interfaces) assert.equal(url, URL_OF);
      else assert.match(found.reason, /^card/);
    }),
  );
});
