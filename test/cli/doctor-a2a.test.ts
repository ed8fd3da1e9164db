import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { cardFindings } from "../../cli/doctor/a2a/cards.ts";
import { loginFinding } from "../../cli/doctor/a2a/login.ts";
import { peerFindings } from "../../cli/doctor/a2a/peers.ts";
import { permissionFinding } from "../../cli/doctor/a2a/permissions.ts";
import { legacyFindings, policyFindings } from "../../cli/doctor/a2a/policies.ts";
import { checkReadiness } from "../../cli/doctor/a2a/readiness.ts";
import { readHome } from "../../cli/home.ts";
import { ownCards } from "../../shared/cards/own.ts";
import { keepLook } from "../../shared/cards/peer-keeping.ts";
import { peersKnown } from "../../shared/cards/peers.ts";
import type { HostedAgent } from "../../shared/config/deployment.ts";
import { agentPolicy } from "../../shared/config/policy.ts";
import { parseCredentials } from "../../shared/nats/credentials.ts";
import { natsGrants } from "../../shared/nats/permissions.ts";
import { ensureStreams } from "../../shared/nats/streams.ts";
import { memoryPeers } from "../../shared/testing/memory-peers.ts";
import { peerRecord, putAt } from "../cards/support/records.ts";
import { startNats } from "../support/nats-server.ts";
import { type Reached, watchReached } from "../support/reached.ts";
import { assertFound } from "./findings.ts";

let reached: Reached;
before(async () => {
  reached = await watchReached();
});
after(() => reached?.[Symbol.dispose]());

const NOW = Date.now();
function agentOf(id: string, policy: object = {}): HostedAgent {
  return {
    id,
    runtime: `acme-${id}`,
    channelRef: id,
    displayName: id,
    description: "",
    version: "1",
    skills: [{ slug: "task", name: "", description: "", tags: [] }],
    policy: agentPolicy.parse({ acceptFromRuntimes: ["adam-lobby"], ...policy }),
    settings: {},
  };
}
const governed = (id: string, policy: object = {}, written = policy) => ({
  ...agentOf(id, policy),
  written: agentOf(id, written).policy,
});

test("policies with which peers cannot work, or that allow much", () => {
  const targets = { delegateTargets: [{ runtimeAgentId: "bob-lobby" }] };
  assertFound(
    policyFindings([
      governed("fine"),
      governed("closed", { acceptFromRuntimes: [] }),
      governed("off", { enabled: false, acceptFromRuntimes: [] }),
      governed("hidden", { enabled: false, discoverable: false }),
      governed("open", { allowMemoryWrite: true }),
      governed("late", targets, {}),
      governed("both", targets),
    ]),
    /^wrong policy of acme-closed: it takes tasks of nobody: acceptFromRuntimes is empty$/,
    /^warning policy of acme-open: remote tasks may write its memory: allowMemoryWrite$/,
    /^wrong policy of acme-late: delegateTargets is set in the table alone: it hears nothing of what/,
    /^ok policies: 5 of 7 agents take tasks, 5 of them are to be found$/,
  );
  assertFound(policyFindings([]), /^warning policies: there is no agent: nobody can be asked$/);
});

test("an agent of ours that is handed tasks which it does not accept", () => {
  const to = (...names: string[]) => ({
    acceptFromRuntimes: ["acme-cli"],
    delegateTargets: names.map((runtimeAgentId) => ({ runtimeAgentId })),
  });
  const findings = policyFindings([
    governed("boss", to("acme-deaf", "acme-kind", "acme-open", "acme-off", "bob-lobby")),
    governed("star", to("*")),
    governed("deaf", { acceptFromRuntimes: ["acme-cli"] }),
    governed("kind", { acceptFromRuntimes: ["acme-boss"] }),
    governed("open", { acceptFromRuntimes: ["*"] }),
    governed("off", { enabled: false, discoverable: false, acceptFromRuntimes: [] }),
  ]);
  assertFound(
    findings,
    /^warning policy of acme-boss: it may hand tasks on to acme-deaf, which accepts none of it$/,
    /^ok policies: /,
  );
  assert.equal(findings[0]?.todo, "./sluice allow deaf acme-boss");
});

test("older names", () => {
  const of = (field: string, unused: boolean) => [{ field, canonical: "acceptFromRuntimes", unused }];
  assertFound(
    legacyFindings(
      new Map([
        ["defaults", of("acceptFrom", false)],
        ["support", of("acceptFrom", true)],
      ]),
    ),
    /^warning defaults\.acceptFrom: is an older name, and read as acceptFromRuntimes$/,
    /^warning agents\.support\.acceptFrom: counts for nothing beside acceptFromRuntimes$/,
  );
});

