import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import * as z from "zod";
import { inbound, outbound } from "../../cli/peers/allowed.ts";
import { lookForPeers } from "../../cli/peers/look.ts";
import { peerNamed } from "../../cli/peers/named.ts";
import { throughFronts } from "../../cli/peers/remotes.ts";
import { agentPolicy } from "../../shared/config/policy.ts";
import { BINDING } from "../../shared/wire/envelope.ts";
import { openStage, type Stage } from "./peer.ts";
import { run } from "./run.ts";

const agentOf = (id: string) => `import { defineAgent, skill } from "sluice";
  import * as z from "zod";
  const of = { name: "", description: "", input: z.string(), run: async () => "" };
  export default defineAgent({ id: "${id}", description: "", skills: { task: skill(of) } });`;

const AGENTS_YAML = `deployment: acme
agents:
  support: { acceptFromRuntimes: [adam-lobby], delegateTargets: [{ runtimeAgentId: adam-lobby, skillId: lobby/task }] }
  desk: { enabled: false, acceptFromRuntimes: ["*"] }
`;

let stage: Stage;
let cwd: string;

before(async () => {
  stage = await openStage();
  cwd = mkdtempSync(join(tmpdir(), "sluice-peers-"));
  writeFileSync(join(cwd, "agents.yaml"), AGENTS_YAML);
  mkdirSync(join(cwd, "agents"));
  for (const id of ["support", "desk"]) writeFileSync(join(cwd, `agents/${id}.ts`), agentOf(id));
});
after(async () => {
  await stage[Symbol.asyncDispose]();
  rmSync(cwd, { recursive: true, force: true });
});

const sluice = (...args: string[]) => run([...args, "--nats", stage.nats.url], { cwd });

/** A record as peers put them. */
function record(agentId: string, { binding = BINDING, displayName = agentId, skills = ["task"] } = {}) {
  return {
    agentId,
    card: {
      name: agentId,
      description: "a peer",
      version: "1.0",
      supportedInterfaces: [
        { url: "nats://n.example:4222", protocolBinding: binding, protocolVersion: "1.0" },
      ],
      capabilities: { streaming: true },
      skills: skills.map((slug) => ({ id: `lobby/${slug}`, name: slug, description: "" })),
    },
    extendedCard: { channel_ref: "lobby", display_name: displayName, signature_status: "verified" },
    expiresAt: "2999-01-01T00:00:00Z",
  };
}

const put = (key: string, body: unknown) =>
  jetstream(stage.nc).publish(`$KV.A2A_PEERS.${key}`, typeof body === "string" ? body : JSON.stringify(body));

const shape = z.looseObject({
  peer: z.string(),
  state: z.string(),
  reason: z.string().nullable(),
  since: z.iso.datetime().nullable(),
  name: z.string().nullable(),
  compatible: z.boolean().nullable(),
  policies: z.string(),
});

