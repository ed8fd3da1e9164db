import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenRules } from "./peer-rules.ts";

const record = () => ({
  agentId: "acme-exec",
  instanceId: "lambda-eu-1",
  card: {
    name: "acme-exec",
    description: "Serverless executor",
    version: "1.0.0",
    supportedInterfaces: [
      {
        url: "tls://nats.example.net:4222",
        protocolBinding: "urn:kiro-discord-bot:a2a:nats:v1",
        protocolVersion: "1.0",
      },
    ],
    capabilities: { streaming: false, pushNotifications: false, extendedAgentCard: true } as Record<
      string,
      unknown
    >,
    defaultInputModes: ["text/plain", "application/json"],
    defaultOutputModes: ["text/plain"],
    skills: [
      { id: "acme/task", name: "Task", description: "General", inputModes: ["text/plain"], tags: ["a"] },
    ],
  },
  extendedCard: {
    channel_ref: "acme",
    runtime: "channel",
    discord_guild_id: "101234567890123456",
    result_visibility_support: ["proxy", "transparent"],
  } as Record<string, unknown>,
  expiresAt: "2026-08-01T00:03:00Z",
  publishedAt: "2026-08-01T00:00:00.123456789Z",
  version: "1.0",
});
type PeerRecord = ReturnType<typeof record>;
const bytesOf = (of: unknown) => Buffer.from(JSON.stringify(of));

test("a record as peers publish them is valid", () => {
  assert.deepEqual(brokenRules("acme-exec", bytesOf(record())), []);
});

const broken: Readonly<Record<string, (of: PeerRecord) => unknown>> = {
  "another id than the key": (of) => ({
    ...of,
    agentId: "acme-other",
    card: { ...of.card, name: "acme-other" },
  }),
  "another name than the id": (of) => ({ ...of, card: { ...of.card, name: "acme-other" } }),
  "an id that is a number": (of) => ({ ...of, agentId: "12", card: { ...of.card, name: "12" } }),
  "an id that is redacted": (of) => ({
    ...of,
    agentId: "tokenizer",
    card: { ...of.card, name: "tokenizer" },
  }),
  "a blank version": (of) => ({ ...of, card: { ...of.card, version: " " } }),
  "no interface": (of) => ({ ...of, card: { ...of.card, supportedInterfaces: [] } }),
  "an interface without a binding": (of) => ({
    ...of,
    card: { ...of.card, supportedInterfaces: [{ url: "", protocolVersion: "1.0" }] },
  }),
  "an interface on this machine": (of) => ({
    ...of,
    card: {
      ...of.card,
      supportedInterfaces: [{ url: "ws://127.0.0.1:1", protocolBinding: "x", protocolVersion: "1.0" }],
    },
  }),
  "a capability that is a list": (of) => ({ ...of, card: { ...of.card, capabilities: { extensions: [] } } }),
  "an empty mode": (of) => ({ ...of, card: { ...of.card, defaultInputModes: [""] } }),
  "a skill without its channel": (of) => ({ ...of, card: { ...of.card, skills: [{ id: "task" }] } }),
  "a skill with a mode that is none": (of) => ({
    ...of,
    card: { ...of.card, skills: [{ id: "acme/task", inputModes: ["text"] }] },
  }),
  "a channel that is no slug": (of) => ({ ...of, extendedCard: { channel_ref: "a b" } }),
  "a guild that is no snowflake": (of) => ({ ...of, extendedCard: { discord_guild_id: "12" } }),
  "an extended field that is no text": (of) => ({ ...of, extendedCard: { display_name: 5 } }),
  "a time that is none": (of) => ({ ...of, expiresAt: "tomorrow" }),
  "a byte too many": (of) => ({ ...of, card: { ...of.card, description: "x".repeat(65_536) } }),
};
for (const [what, breakIt] of Object.entries(broken))
  test(`invalid: ${what}`, () => {
    const key = what.startsWith("an id that is a number")
      ? "12"
      : what.startsWith("an id that is red")
        ? "tokenizer"
        : "acme-exec";
    assert.notDeepEqual(brokenRules(key, bytesOf(breakIt(record()))), []);
  });

test("what is no JSON, or no UTF-8, is invalid", () => {
  assert.equal(brokenRules("a", Buffer.from("{")).length, 1);
  assert.equal(brokenRules("a", Buffer.from([0xff])).length, 1);
});