test("logins by which others can speak as our agents; what they are is not shown", () => {
  const here = ["nats://127.0.0.1:4222", "nats://localhost:4222"];
  const there = ["nats://nats.example:4222"];
  const look = (text: string, servers: readonly string[], encrypted = false) =>
    loginFinding(text === "" ? {} : parseCredentials(text, "x"), { servers, encrypted });
  const password = '{"user": "a", "password": "hunter2"}';
  for (const [finding, expected] of [
    [look("", here), /^ok login at NATS: nobody asks who we are$/],
    [look("s3cret", here), /^ok .*: by a token$/],
    [look("", there), /^warning .*: nobody asks who we are: whoever reaches the server can speak as our/],
    [look("", there, true), /^warning .*over TLS: whoever reaches/],
    [look("s3cret", there), /^warning .*: by a token, which goes over the network as it is$/],
    [look(password, there), /^warning .*: by user and password, which goes/],
    [look("s3cret", there, true), /^ok .*: by a token, over TLS$/],
    [
      look("SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU", there),
      /^ok .*: by a key of our own$/,
    ],
  ] as const) {
    assertFound([finding], expected);
    assert.doesNotMatch(JSON.stringify(finding), /hunter2|s3cret|SUAM/);
  }
});

test("what NATS does not let the command do is found, and nothing is made by looking", async () => {
  const dir = mkdtempSync(join(tmpdir(), "sluice-doctor-a2a-"));
  const agents = [{ runtime: "acme-support", delegates: true }];
  const all = natsGrants({ deployment: "acme", agents, functions: ["command"] });
  const subjects = (kind: string) => all.filter((of) => of.kind === kind).map(({ subject }) => subject);
  const user = (name: string, publish: readonly string[]) =>
    JSON.stringify({
      user: name,
      password: name,
      permissions: { publish, subscribe: subjects("subscribe") },
    });
  const denied = ["$JS.API.CONSUMER.LIST.A2A_TASKS", "$JS.API.CONSUMER.CREATE.A2A_EVENTS"];
  const some = subjects("publish").filter((of) => !denied.includes(of));
  writeFileSync(
    join(dir, "nats.conf"),
    `jetstream: {}
     accounts: { A: { jetstream: enabled, users: [${user("all", subjects("publish"))}, ${user("some", some)}, ${user("none", ["x"])}, { user: root, password: root }] } }`,
  );
  const nats = await startNats(["-c", join(dir, "nats.conf")]);
  const root = await connect({ servers: nats.url, user: "root", pass: "root" });
  const jsm = await jetstreamManager(root);
  await ensureStreams(jsm);
  const as = async (name: string) => {
    const inboxPrefix = "_INBOX_sluice-acme.command";
    const nc = await connect({ servers: nats.url, user: name, pass: name, inboxPrefix });
    const finding = await permissionFinding(nc, { deployment: "acme", agents });
    await nc.close();
    return finding;
  };
  assertFound(
    [await as("all")],
    /^ok permissions of the command: may do all that can be tried: \d+ subjects$/,
  );
  const found = await as("some");
  assertFound(
    [found],
    /^warning .*: NATS does not let it publish on (\$JS\.API\.CONSUMER\.\w+\.A2A_\w+(, )?){2}$/,
  );
  for (const subject of denied) assert.ok(found.says.includes(subject), subject);
  assertFound([await as("none")], /, and \d+ more$/);
  for (const stream of ["A2A_TASKS", "A2A_EVENTS"]) {
    const { state } = await jsm.streams.info(stream);
    assert.deepEqual([state.messages, state.consumer_count], [0, 0], stream);
  }
  await root.close();
  await nats.stop();
  rmSync(dir, { recursive: true });
});

