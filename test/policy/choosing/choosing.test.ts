import assert from "node:assert/strict";
import { test } from "node:test";
import type { Peer, PeersKnown } from "../../../shared/cards/peers.ts";
import type { AgentPolicy } from "../../../shared/config/policy.ts";
import { Breaker } from "../../../shared/policy/choosing/breaker.ts";
import type { Hosted } from "../../../shared/policy/choosing/candidates.ts";
import { Choosing, type Handing } from "../../../shared/policy/choosing/choosing.ts";
import { type Circuit, circuitRules } from "../../../shared/policy/choosing/circuit.ts";
import type { ItemStore } from "../../../shared/policy/choosing/items.ts";
import { runtimePolicy } from "../../../shared/policy/runtime-policy.ts";
import { memoryItems } from "../../../shared/testing/memory-items.ts";

const NOW = 1_900_000_000_000;
const SCAN = { slug: "scan", name: "Scan", description: "", tags: [] };
const TASK = { ...SCAN, slug: "task" };

const hosted = (id: string, skills = [SCAN], over: Partial<Hosted> = {}): Hosted => ({
  id,
  runtime: `acme-${id}`,
  channelRef: id,
  displayName: `The ${id}`,
  skills,
  policy: { enabled: true },
  ...over,
});

/** A peer on NATS. */
const peer = (id: string, skills: readonly string[], over: Partial<Peer> = {}): Peer => ({
  transport: "nats",
  id,
  name: id,
  description: "",
  version: "1",
  skills: skills.map((skill) => ({ id: skill, name: skill, description: "", tags: [], from: "card" })),
  interfaces: [],
  capabilities: [],
  supported: true,
  signature: { state: "unsigned" },
  status: { state: "live" },
  extended: { channel_ref: "lobby", display_name: "Lobby" },
  notes: [],
  ...over,
});
const remote = (id: string, skills: readonly string[], over: Partial<Peer> = {}): Peer => ({
  ...peer(id, skills),
  transport: "http",
  ...over,
});

/** What an agent's policy in force says of whom it takes tasks; everybody's, unless a test says otherwise. */
type Door = Partial<Pick<AgentPolicy, "enabled" | "acceptFromRuntimes" | "acceptSkills">> | Error;
const OPEN = { enabled: true, acceptFromRuntimes: ["*"], acceptSkills: [] };

function start(
  agents: readonly Hosted[],
  peers: readonly Peer[] = [],
  fallback?: string,
  doors: Readonly<Record<string, Door>> = {},
) {
  const asked: string[] = [];
  /** Notes each request. */
  const counted = <T>(kind: string, items: ItemStore<T>): ItemStore<T> => ({
    read: async (key) => {
      asked.push(`${kind} read`);
      return await items.read(key);
    },
    readAll: async (keys) => {
      if (keys.length > 0) asked.push(`${kind} read`);
      return await items.readAll(keys);
    },
    write: async (...of) => {
      asked.push(`${kind} write`);
      return await items.write(...of);
    },
  });
  const circuits = memoryItems<Circuit>();
  const telemetry = { info: () => {}, warn: () => {}, error: () => {}, count: () => {} };
  const known: PeersKnown = { peers, amiss: [], lookedAt: NOW };
  const choosing = new Choosing({
    deployment: { agents, choosing: { ...(fallback && { default: fallback }), cooldownSec: { rest: 60 } } },
    stores: {
      outcomes: counted("outcomes", memoryItems()),
      circuits: counted("circuits", circuits),
      cooldowns: counted("cooldowns", memoryItems()),
      refusals: counted("refusals", memoryItems()),
    },
    peers: async () => {
      asked.push("peers");
      return known;
    },
    policies: {
      of: async (runtime) => {
        asked.push(`policy of ${runtime}`);
        const door = doors[runtime] ?? {};
        if (door instanceof Error) throw door;
        return { ...OPEN, ...door };
      },
    },
    now: () => NOW,
    scale: 1,
    telemetry,
  });
  const breaker = new Breaker({ store: circuits, now: () => NOW, rules: circuitRules(), telemetry });
  const choose = async (over: Partial<Handing>): Promise<string> => {
    asked.length = 0;
    const choice = await choosing.choose({
      runtime: "acme-boss",
      taskId: "task_1",
      step: "work",
      hops: 0,
      targets: [{ runtimeAgentId: "*", skillId: "*" }],
      random: () => 0,
      ...over,
    });
    if ("refused" in choice) return choice.refused.message;
    const { why, to, channelRef, skill } = choice;
    return `${why} ${to} ${channelRef}/${skill}`;
  };
  return { asked, choose, choosing, breaker };
}

