import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AgentCard } from "@a2a-js/sdk";
import fc from "fast-check";
import { canonicalJson } from "../../shared/cards/canonical.ts";
import { signedPart, withoutEmpties } from "../../shared/cards/presence.ts";
import { cardOf } from "./card.ts";

test("a card tells what the agent's configuration does", () => {
  const url = "tls://nats.example.net:4222";
  const binding = { protocolBinding: "urn:kiro-discord-bot:a2a:nats:v1", protocolVersion: "1.0" };
  assert.deepEqual(cardOf(), {
    name: "Support",
    description: "Answers questions",
    version: "1.2.0",
    supportedInterfaces: [{ url, tenant: "acme-support", ...binding }],
    capabilities: { streaming: false, pushNotifications: false, extendedAgentCard: false },
    defaultInputModes: ["text/plain", "application/json"],
    defaultOutputModes: ["text/plain", "application/json"],
    skills: [
      { id: "support/task", name: "Answer", description: "Answers a question", tags: ["faq"] },
      { id: "support/refund", name: "Refund", description: "Refund", tags: ["refund"] },
    ],
  });
});

test("what is told besides stands where A2A 1.0 has it", () => {
  const http = { url: "https://acme.example/a2a", protocolBinding: "JSONRPC", protocolVersion: "1.0" };
  const provider = { organization: "Acme", url: "https://acme.example" };
  const extensions = [{ uri: "urn:example:x" }];
  const did = "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp" as const;
  const since = "2026-08-01T12:00:00.000Z";
  const card = cardOf({
    interfaces: [http],
    servers: ["nats://a:1", "nats://b:2"],
    capabilities: { streaming: true },
    provider,
    extensions,
    identity: { did, since, successions: [] },
  });
  assert.deepEqual(
    card.supportedInterfaces.map(({ url }) => url),
    [http.url, "nats://a:1", "nats://b:2"],
  );
  assert.equal(card.capabilities.streaming, true);
  assert.deepEqual(card.provider, provider);
  assert.deepEqual(
    card.capabilities.extensions?.map(({ uri }) => uri),
    ["urn:sluice:a2a:identity:v1", "urn:example:x"],
  );
  assert.deepEqual(card.capabilities.extensions?.[0]?.params, { did, since });
});

test("only skills that may be asked for are on it", () => {
  const idsWith = (acceptSkills: string[]) => cardOf({}, {}, { acceptSkills }).skills.map(({ id }) => id);
  assert.deepEqual(idsWith(["refund"]), ["support/refund"]);
  assert.deepEqual(idsWith(["general_task"]), ["support/task"]);
  assert.deepEqual(idsWith([]), ["support/task", "support/refund"]);
});

describe("of hostile names and descriptions", () => {
  const text = fc.string({ unit: "binary", maxLength: 3_000 });
  const slug = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,20}$/);
  const skill = fc.record({
    slug,
    name: text.filter((of) => of !== ""),
    description: text,
    tags: fc.array(text, { maxLength: 40 }),
  });
  const agent = fc.record({
    displayName: fc.string({ unit: "binary", minLength: 1, maxLength: 128 }).filter((of) => of.length <= 128),
    description: text,
    version: text,
    skills: fc.array(skill, { minLength: 1, maxLength: 5 }),
  });

  test("a card is canonical JSON, has no empty member, and is bounded", () => {
    fc.assert(
      fc.property(agent, (of) => {
        const card = cardOf({}, of);
        const canonical = canonicalJson(signedPart({ ...card }));
        assert.equal(canonicalJson(card), canonical);
        assert.equal(canonicalJson(withoutEmpties({ ...card })), canonical);
        assert.ok(card.name.length <= 128 && card.description.length <= 2_048 && card.version.length <= 64);
        for (const { name, description, tags } of card.skills) {
          assert.ok(name.length <= 128 && description.length <= 1_024);
          assert.ok(tags.length >= 1 && tags.length <= 16 && tags.every((tag) => tag.length <= 64));
        }
      }),
      { numRuns: 50 },
    );
  });

  test("the SDK of A2A reads back what is on it", () => {
    fc.assert(
      fc.property(agent, (of) => {
        const card: unknown = JSON.parse(JSON.stringify(cardOf({}, of)));
        assert.deepEqual(AgentCard.toJSON(AgentCard.fromJSON(card)), card);
      }),
      { numRuns: 20 },
    );
  });
});

test("lists end at their bounds", () => {
  const skills = Array.from({ length: 129 }, (_, i) => {
    return { slug: `s${i}`, name: "x", description: "x", tags: [] };
  });
  const servers = Array.from({ length: 17 }, (_, i) => `nats://n${i}:4222`);
  const extensions = Array.from({ length: 33 }, (_, i) => ({ uri: `urn:example:${i}` }));
  const card = cardOf({ servers, extensions }, { skills });
  assert.equal(card.skills.length, 128);
  assert.equal(card.supportedInterfaces.length, 16);
  assert.equal(card.capabilities.extensions?.length, 32);
});