test("cards that peers refuse, that are not there or old, or that should not be there", () => {
  const agents = ["fine", "bad", "gone", "old", "left", "hidden"].map((id) =>
    agentOf(id, { discoverable: !["left", "hidden"].includes(id) }),
  );
  const shown = agents.map((of) => ({ ...of, policy: { ...of.policy, discoverable: true } }));
  const nats = { servers: ["nats://127.0.0.1:4222"], credentials: "none" };
  const context = { servers: nats.servers, instance: "i", now: NOW };
  const { cards } = ownCards({ deployment: "acme", nats, agents: shown }, context);
  const bytes = new Map(cards.map((of) => [of.runtime, of.bytes]));
  const entry = (id: string, at = Date.now()) => ({ key: `acme-${id}`, at, bytes: bytes.get(`acme-${id}`) });
  const bad = { ...entry("bad"), bytes: Buffer.from("{}") };
  assertFound(
    cardFindings(agents, [entry("fine"), bad, entry("old", Date.now() - 91_000), entry("left")]),
    /^wrong card of acme-bad: peers refuse it: /,
    /^warning cards: nobody finds acme-gone: no card$/,
    /^warning cards: nobody counts on acme-old: an old card$/,
    /^warning cards: acme-left: not discoverable, and has a card still$/,
    /^ok cards: 1 as peers expect them$/,
  );
});

test("peers that nobody looks for, records that are none, and targets that are not there", async () => {
  const store = memoryPeers();
  const look = async (now = NOW, ...agents: ReturnType<typeof governed>[]) =>
    peerFindings(await peersKnown(store, [], now), agents, now);
  const target = (...names: string[]) =>
    governed("boss", { delegateTargets: names.map((runtimeAgentId) => ({ runtimeAgentId })) });
  assertFound(await look(NOW, target("bob-lobby")), /^warning peers: nobody has looked for any yet$/);
  // Alone on its NATS: looks that find nobody are not written, but for the first.
  await keepLook(store, { at: NOW - 3_600_000, entries: [] });
  assertFound(
    await look(NOW, target("bob-lobby")),
    /^ok peers: 0 live, 0 stale$/,
    /^warning targets of acme-boss: bob-lobby: no card of it was ever seen$/,
  );
  const [first] = peerRecord("odd").card.supportedInterfaces;
  const odd = {
    card: { ...peerRecord("odd").card, supportedInterfaces: [{ ...first, protocolVersion: "9" }] },
  };
  const entries = [
    putAt("bob-lobby", NOW),
    putAt("odd", NOW, odd),
    putAt("old", NOW - 100_000),
    ...Array.from({ length: 7 }, (_, at) => ({ key: `bad-${at}`, at: NOW, bytes: Buffer.from("{") })),
  ];
  await keepLook(store, { at: NOW, entries });
  const bad = /^warning record bad-\d: is none: .*; existing peers read no further than there$/;
  assertFound(
    await look(NOW, target("bob-lobby", "odd", "old", "nobody", "acme-boss", "*")),
    /^ok peers: 2 live, 1 stale$/,
    ...[bad, bad, bad, bad, bad],
    /^warning records: 2 more are none$/,
    /^warning targets of acme-boss: nobody: no card of it was ever seen$/,
    /^warning targets of acme-boss: old: its card is stale$/,
    /^warning targets of acme-boss: odd: it speaks otherwise than we do$/,
  );
  const [overdue] = await look(NOW + 301_000);
  assertFound(overdue ? [overdue] : [], /^warning peers: nobody has looked for them since 5 min/);
});

test("where there is no stack and no NATS the file is looked at, if it can be read", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-doctor-a2a-"));
  mkdirSync(join(folder, "agents"));
  const look = async (text: string) => {
    writeFileSync(join(folder, "agents.yaml"), text);
    const where = { servers: ["nats://127.0.0.1:1"], credentials: "none" };
    return checkReadiness(readHome(folder), undefined, where);
  };
  const remote = "{ name: auditor, url: 'https://a.example/a2a', auth: { credentials: 'file:none' } }";
  assertFound(
    await look(`deployment: acme\ndefaults: { acceptFrom: [adam-lobby] }\nremotes: [${remote}]\n`),
    /^warning policies: there is no agent/,
    /^ok discovery: without discovery\.discordGuildId no peer on Discord lists the agents/,
    /^warning defaults\.acceptFrom: is an older name/,
    /^wrong NATS: cannot reach NATS at nats:\/\/127\.0\.0\.1:1: connection refused$/,
    /^wrong credentials of auditor: file:\/.*none is empty or not there$/,
  );
  assertFound(await look("deployment: acme\nagents: { nobody: {} }\n"));
  rmSync(folder, { recursive: true });
});

test("every failure that doctor can name of A2A is produced here", async () => {
  const folder = join(import.meta.dirname, "../../cli/doctor/a2a");
  const unreached = await reached.unreached(folder, /(?<!function )\b(wrong|warning)\(/g);
  // Those have a file of their own: doctor-remotes.test.ts.
  assert.deepEqual(
    unreached.filter((of) => !of.startsWith("remotes.ts:")),
    [],
  );
});