test("what a choice asks the table for: nothing of an agent of ours that is named, a read where it is an agent over HTTP", async () => {
  const front = hosted("audit", [SCAN], { remote: "auditor" });
  const { asked, choose } = start([hosted("boss"), hosted("cat"), front], [peer("ann", ["lobby/scan"])]);
  for (const [over, expected, requests] of [
    [{ to: "acme-cat", channelRef: "cat", skill: "scan" }, "target acme-cat cat/scan", []],
    [{ to: "The cat", skill: "scan" }, "target acme-cat cat/scan", []],
    [{ to: "ann", channelRef: "lobby", skill: "scan" }, "target ann lobby/scan", []],
    [
      { to: "acme-audit", channelRef: "audit", skill: "sbom" },
      "target acme-audit audit/sbom",
      ["circuits read"],
    ],
    [{ to: "Lobby", skill: "scan" }, "target ann lobby/scan", ["peers"]],
    [
      { skill: "scan" },
      "skill acme-audit audit/scan",
      ["circuits read", "outcomes read", "peers", "policy of acme-audit", "policy of acme-cat"],
    ],
    [
      { to: "ann", channelRef: "lobby", skill: "rest" },
      "target ann lobby/rest",
      ["cooldowns read", "cooldowns write"],
    ],
    [
      { to: "nobdy" },
      /^target_unresolved: no agent is called "nobdy"/,
      ["peers", "refusals read", "refusals write"],
    ],
  ] as const) {
    const made = await choose(over);
    if (typeof expected === "string") assert.equal(made, expected);
    else assert.match(made, expected);
    assert.deepEqual(asked.toSorted(), requests, made);
  }
});

test("how a result is noted: a read and a write, and the next choice goes by it", async () => {
  const { asked, choose, choosing } = start([hosted("boss"), hosted("ann"), hosted("bob")]);
  assert.equal(await choose({ skill: "scan" }), "skill acme-ann ann/scan");
  asked.length = 0;
  await choosing.note("acme-ann", { good: false });
  assert.deepEqual(asked, ["outcomes read", "outcomes write"]);
  assert.equal(await choose({ skill: "scan" }), "skill acme-bob bob/scan");
});

test("who asks, and who is turned off, is not chosen for a skill; the first may name itself", async () => {
  const off = hosted("off", [SCAN], { policy: { enabled: false } });
  const { choose } = start([hosted("boss"), off]);
  assert.match(await choose({ skill: "scan" }), /^no_candidate: .*no agent has it/);
  assert.equal(await choose({ to: "boss", skill: "scan" }), "target acme-boss boss/scan");
});

test("an agent over HTTP has the skills of the file before those of its card, and its remote's health and circuit", async () => {
  const agents = [hosted("boss", [TASK]), hosted("audit", [SCAN], { remote: "auditor" })];
  const card = remote("auditor", ["sbom", "not ours/x"]);
  const { choose, breaker } = start(agents, [card, peer("ann", ["lobby/scan", "lobby/sbom"])]);
  assert.equal(await choose({ skill: "scan" }), "skill acme-audit audit/scan");
  assert.equal(await choose({ skill: "sbom" }), "skill acme-audit audit/sbom");
  assert.match(await choose({ skill: "x" }), /^no_candidate/);
  for (let n = 0; n < 5; n++)
    await assert.rejects(breaker.around("auditor", () => Promise.reject(new Error("down"))));
  assert.equal(await choose({ skill: "scan" }), "skill ann lobby/scan");
  assert.match(await choose({ to: "audit", skill: "scan" }), /^circuit_open/);

  const unwell = { health: { at: NOW, reachable: false, latencyMs: 1, error: "no answer" } };
  const ill = start(agents, [remote("auditor", [], unwell)]);
  assert.match(await ill.choose({ skill: "scan" }), /"acme-audit" is unhealthy/);
  const gone = { state: "stale", reason: "failing", since: NOW } as const;
  const stale = start(agents, [remote("auditor", [], { status: gone })]);
  assert.match(await stale.choose({ skill: "scan" }), /"acme-audit" is stale/);
  const unseen = start(agents, [remote("auditor", [], { status: { state: "unseen" } })]);
  assert.equal(await unseen.choose({ skill: "scan" }), "skill acme-audit audit/scan");
});

test("an agent over HTTP whose card was never read, and is looked for in vain, is passed over", async () => {
  const agents = [hosted("boss"), hosted("audit", [SCAN], { remote: "auditor" })];
  const health = { at: NOW, reachable: true, latencyMs: 1 };
  const failing = { failures: 1, failingSince: NOW, reason: "404" };
  const lost = start(agents, [remote("auditor", [], { status: { state: "unseen" }, health, failing })]);
  assert.match(await lost.choose({ skill: "scan" }), /"acme-audit" is unhealthy/);
  assert.equal(await lost.choose({ to: "audit", skill: "scan" }), "target acme-audit audit/scan");
  const known = start(agents, [remote("auditor", [], { status: { state: "live" }, health, failing })]);
  assert.equal(await known.choose({ skill: "scan" }), "skill acme-audit audit/scan");
});