test("peers: nobody without a bucket, then everybody in it but our own, whatever lies beside", async () => {
  const nobody = await sluice("peers");
  assert.equal(nobody.stdout, "no peers: nobody else shows a card\n");
  assert.equal(nobody.code, 0);

  const jsm = await jetstreamManager(stage.nc);
  await jsm.streams.add({ name: "KV_A2A_PEERS", subjects: ["$KV.A2A_PEERS.>"], max_msgs_per_subject: 1 });
  await put("broken", "not json");
  await put(
    "adam-lobby",
    record("adam-lobby", { displayName: "Lobby\u001b[2J of\nAdam", skills: ["task", "more"] }),
  );
  await put("bob-lobby", { ...record("bob-lobby"), expiresAt: "2001-01-01T00:00:00Z" });
  await put("carl-lobby", record("carl-lobby", { binding: "urn:example:other" }));
  await put("acme-support", record("acme-support"));
  await put("acme-desk", "not json either");
  const marker = headers();
  marker.set("KV-Operation", "DEL");
  await jetstream(stage.nc).publish("$KV.A2A_PEERS.dora-lobby", "", { headers: marker });

  const { stdout, code } = await sluice("peers");
  assert.equal(code, 0);
  const rows = stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.replace(/since [-\d]+ [:\d]{8}/, "since T").split(/ {2,}/));
  assert.deepEqual(rows, [
    ["PEER", "NAME", "CHANNEL", "STATE", "SPEAKS", "SIGNATURE", "ACCEPTED BY", "ASKED BY", "SKILLS"],
    [
      "adam-lobby",
      "Lobby of Adam",
      "lobby",
      "live",
      "as we do",
      "unsigned",
      "support",
      "support",
      "lobby/task, lobby/more",
    ],
    [
      "bob-lobby",
      "bob-lobby",
      "lobby",
      "stale since T: its record has expired",
      "as we do",
      "unsigned",
      "nobody",
      "nobody",
      "lobby/task",
    ],
    ["broken", "-", "-", "amiss: record: expected JSON", "-", "-", "nobody", "nobody"],
    ["carl-lobby", "carl-lobby", "lobby", "live", "otherwise", "unsigned", "nobody", "nobody", "lobby/task"],
    ["dora-lobby", "-", "-", "stale since T: taken away", "-", "-", "nobody", "nobody"],
    ["carl-lobby: nobody accepts it: ./sluice allow AGENT carl-lobby"],
    ["what is allowed is as agents.yaml says; --stack NAME asks a deployed stack"],
  ]);

  const json = (await sluice("peers", "--json")).json().map((line) => shape.parse(line));
  assert.deepEqual(
    json.map(({ peer, state, reason, compatible }) => [peer, state, reason, compatible]),
    [
      ["adam-lobby", "live", null, true],
      ["bob-lobby", "stale", "expired", true],
      ["broken", "amiss", "record: expected JSON", null],
      ["carl-lobby", "live", null, false],
      ["dora-lobby", "stale", "gone", null],
    ],
  );
  assert.equal(json[1]?.since, "2001-01-01T00:00:00.000Z");
  assert.deepEqual(json[0]?.signature, { state: "unsigned", says: "verified" });
  assert.deepEqual(json[0]?.inbound, [
    { agent: "desk", allowed: false, why: "it takes no tasks: enabled is false" },
    { agent: "support", allowed: true, why: "acceptFromRuntimes names it" },
  ]);
});

test("peers NAME shows one in full: by its id, its name or its channelRef, and never a guess", async () => {
  const { stdout, code } = await sluice("peers", "adam-lobby");
  assert.equal(code, 0);
  assert.equal(
    stdout.replace(/^(record +).*$/m, "$1T"),
    `adam-lobby  live
record       T
name         Lobby of Adam
channel      lobby
description  a peer
version      1.0
speaks       ${BINDING} 1.0 (as we do)
at           nats://n.example:4222
can          streaming
signature    unsigned; says of itself: verified
skills
  lobby/task  task
  lobby/more  more
inbound: who accepts its tasks
  desk does not accept it: it takes no tasks: enabled is false
  support accepts it: acceptFromRuntimes names it
outbound: who may hand tasks on to it
  desk may not: not in delegateTargets
  support may for lobby/task: in delegateTargets
what is allowed is as agents.yaml says; --stack NAME asks a deployed stack
`,
  );
  const stranger = await sluice("peers", "CARL-lobby");
  assert.match(stranger.stdout, /^speaks +urn:example:other 1\.0 \(we speak urn:\S+ 1\.0\)$/m);
  assert.match(
    stranger.stdout,
    /support does not accept it: not in acceptFromRuntimes: \.\/sluice allow support carl-lobby\n {2}nobody accepts it$/m,
  );
  const several = await sluice("peers", "lobby");
  assert.equal(several.code, 2);
  assert.match(several.stderr, /several are called so: adam-lobby, bob-lobby, carl-lobby; name the one/);
});

test("a name means a key before what a card says, and never one of several, nor one of ours", async () => {
  const { peers: seen } = await lookForPeers(stage.nc, new Set(["acme-support", "acme-desk"]));
  const named = (name: string) => peerNamed(seen, name).id;
  assert.equal(named("broken"), "broken");
  assert.equal(named("lobby of ADAM"), "adam-lobby");
  await put("lobby", record("lobby"));
  const { peers: more } = await lookForPeers(stage.nc, new Set());
  assert.equal(peerNamed(more, "lobby").id, "lobby");
  assert.throws(
    () => named("lobby"),
    /several are called so: adam-lobby, bob-lobby, carl-lobby; name the one/,
  );
  for (const name of ["acme-support", "eve"])
    assert.throws(() => named(name), /no peer ".*"; there are adam-lobby, .*; our own agents are with/);
});

