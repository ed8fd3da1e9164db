import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MAX_RECORD_BYTES } from "../../shared/cards/bucket-facts.ts";
import { readPeerRecord } from "../../shared/cards/peer-record.ts";
import { bytesOf, peerRecord } from "./support/records.ts";

const AT = Date.UTC(2030, 0, 1);
const read = (record: unknown, key = "adam-lobby") => readPeerRecord(key, bytesOf(record), AT);
function reasonOf(record: unknown, key?: string): string {
  const found = read(record, key);
  assert.ok(!found.ok);
  return found.reason;
}
function recordOf(record: unknown, key?: string) {
  const found = read(record, key);
  assert.ok(found.ok, found.ok ? "" : found.reason);
  return found.value;
}

test("a record as peers write it", () => {
  const { facts, expiresAt } = recordOf(peerRecord("adam-lobby"));
  assert.equal(expiresAt, Date.UTC(2030, 0, 1, 0, 3));
  assert.deepEqual(facts, {
    transport: "nats",
    id: "adam-lobby",
    instanceId: "adam-1",
    description: "The lobby",
    version: "1.0.0",
    skills: [{ id: "lobby/task", name: "Task", description: "Does it", tags: ["a"] }],
    interfaces: [
      {
        url: "tls://nats.example.net:4222",
        protocolBinding: "urn:kiro-discord-bot:a2a:nats:v1",
        protocolVersion: "1.0",
      },
    ],
    capabilities: ["extendedAgentCard"],
    extended: {
      channel_ref: "lobby",
      runtime: "channel",
      display_name: "Lobby",
      discord_guild_id: "101234567890123456",
      result_visibility_support: ["proxy", "transparent"],
    },
  });
});

test("what a record leaves out has its default", () => {
  const { card, ...rest } = peerRecord("adam-lobby");
  const { name: _, skills: __, capabilities: ___, ...bare } = card;
  assert.equal(recordOf({ ...rest, card: bare }).facts.id, "adam-lobby");
  assert.equal(recordOf({ ...rest, agentId: "", card }).facts.id, "adam-lobby");
  const { facts, expiresAt } = recordOf({ agentId: "adam-lobby", card: bare });
  assert.deepEqual([facts.skills, facts.capabilities, facts.extended], [[], [], {}]);
  assert.equal(expiresAt, AT + 90_000, "counted from when it was put");
  const published = { agentId: "adam-lobby", card: bare, publishedAt: "2030-01-01T00:00:10+00:00" };
  assert.equal(recordOf(published).expiresAt, AT + 100_000, "counted from when it was published");
});

test("ids of Discord's that are none are as good as none", () => {
  const extendedCard = { channel_ref: "", discord_guild_id: "1234", discord_channel_id: "12345678901234567" };
  assert.deepEqual(recordOf(peerRecord("adam-lobby", { extendedCard })).facts.extended, {
    discord_channel_id: "12345678901234567",
  });
});

const inCard = (over: object) =>
  peerRecord("adam-lobby", { card: { ...peerRecord("adam-lobby").card, ...over } });

test("what breaks a rule is no record, and says which", () => {
  for (const [record, reason] of [
    [[], /^record: expected object/],
    [{ agentId: "adam-lobby" }, /^record\.card: expected object/],
    [peerRecord("other"), /^record\.agentId: expected the key under which the record lies$/],
    [inCard({ name: "other" }), /^record\.card\.name: expected the agentId$/],
    [inCard({ version: " " }), /^record\.card\.version: expected a text that is not blank$/],
    [
      inCard({ supportedInterfaces: [] }),
      /^record\.card\.supportedInterfaces: expected at least one interface$/,
    ],
    [
      inCard({ supportedInterfaces: [{ url: "", protocolBinding: "x", protocolVersion: "" }] }),
      /^record\.card\.supportedInterfaces\.0\.protocolVersion: expected a text that is not blank$/,
    ],
    [inCard({ defaultInputModes: [""] }), /^record\.card\.defaultInputModes\.0: expected a media type$/],
    [inCard({ skills: [{ id: "task" }] }), /^record\.card\.skills\.0\.id: expected ref\/slug$/],
    [inCard({ skills: [{ id: "a/task*" }] }), /^record\.card\.skills\.0\.id: expected ref\/slug$/],
    [inCard({ skills: [{ id: "a/b", inputModes: ["text"] }] }), /^record\.card\.skills\.0\.inputModes\.0/],
    [inCard({ capabilities: { "hunter2\n": [] } }), /^record\.card\.capabilities: expected true or false$/],
    [
      peerRecord("adam-lobby", { extendedCard: { channel_ref: "a b" } }),
      /^record\.extendedCard\.channel_ref/,
    ],
    [peerRecord("adam-lobby", { expiresAt: "soon" }), /^record\.expiresAt: expected a time/],
  ] as const)
    assert.match(reasonOf(record), reason);
  assert.match(
    reasonOf(peerRecord("my-secret-agent"), "my-secret-agent"),
    /expected an id that every peer takes$/,
  );
  assert.match(reasonOf(peerRecord("123"), "123"), /expected an id that every peer takes$/);
});

test("a record's size at its bound and one past it", () => {
  const empty = bytesOf(peerRecord("adam-lobby", { pad: "" })).byteLength;
  const padded = (size: number) => peerRecord("adam-lobby", { pad: "x".repeat(size - empty) });
  recordOf(padded(MAX_RECORD_BYTES));
  assert.equal(reasonOf(padded(MAX_RECORD_BYTES + 1)), "record: expected at most 65536 bytes");
  const broken = readPeerRecord("adam-lobby", new TextEncoder().encode("{hunter2"), AT);
  assert.deepEqual(broken, { ok: false, reason: "record: expected JSON" });
});

test("no bytes and no JSON make reading throw", () => {
  const keys = ["agentId", "card", "extendedCard", "expiresAt", "publishedAt", "__proto__"];
  const hostile = fc.dictionary(fc.constantFrom(...keys), fc.jsonValue({ maxDepth: 3 }));
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), hostile), fc.boolean(), (value, whole) => {
      const of = whole || typeof value !== "object" ? value : { ...peerRecord("adam-lobby"), ...value };
      const found = read(of);
      if (found.ok) assert.equal(found.value.facts.id, "adam-lobby");
      else assert.match(found.reason, /^record/);
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) =>
      assert.equal(readPeerRecord("adam-lobby", bytes, AT).ok, false),
    ),
  );
});
