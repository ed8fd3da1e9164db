import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { cardFindings } from "../../cli/doctor/a2a/cards.ts";
import { loginFinding } from "../../cli/doctor/a2a/login.ts";
import { peerFindings } from "../../cli/doctor/a2a/peers.ts";
import { permissionFinding } from "../../cli/doctor/a2a/permissions.ts";
import { legacyFindings, policyFindings } from "../../cli/doctor/a2a/policies.ts";
import { checkReadiness } from "../../cli/doctor/a2a/readiness.ts";
import { credentialFinding, remoteFindings } from "../../cli/doctor/a2a/remotes.ts";
import type { Finding } from "../../cli/doctor/finding.ts";
import { readHome } from "../../cli/home.ts";
import { ownCards } from "../../shared/cards/own.ts";
import type { Standing } from "../../shared/cards/peer-facts.ts";
import { keepLook } from "../../shared/cards/peer-keeping.ts";
import { peersKnown } from "../../shared/cards/peers.ts";
import type { HostedAgent } from "../../shared/config/deployment.ts";
import { agentPolicy } from "../../shared/config/policy.ts";
import { type RemoteConfig, remotes } from "../../shared/config/remotes.ts";
import { parseCredentials } from "../../shared/nats/credentials.ts";
import { natsGrants } from "../../shared/nats/permissions.ts";
import { ensureStreams } from "../../shared/nats/streams.ts";
import { memoryPeers } from "../../shared/testing/memory-peers.ts";
import { peerRecord, putAt } from "../cards/support/records.ts";
import { startNats } from "../support/nats-server.ts";
import { type Reached, watchReached } from "../support/reached.ts";

let reached: Reached;
before(async () => {
  reached = await watchReached();
});
after(() => reached?.[Symbol.dispose]());

const NOW = Date.now();
const textOf = ({ level, part, says }: Finding) => `${level} ${part}: ${says}`;
/** What is found: each that is not as it should be says what to do. */
function assertFound(findings: readonly Finding[], ...expected: readonly RegExp[]): void {
  const told = findings.map(textOf);
  assert.equal(told.length, expected.length, told.join("\n"));
  for (const [index, pattern] of expected.entries()) assert.match(told[index] ?? "", pattern);
  for (const { level, todo } of findings) assert.equal(level === "ok", todo === undefined);
}

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
    /^warning policy of acme-off: it shows a card, and takes no tasks/,
    /^warning policy of acme-open: remote tasks may write its memory: allowMemoryWrite$/,
    /^wrong policy of acme-late: delegateTargets is set in the table alone: it hears nothing of what/,
    /^ok policies: 5 of 7 agents take tasks, 5 of them are to be found$/,
  );
  assertFound(policyFindings([]), /^warning policies: there is no agent: nobody can be asked$/);
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

describe("remote agents", () => {
  const remoteOf = (credentials?: string): RemoteConfig => {
    const auth = credentials === undefined ? {} : { auth: { scheme: "bearer", credentials } };
    const [remote] = remotes.parse([{ name: "auditor", url: "https://a.example/a2a", ...auth }]);
    assert.ok(remote);
    return remote;
  };

  test("credentials that are not there, or only on this machine; they are never shown", async () => {
    const look = (credentials?: string, deployed = false) =>
      credentialFinding(remoteOf(credentials), {
        deployed,
        env: { TOKEN: "hunter2", EMPTY: " " },
        file: async (path) => (path === "/there" ? "hunter2" : Promise.reject(new Error("ENOENT"))),
        secret: async (name) => ({ set: true, unset: false })[name],
      });
    for (const [finding, expected] of [
      [await look(), /^ok credentials of auditor: none are needed$/],
      [await look("secret:set", true), /^ok .*: secret:set is set$/],
      [await look("secret:unset"), /^wrong .*: secret:unset has no value$/],
      [await look("secret:none"), /^wrong .*: secret:none does not exist$/],
      [await look("file:/there"), /^ok .*: file:\/there is set$/],
      [await look("file:/none"), /^wrong .*: file:\/none is empty or not there$/],
      [await look("env:TOKEN"), /^ok .*: env:TOKEN is set$/],
      [await look("env:EMPTY"), /^warning .*: env:EMPTY is empty or not there, as this command has it$/],
      [await look("env:TOKEN", true), /^wrong .*: env:TOKEN is of this machine: functions in the cloud/],
      [await look("file:/there", true), /^wrong .*: file:\/there is of this machine/],
    ] as const) {
      assertFound([finding], expected);
      assert.doesNotMatch(JSON.stringify(finding), /hunter2/);
    }
  });

  test("cards that cannot be had, a key that waits, and agents that do not answer", async () => {
    const look = async (standing?: Omit<Standing, "id">, over: object = {}) => {
      const store = memoryPeers();
      const standings = standing === undefined ? [] : [{ id: "auditor", ...standing }];
      await store.putLedger("http", { standings }, 0);
      const [peer] = (await peersKnown(store, [remoteOf()], NOW)).peers;
      assert.ok(peer);
      return remoteFindings({ ...peer, ...over }, NOW);
    };
    const seen = { seen: NOW - 60_000, failures: 0 };
    const probe = { at: NOW - 1_000, reachable: true, latencyMs: 1 };
    assertFound(await look({ ...seen, probe }), /^ok remote auditor: answers, its card of 1 min ago$/);
    assertFound(await look({ ...seen, probe }, { notes: ["x"] }), /^ok .*, 1 of its entries left out$/);
    assertFound(await look(), /^warning remote auditor: its card was not asked for yet$/);
    assertFound(
      await look({ failures: 3, failingSince: NOW, reason: "no\u001b[2J card" }),
      /^warning .*: its card could not be had 3 times in a row: no.* card$/,
    );
    assertFound(
      await look({ ...seen, failures: 1, offeredKey: "did:key:z6Mk" }),
      /^warning .*: another key has signed its card: did:key:z6Mk; the last good card is kept$/,
    );
    assertFound(
      await look({
        ...seen,
        failures: 1,
        reason: "gone",
        probe: { ...probe, reachable: false, error: "refused" },
      }),
      /^warning .*: its card could not be had 1 time in a row: gone; that of 1 min ago is kept$/,
      /^warning .*: did not answer 1\.0 s ago: refused$/,
    );
    assertFound(
      await look({ seen: NOW - 8_000_000, failures: 0, probe: { ...probe, at: NOW - 301_000 } }),
      /^warning .*: its card was asked for last 2 h/,
      /^warning .*: was looked after last 5 min/,
    );
    assertFound(
      await look({ ...seen, probe }, { supported: false }),
      /^warning .*: it speaks no A2A 0\.3 or 1\.0/,
    );
  });
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
    /^warning defaults\.acceptFrom: is an older name/,
    /^wrong credentials of auditor: file:\/.*none is empty or not there$/,
  );
  assertFound(await look("deployment: acme\nagents: { nobody: {} }\n"));
  rmSync(folder, { recursive: true });
});

test("every failure that doctor can name of A2A is produced here", async () => {
  const folder = join(import.meta.dirname, "../../cli/doctor/a2a");
  assert.deepEqual(await reached.unreached(folder, /(?<!function )\b(wrong|warning)\(/g), []);
});
