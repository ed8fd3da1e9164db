import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MAX_RECORD_BYTES } from "../../shared/cards/bucket-facts.ts";
import { encodeRecord } from "../../shared/cards/fit.ts";
import { ownCards } from "../../shared/cards/own.ts";
import { type CardContext, cardRecord, type PeerRecord } from "../../shared/cards/record.ts";
import { isClean, publicUrl, sanitized } from "../../shared/cards/sanitize.ts";
import { recordFaults } from "../../shared/cards/validate.ts";
import { parseDeployment } from "../../shared/config/deployment.ts";
import { brokenRules } from "./peer-rules.ts";
import { hosted, hostileAgent, hostileServer, hostileText } from "./support.ts";

const NOW = Date.parse("2026-08-01T12:00:00Z");
const CONTEXT: CardContext = {
  deployment: "acme",
  guild: "101234567890123456",
  servers: ["nats://127.0.0.1:4222", "tls://nats.example:4222"],
  instance: "sluice-acme",
  now: NOW,
};

test("a card is what peers expect of an agent that they can delegate to", () => {
  const skills = [
    { slug: "sum", name: "Sum", description: "Adds up", tags: ["maths"] },
    { slug: "task", name: "Task", description: "Whatever is asked", tags: [] },
  ];
  const agent = hosted("support", { displayName: "Support", description: "Helps", skills });
  const modes = ["text/plain", "application/json"];
  assert.deepEqual(cardRecord(agent, CONTEXT), {
    agentId: "acme-support",
    instanceId: "sluice-acme",
    card: {
      name: "acme-support",
      description: "Helps",
      version: "1.0.0",
      supportedInterfaces: [
        {
          url: "tls://nats.example:4222",
          protocolBinding: "urn:kiro-discord-bot:a2a:nats:v1",
          protocolVersion: "1.0",
        },
      ],
      capabilities: { streaming: false, pushNotifications: false, extendedAgentCard: true },
      defaultInputModes: modes,
      defaultOutputModes: modes,
      skills: [
        {
          id: "support/task",
          name: "Task",
          description: "Whatever is asked",
          tags: [],
          inputModes: modes,
          outputModes: modes,
        },
        {
          id: "support/sum",
          name: "Sum",
          description: "Adds up",
          tags: ["maths"],
          inputModes: modes,
          outputModes: modes,
        },
      ],
    },
    extendedCard: {
      channel_ref: "support",
      runtime: "channel",
      bot_agent_id: "acme",
      display_name: "Support",
      discord_guild_id: "101234567890123456",
      result_visibility_support: ["proxy", "transparent"],
    },
    expiresAt: "2026-08-01T12:03:00.000Z",
    publishedAt: "2026-08-01T12:00:00.000Z",
    version: "1.0",
  });
});

test("a skill that is not accepted is not on the card, and without a guild none is named", () => {
  const agent = hosted("support", {
    skills: ["task", "sum"].map((slug) => ({ slug, name: slug, description: "", tags: [] })),
  });
  const limited = { ...agent, policy: { ...agent.policy, acceptSkills: ["sum"] } };
  const { card, extendedCard } = cardRecord(limited, { ...CONTEXT, guild: undefined });
  assert.deepEqual(
    card.skills.map(({ id }) => id),
    ["support/sum"],
  );
  assert.equal("discord_guild_id" in extendedCard, false);
});

test("no agent, whatever its author wrote and wherever its NATS is, has a card that a reader would refuse", () => {
  fc.assert(
    fc.property(hostileAgent, fc.array(hostileServer, { minLength: 1, maxLength: 4 }), (agent, servers) => {
      const record = cardRecord(agent, { ...CONTEXT, servers });
      const bytes = encodeRecord(record);
      assert.deepEqual(recordFaults(agent.runtime, bytes), []);
      assert.ok(bytes.byteLength <= MAX_RECORD_BYTES);
      assert.deepEqual(JSON.parse(new TextDecoder().decode(bytes)), record);
      for (const text of textsOf(record)) assert.ok(isClean(text), JSON.stringify(text));
      assert.equal(record.card.skills[0]?.id, `${agent.channelRef}/task`);
    }),
    { numRuns: 200 },
  );
});

/** All that peers show of a card. */
function textsOf({ instanceId, card, extendedCard }: PeerRecord): string[] {
  return [
    instanceId,
    card.name,
    card.description,
    card.version,
    ...card.supportedInterfaces.flatMap((of) => Object.values(of)),
    ...card.skills.flatMap(({ name, description, tags }) => [name, description, ...tags]),
    extendedCard.channel_ref,
    extendedCard.bot_agent_id,
    extendedCard.display_name,
  ];
}

test("nor one that the rules refuse which others have written from what existing peers do", () => {
  fc.assert(
    fc.property(hostileAgent, fc.array(hostileServer, { minLength: 1, maxLength: 4 }), (agent, servers) => {
      const bytes = encodeRecord(cardRecord(agent, { ...CONTEXT, servers }));
      assert.deepEqual(brokenRules(agent.runtime, bytes), []);
    }),
    { numRuns: 60 },
  );
});

test("what has been blanked stays as it is", () => {
  fc.assert(
    fc.property(hostileText, (text) => assert.equal(sanitized(sanitized(text)), sanitized(text))),
    { numRuns: 500 },
  );
});