test("tasks are handed on to a remote agent by who may hand them on to an agent that stands for it", () => {
  const targets = [{ runtimeAgentId: "acme-audit", skillId: "audit/sbom" }];
  const agent = { id: "support", policy: agentPolicy.parse({ delegateTargets: targets }) };
  const front = (id: string) => ({
    ...{ id, runtime: `acme-${id}`, channelRef: id, displayName: id, description: "", version: "1" },
    skills: [{ slug: "task", name: "", description: "", tags: [] }],
    ...{ policy: agentPolicy.parse({}), settings: {} },
  });
  const skill = { id: "sbom", name: "", description: "", tags: [], from: "card" as const };
  const to = (...fronts: string[]) =>
    throughFronts(agent, fronts.map(front), { id: "auditor", skills: [skill, { ...skill, id: "a/b" }] });
  assert.deepEqual(to("other", "audit"), {
    agent: "support",
    allowed: true,
    why: "in delegateTargets (acme-audit)",
    skills: ["audit/sbom"],
  });
  assert.deepEqual(to("other"), {
    agent: "support",
    allowed: false,
    why: "not in delegateTargets (acme-other)",
  });
  assert.match(to().why, /^no agent of ours stands for it: agents: \{ ID: \{ remote: auditor \} \}/);
});

test("remote agents that nothing is known of are shown as the file has them", async () => {
  const remotes = 'remotes: [{ name: auditor, url: "https://a.example/a2a", skills: [audit, a/b] }]';
  writeFileSync(join(cwd, "agents.yaml"), `${AGENTS_YAML}${remotes}\n`);
  const { stdout, stderr } = await sluice("peers", "auditor");
  writeFileSync(join(cwd, "agents.yaml"), AGENTS_YAML);
  assert.match(stderr, /what is known of remote agents is told by a running local host, or by --stack NAME/);
  assert.match(
    stdout,
    /^auditor {2}unseen\nat +https:\/\/a\.example\/a2a\nas +nobody\ncard +none was had yet\n/,
  );
  assert.match(stdout, /^note +skill "a\/b": left out: expected a slug/m);
  assert.match(stdout, /^skills\n {2}audit \(file\) +audit\nstands for +nobody of ours\n/m);
  assert.match(stdout, /support does not accept it: it is asked over HTTP, and asks nobody here/);
});

test("what is allowed goes by the policy, and says why not", () => {
  const skills = ["lobby/general_task", "lobby/more"];
  const peer = { id: "adam-lobby", skills };
  const ruled = (policy: unknown) => ({ id: "support", policy: agentPolicy.parse(policy) });
  const to = (skillId: string, runtimeAgentId = "adam-lobby") => ({
    delegateTargets: [{ runtimeAgentId, skillId }],
  });
  const asked = (policy: unknown, of: Parameters<typeof inbound>[1] = peer) => {
    const { allowed, why, skills } = inbound(ruled(policy), of);
    return [allowed, why, skills];
  };
  const asks = (policy: unknown, of: Parameters<typeof outbound>[1] = peer) => {
    const { allowed, why, skills } = outbound(ruled(policy), of);
    return [allowed, why, skills];
  };
  const everybody = { acceptFromRuntimes: ["*"] };
  assert.deepEqual(asked(everybody), [true, 'acceptFromRuntimes has "*"', undefined]);
  assert.deepEqual(asked({ ...everybody, acceptSkills: ["task"] })[2], ["task"]);
  assert.deepEqual(asked(everybody, { id: "a b" }).slice(0, 2), [
    false,
    "its id is none that a sender can have",
  ]);
  assert.deepEqual(asks(to("task"))[2], ["lobby/general_task"]);
  assert.deepEqual(asks(to("lobby/*", "*"))[2], skills);
  assert.equal(asks(to("other"))[1], "none of its skills is in delegateTargets");
  assert.equal(asks(to("task", "bob-lobby"))[1], "not in delegateTargets");
  assert.equal(asks(to("task"), { id: "adam-lobby" })[1], "the peer's skills are not known");
  assert.equal(
    asks({ ...to("task"), maxDelegationDepth: 0 })[1],
    "it hands nothing on: maxDelegationDepth is 0",
  );
});