test("one of ours that would refuse the task is not drawn, and who names it asks it all the same", async () => {
  const later = runtimePolicy().safeParse({ version: 1, fields: { enabled: "on weekdays" } }).error;
  assert.ok(later !== undefined);
  const doors: [Door, taken: boolean][] = [
    [{ acceptFromRuntimes: ["acme-cli"] }, false],
    [{ acceptFromRuntimes: [] }, false],
    [{ acceptFromRuntimes: ["acme-cli", "acme-boss"] }, true],
    [{ acceptSkills: ["task"] }, false],
    [{ acceptSkills: ["scan"] }, true],
    [{ enabled: false }, false],
    [later, false],
  ];
  for (const [door, taken] of doors) {
    const { choose } = start([hosted("boss"), hosted("ann"), hosted("bob")], [], undefined, {
      "acme-ann": door,
      "acme-bob": { acceptFromRuntimes: [] },
    });
    const made = await choose({ skill: "scan" });
    if (taken) assert.equal(made, "skill acme-ann ann/scan");
    else assert.match(made, /^no_candidate: .*"acme-ann" is not_accepted, "acme-bob" is not_accepted/);
    assert.equal(await choose({ to: "ann", skill: "scan" }), "target acme-ann ann/scan");
  }
  const away = start([hosted("boss"), hosted("ann")], [], undefined, {
    "acme-ann": new Error("the table is away"),
  });
  await assert.rejects(away.choose({ skill: "scan" }), /the table is away/);
});

test("a default that would refuse its general skill is not asked", async () => {
  const agents = [hosted("boss"), hosted("dan", [TASK])];
  const closed = start(agents, [], "dan", { "acme-dan": { acceptFromRuntimes: ["acme-cli"] } });
  assert.match(await closed.choose({ skill: "paint" }), /^no_candidate: .*"acme-dan" is not_accepted/);
  const general = start(agents, [], "dan", { "acme-dan": { acceptSkills: ["general_task"] } });
  assert.equal(await general.choose({ skill: "paint" }), "default acme-dan dan/task");
});

test("a peer is asked where its skill is, and not at all when it says nowhere, is stale, or speaks otherwise", async () => {
  const boss = hosted("boss", []);
  const elsewhere = peer("ann", ["other/scan", "lobby/general_task"]);
  const { choose } = start([boss], [elsewhere]);
  assert.equal(await choose({ skill: "scan" }), "skill ann other/scan");
  assert.equal(await choose({ skill: "task" }), "skill ann lobby/general_task");
  assert.match(await choose({ to: "ann", skill: "sbom" }), /^unknown_skill/);
  const gone = { status: { state: "unseen" } } as const;
  for (const [over, expected] of [
    [gone, /"ann" is stale/],
    [{ supported: false }, /no agent has it/],
    [{ skills: [], extended: {} }, /no agent has it/],
    [{ id: "no id" }, /no agent has it/],
  ] as const)
    assert.match(
      await start([boss], [peer("ann", ["lobby/scan"], over)]).choose({ skill: "scan" }),
      expected,
    );
});

test("our own agents' cards make no other agents of them, and no card takes a name of ours", async () => {
  const agents = [hosted("boss"), hosted("cat")];
  const cards = [
    peer("acme-cat", ["evil/scan"]),
    peer("eve", ["evil/sbom"], { extended: { channel_ref: "cat", display_name: "The cat" } }),
  ];
  const { choose } = start(agents, cards);
  assert.equal(await choose({ skill: "scan" }), "skill acme-cat cat/scan");
  assert.equal(await choose({ to: "cat", skill: "scan" }), "target acme-cat cat/scan");
  assert.equal(await choose({ to: "The cat", skill: "scan" }), "target acme-cat cat/scan");
});

test("the default is asked for its general skill, if the policy allows that, and never by itself", async () => {
  const agents = [hosted("boss", [TASK]), hosted("dan", [TASK])];
  const { choose } = start(agents, [], "dan");
  assert.equal(await choose({ skill: "paint" }), "default acme-dan dan/task");
  const targets = [{ runtimeAgentId: "acme-dan", skillId: "paint" }];
  assert.match(await choose({ skill: "paint", targets }), /^no_candidate: .*"acme-dan" is not_allowed/);
  assert.match(await start(agents, [], "boss").choose({ skill: "paint" }), /^no_candidate/);
});