test("a server that others cannot reach is not named, in whatever spelling", () => {
  for (const url of [
    ...["nats://127.0.0.1:4222", "nats://0x7f.1", "nats://2130706433", "nats://localhost", "nats://[::1]"],
    ...["tls://10.1.2.3", "tls://172.16.0.1", "tls://192.168.0.1", "tls://169.254.0.1", "tls://100.64.0.1"],
    ...[
      "nats://[fd00::1]",
      "nats://[fe80::1]",
      "nats://[::ffff:10.0.0.1]",
      "nats://broker",
      "nats://a.internal",
    ],
    ...["tls://token.example", "nats://12345678901234567.example", "no url", "nats://0.0.0.0"],
  ])
    assert.equal(publicUrl(url), "", url);
  for (const [url, shown] of [
    ["tls://nats.example:4222", "tls://nats.example:4222"],
    ["nats://u:p@nats.example:4222/x?y#z", "nats://nats.example:4222"],
    ["nats://172.32.0.1:80", "nats://172.32.0.1:80"],
    ["nats://[2001:db8::1]:4222", "nats://[2001:db8::1]:4222"],
  ] as const)
    assert.equal(publicUrl(url), shown);
});

/** An agent with so many skills, each with so long a description and so many tags. */
function large(skills: number, characters: number, tags: number) {
  return hosted("support", {
    description: "d".repeat(4_000),
    skills: Array.from({ length: skills }, (_, i) => ({
      slug: i === 0 ? "task" : `s${i}`,
      name: `Skill ${i}`,
      description: "x".repeat(characters),
      tags: Array.from({ length: tags }, () => "t".repeat(60)),
    })),
  });
}

test("a card that becomes too large loses tags, then descriptions, then skills, and no more than it must", () => {
  const cut = (skills: number, tags = 0) => cardRecord(large(skills, 1_000, tags), CONTEXT).card;
  const first = ({ skills: [of] }: PeerRecord["card"]) => [of?.tags.length, of?.description.length];
  assert.deepEqual(first(cut(25, 16)), [16, 1_000]);
  assert.deepEqual(first(cut(40, 16)), [0, 1_000]);
  assert.deepEqual(first(cut(60)), [0, 100]);
  assert.deepEqual(first(cut(300)), [0, 0]);
  const [plain, short, fewer] = [cut(360), cut(380), cut(1_000)];
  assert.deepEqual([plain.skills.length, plain.description.length], [360, 4_000]);
  assert.deepEqual([short.skills.length, short.description.length], [380, 400]);
  assert.ok(fewer.skills.length > 380 && fewer.skills.length < 1_000);
  assert.deepEqual([fewer.skills[0]?.id, fewer.description.length], ["support/task", 400]);
});

test("a text or a tag that is too long by itself is cut, and one as long as it may be is not", () => {
  const card = (name: number, description: number, tags: number) =>
    cardRecord(
      hosted("support", {
        description: "d".repeat(4 * description),
        skills: [
          {
            slug: "task",
            name: "n".repeat(name),
            description: "d".repeat(description),
            tags: Array.from({ length: tags }, () => "t"),
          },
        ],
      }),
      CONTEXT,
    ).card;
  const whole = card(128, 1_000, 16);
  assert.deepEqual(
    [whole.description.length, whole.skills[0]?.name.at(-1), whole.skills[0]?.description.at(-1)],
    [4_000, "n", "d"],
  );
  const cut = card(129, 1_001, 17);
  assert.ok(cut.description.length <= 4_000 && cut.description.endsWith("d…"));
  assert.ok(cut.skills[0]?.name.endsWith("n…") && cut.skills[0].name.length <= 128);
  assert.ok(cut.skills[0]?.description.endsWith("d…") && cut.skills[0].description.length <= 1_000);
  assert.equal(cut.skills[0]?.tags.length, 16);
});

test("a record is as long as it may be, and one byte longer it is none", () => {
  const record = cardRecord(hosted(), CONTEXT);
  const padded = (length: number) =>
    encodeRecord({ ...record, card: { ...record.card, description: "x".repeat(length) } });
  const room = MAX_RECORD_BYTES - padded(0).byteLength;
  assert.deepEqual(recordFaults("acme-support", padded(room)), []);
  assert.deepEqual(recordFaults("acme-support", padded(room + 1)), [
    "record: expected at most 65536 bytes, got 65537",
  ]);
});

test("agents that are not to be found have no card", () => {
  const agent = hosted();
  const hidden = { ...agent, policy: { ...agent.policy, discoverable: false } };
  const deployment = parseDeployment({ deployment: "acme", agents: [] });
  const { cards, withheld } = ownCards({ ...deployment, agents: [hidden, hosted("other")] }, CONTEXT);
  assert.deepEqual([cards.map(({ runtime }) => runtime), withheld], [["acme-other"], []]);
});

test("a card that a reader would refuse is withheld, and no other is", () => {
  const bad = hosted("support", { channelRef: "no slug" });
  const deployment = parseDeployment({ deployment: "acme", agents: [] });
  const { cards, withheld } = ownCards({ ...deployment, agents: [bad, hosted("other")] }, CONTEXT);
  assert.deepEqual(
    cards.map(({ runtime }) => runtime),
    ["acme-other"],
  );
  assert.deepEqual(withheld, [
    {
      runtime: "acme-support",
      faults: [
        "card.skills.0.id: expected a channelRef, / and a slug",
        "extendedCard.channel_ref: expected a slug",
      ],
    },
  ]);
});
