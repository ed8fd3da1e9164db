import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import * as z from "zod";
import { ROOT } from "../../infra/bundle.ts";
import { delegateFirstTask } from "../../infra/local/first-task.ts";
import { type Host, startHost } from "../../infra/local/host.ts";
import { progressOn } from "../../infra/local/progress.ts";
import { ensurePeersBucket } from "../../shared/cards/bucket.ts";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { loadAgents } from "../../shared/config/load-agents.ts";
import { natsMessenger } from "../../shared/events/messenger.ts";
import {
  ARTIFACTS_BUCKET,
  ack,
  clientName,
  connectNats,
  ensureStreams,
  getObject,
  publishOnStream,
  putObject,
  readBySeq,
  readLastOn,
  STREAMS,
} from "../../shared/nats/index.ts";
import {
  grantsBy,
  NATS_FUNCTIONS,
  NATS_PERMISSIONS,
  NATS_RESPONSES,
  NATS_ROLES,
  type NatsFunction,
  type NatsGrant,
  type NatsUser,
  natsGrants,
  type PermissionsOf,
} from "../../shared/nats/permissions.ts";
import { start } from "../cli/run.ts";
import { findNatsServer } from "../support/nats-server.ts";
import { type ConfiguredNats, startConfiguredNats } from "../support/nats-users.ts";
import { type NatsWitness, startNatsWitness } from "../support/nats-witness.ts";
import { Peer } from "../support/peer.ts";
import { SENDER, testAssembly } from "../support/sluice.ts";
import { until } from "../support/until.ts";

const folder = mkdtempSync(join(tmpdir(), "sluice-permissions-"));
const AGENTS = ["asker", "boss", "counted", "counted-limited", "exec", "faulty", "maker", "narrow"]
  .concat("stepper", "support")
  .map((id) => ({ runtime: `acme-${id}`, delegates: true }));

const DEPLOYMENT = join(ROOT, "test/fixtures/deployment");

let nats: ConfiguredNats;
let witness: NatsWitness;
let peer: Peer;
let host: Host;

before(async () => {
  const roles = NATS_ROLES.map((name) => ({
    user: name,
    password: name,
    permissions: permissions(grantsOf(name)),
  }));
  const users = NATS_FUNCTIONS.flatMap((name) => [
    { user: name, password: name, permissions: { ...permissions(grantsOf(name)), ...responses(name) } },
    ...linesOf(name).map((_, at) => ({
      user: lackingUser(name, at),
      password: name,
      permissions: permissions(lacking(name, at)),
    })),
  ]);
  // Who shows no credentials may do everything: the test's peer does not log in.
  const admin = { user: "admin", password: "admin" };
  nats = await startConfiguredNats({
    accounts: {
      agents: { jetstream: "enabled", users: [...users, ...roles, admin] },
      strangers: { jetstream: "enabled", users: [{ user: "stranger", password: "stranger" }] },
    },
    no_auth_user: "admin",
  });
  witness = await startNatsWitness(nats.url);
  peer = await Peer.connect(nats.url, SENDER);
  await ensureStreams(await jetstreamManager(peer.nc));
  await putObject(peer.nc, object("first", "x"));
  await ensurePeersBucket(peer.nc);
  host = await startHost({
    dataDir: join(folder, "data"),
    assemblyDir: await testAssembly(),
    nats: { servers: [witness.url] },
    timeScale: 20,
    env: (name) => ({ NATS_CREDENTIALS: credentials(functionNamed(name)) }),
  });
});
after(async () => {
  await host.stop();
  await peer.close();
  await witness.stop();
  await nats.stop();
  rmSync(folder, { recursive: true });
});

/** What the bridge is allowed for its answers. */
function responses(name: NatsFunction) {
  const { function: answers, max, expires } = NATS_RESPONSES;
  return name === answers ? { allow_responses: { max, expires } } : {};
}

function grantsOf(name: NatsUser): NatsGrant[] {
  return natsGrants(of(name));
}

function of(name: NatsUser): PermissionsOf {
  return { deployment: "acme", agents: AGENTS, functions: [name] };
}

/** The lines of a function, each with its subjects. */
function linesOf(name: NatsUser): (readonly NatsGrant[])[] {
  return NATS_PERMISSIONS.map((line) => grantsBy(line, of(name))).filter((grants) => grants.length > 0);
}

function permissions(grants: readonly NatsGrant[]) {
  const allowed = (kind: NatsGrant["kind"]) => {
    const subjects = grants.filter((grant) => grant.kind === kind).map(({ subject }) => subject);
    // To nats-server an empty list means everything.
    return subjects.length > 0 ? { allow: subjects } : { deny: [">"] };
  };
  return { publish: allowed("publish"), subscribe: allowed("subscribe") };
}

/** What a function may do without one of its lines. */
function lacking(name: NatsFunction, line: number): NatsGrant[] {
  return linesOf(name).toSpliced(line, 1).flat();
}

function credentials(name: NatsUser): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify({ user: name, password: name }));
  return `file:${path}`;
}

function functionNamed(name: string): NatsFunction {
  // A work function of an agent's own logs in as the others do.
  const found = NATS_FUNCTIONS.find((each) => name.endsWith(each) || name.startsWith(`${each}-`));
  return found ?? assert.fail(`${name}: no function of that name`);
}

function object(name: string, text: string) {
  const bytes = Buffer.from(text);
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  return { key: `test/${name}`, mediaType: "text/plain", digest, bytes };
}

/** The user that has all permissions of a function but one line's. */
function lackingUser(name: NatsFunction, line: number): string {
  return `${name}-without-${line}`;
}

/** A connection as a function makes it. */
async function as(name: NatsUser): Promise<NatsConnection> {
  const settings = { servers: [witness.url], credentials: credentials(name) };
  return connectNats({ ...settings, name: clientName("acme", name) });
}

function refusals(of: readonly NatsUser[] = NATS_FUNCTIONS): string[] {
  return of.flatMap((name) =>
    (witness.seen.get(clientName("acme", name))?.refused ?? []).map((refused) => `${name}: ${refused}`),
  );
}

async function has(taskId: string, state: string): Promise<void> {
  await until(state, async () => (await peer.events(taskId)).some(({ event }) => event.state === state), {
    seen: () => refusals(),
  });
}

test("tasks go their whole way with each function allowed only what is documented for it", async () => {
  const delegated = { to: "acme-stepper", message: { file: join(folder, "steps"), steps: 1 } };
  const ask = (data: object) =>
    peer.ask("acme-boss", {
      channelRef: "boss",
      a2a: { message: { parts: [{ data }] } },
      delivery: { maxDelegationDepth: 1 },
    });
  const done = await ask(delegated);
  await has(done.taskId, "TASK_STATE_COMPLETED");
  const kinds = (await peer.events(done.taskId)).map(({ event }) => event.kind);
  assert.ok(kinds.includes("artifact") && kinds.includes("result"), kinds.join());

  const large = await peer.ask("acme-asker", { a2a: `wall${"x".repeat(60_000)}`, channelRef: "asker" });
  await has(large.taskId, "TASK_STATE_INPUT_REQUIRED");
  const gate = join(folder, "gate");
  const stuck = await ask({ ...delegated, message: { ...delegated.message, gate } });
  await until("the child works", async () => {
    const published = witness.seen.get(clientName("acme", "admit"))?.published ?? new Set();
    return [...published].filter((subject) => subject.startsWith("a2a.v1.event.acme-stepper.")).length === 2;
  });
  for (const [to, taskId] of [
    ["acme-asker", large.taskId],
    ["acme-boss", stuck.taskId],
  ] as const) {
    await peer.control(to, taskId, "cancel", 9);
    await has(taskId, "TASK_STATE_CANCELED");
  }
  assert.deepEqual(refusals(), []);
});

/** Whose messages a function settles, and reads when they are too large for a queue. */
const SETTLES: Readonly<Record<NatsFunction, readonly string[]>> = {
  bridge: ["TASKS", "CONTROLS", "EVENTS"],
  admit: ["TASKS"],
  control: ["CONTROLS"],
  events: ["EVENTS"],
  work: [],
  sweep: [],
  cards: [],
};
const TELLS_EVENTS: readonly NatsFunction[] = ["admit", "control", "work", "sweep"];
const CANCELS: readonly NatsFunction[] = ["control", "events", "work", "sweep"];
const KEEPS_ARTIFACTS: readonly NatsFunction[] = ["control", "work", "sweep"];

/** What functions do only when something has gone wrong before, or with large messages. */
const RARELY: Readonly<Record<string, (nc: NatsConnection, name: NatsFunction) => Promise<unknown>>> = {
  async settles(nc, name) {
    // Nobody answers for a message that is none: what counts is that it may be sent.
    for (const of of SETTLES[name])
      await ack(nc, `$JS.ACK.A2A_${of}.a2a_${of.toLowerCase()}_acme-boss.1.1.1.1.0`, 200);
  },
  async reads(nc, name) {
    if (name === "bridge" || name === "cards") return;
    const jsm = await jetstreamManager(nc, { checkAPI: false });
    for (const of of SETTLES[name]) await readBySeq(jsm, `A2A_${of}`, 1);
    await readLastOn(jsm, "A2A_EVENTS", "a2a.v1.event.acme-boss.x.y.*");
  },
  async tells(nc, name) {
    const send = (subject: string) =>
      publishOnStream(nc, { subject, msgId: `${name}:${subject}`, body: "{}" });
    if (TELLS_EVENTS.includes(name)) await send("a2a.v1.event.acme-boss.x.y.status");
    if (CANCELS.includes(name)) await send("a2a.v1.control.acme-boss.x.y.cancel");
    if (name !== "events") return;
    const child = { executor: "x", delegator: "acme-boss", childTaskId: "y" };
    await natsMessenger({ connection: async () => nc }).countArtifacts(child);
  },
  async "writes artifacts"(nc, name) {
    if (!KEEPS_ARTIFACTS.includes(name)) return;
    await putObject(nc, object(name, "first"));
    await putObject(nc, object(name, "second, which takes its place"));
  },
  async "asks what is heard"(nc, name) {
    if (name !== "work") return;
    await natsMessenger({ connection: async () => nc }).controlsHeard("acme-boss");
  },
  async "reads artifacts"(nc, name) {
    if (name !== "work") return;
    const bytes = randomBytes(2_000_000);
    await putObject(peer.nc, { ...object("large", ""), bytes, digest: digestOf(bytes) });
    assert.ok(bytes.equals((await getObject(nc, "test/large")) ?? Buffer.alloc(0)));
  },
};

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

test("cards are shown, renewed and told, and signs of life are given", async () => {
  const seen = (name: NatsFunction) => witness.seen.get(clientName("acme", name))?.published ?? new Set();
  const runtimes = AGENTS.map(({ runtime }) => runtime);
  for (const runtime of runtimes) {
    await until(`the card of ${runtime}`, () => seen("cards").has(`$KV.A2A_PEERS.${runtime}`));
    await until("it is renewed", () => seen("bridge").has(`$KV.A2A_PEERS.${runtime}`));
  }
  const told = new Set<string>();
  await until("they are told", async () => {
    const answers = await peer.nc.requestMany("a2a.v1.card.discover", "peer-card-request", { maxWait: 500 });
    for await (const answer of answers)
      told.add(z.object({ agentId: z.string() }).parse(answer.json()).agentId);
    return told.size === runtimes.length;
  });
  assert.deepEqual([...told].toSorted(), runtimes.toSorted());
  assert.deepEqual(refusals(), []);
});

test("so does what they do only rarely, and none of their permissions is without use", async () => {
  for (const name of NATS_FUNCTIONS) {
    const nc = await as(name);
    for (const [what, does] of Object.entries(RARELY))
      await does(nc, name).catch((error) => assert.fail(`${name} ${what}: ${error}`));
    await nc.close();
  }
  assert.deepEqual(refusals(), []);
  const unused = NATS_FUNCTIONS.flatMap((name) =>
    linesOf(name).flatMap((line) => (usesOf(name, line).length > 0 ? [] : [`${name}: ${line[0]?.subject}`])),
  );
  assert.deepEqual(unused, []);
});

/** What a function was seen to publish on or to subscribe to by a line of its own. */
function usesOf(name: NatsUser, line: readonly NatsGrant[]): string[] {
  const seen = witness.seen.get(clientName("acme", name));
  const used = [...((line[0]?.kind === "publish" ? seen?.published : seen?.subscribed) ?? [])];
  return used.filter((subject) => line.some((grant) => covers(grant.subject, subject)));
}

test("a function that is taken any one of them is refused what it was seen to do by it", async () => {
  for (const name of NATS_FUNCTIONS) {
    for (const [at, line] of linesOf(name).entries()) {
      const user = lackingUser(name, at);
      const [subject = assert.fail(`${name} never did ${line[0]?.subject}`)] = usesOf(name, line);
      const nc = await connect({ servers: witness.url, user, pass: name, name: user });
      if (line[0]?.kind === "publish") nc.publish(subject);
      else nc.subscribe(subject, { callback: () => undefined });
      await nc.flush();
      const [refused = ""] = witness.seen.get(user)?.refused ?? [];
      assert.match(refused, /permissions violation/i, `${name} without ${line[0]?.subject}`);
      await nc.close();
    }
  }
});

/** Whether a subject with wildcards stands for another. */
function covers(pattern: string, subject: string): boolean {
  const [parts, of] = [pattern.split("."), subject.split(".")];
  if (parts.at(-1) === ">")
    return (
      of.length >= parts.length &&
      covers(parts.slice(0, -1).join("."), of.slice(0, parts.length - 1).join("."))
    );
  return parts.length === of.length && parts.every((part, i) => part === "*" || part === of[i]);
}

test("cards are written for our own agents alone, and by who shows them", async () => {
  for (const [name, key] of [
    ["cards", "bob-lobby"],
    ["bridge", "bob-lobby"],
    ["work", "acme-boss"],
  ] as const) {
    const nc = await as(name);
    const before = refusals().length;
    nc.publish(`$KV.A2A_PEERS.${key}`, "{}");
    await until("it is refused", () => refusals().length > before);
    await nc.close();
  }
});

test("a function can neither speak as another agent nor hear what others are answered", async () => {
  const nc = await as("admit");
  const refused = async (does: () => unknown) => {
    const before = refusals().length;
    does();
    await until("it is refused", () => refusals().length > before);
  };
  for (const subject of [
    "a2a.v1.task.acme-boss.acme-stepper.m1",
    "a2a.v1.event.bob-lobby.peer.task_1.result",
    "$JS.API.STREAM.DELETE.A2A_TASKS",
    `$O.${ARTIFACTS_BUCKET}.M.x`,
    "$KV.A2A_PEERS.bob-lobby",
  ])
    await refused(() => nc.publish(subject));
  for (const subject of [
    "a2a.v1.task.>",
    "_INBOX.>",
    "_INBOX_sluice-acme.>",
    "_INBOX_sluice-acme.work.>",
    "_INBOX_sluice-bob.>",
  ])
    await refused(() => nc.subscribe(subject, { callback: () => undefined }));
  await nc.close();
});

test("the first look of `npm start` and every verb do with what is documented for them", async (context) => {
  showCard();
  await firstLook();
  const { canceled, made } = await everyVerb(context);
  await run("retry", canceled);
  await runAs("erase", "erase", made, "--yes", "--streams");
  await everyBody();
  // Readers end by themselves: whoever could delete one could delete anybody's durable.
  const refused = refusals(NATS_ROLES).filter((line) => !line.includes("$JS.API.CONSUMER.DELETE."));
  assert.deepEqual(refused, []);
  const unused = NATS_ROLES.flatMap((name) =>
    linesOf(name).flatMap((line) => (usesOf(name, line).length > 0 ? [] : [`${name}: ${line[0]?.subject}`])),
  );
  assert.deepEqual(unused, []);
});

function showCard(): void {
  peer.nc.publish("$KV.A2A_PEERS.bob-lobby", JSON.stringify({ agentId: "bob-lobby", card: {} }));
}

async function firstLook(): Promise<void> {
  const { deployment } = readAgentsYaml(
    join(DEPLOYMENT, "agents.yaml"),
    await loadAgents(join(DEPLOYMENT, "agents")),
  );
  const agents = deployment.agents.filter(({ id }) => id === "maker");
  const { state } = await delegateFirstTask({
    host: { endpoints: { ...host.endpoints, nats: witness.url } },
    deployment: { ...deployment, agents },
    credentials: credentials("start"),
    ca: undefined,
    logsDir: folder,
    progress: progressOn(process.stderr),
    signal: AbortSignal.timeout(60_000),
  });
  assert.equal(state, "TASK_STATE_COMPLETED");
}

/** Runs a verb that must succeed; gives what it says. */
async function run(...args: string[]): Promise<string> {
  return runAs("command", ...args);
}

async function runAs(user: NatsUser, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await startVerb(user, args).finished;
  assert.equal(code, 0, `${args.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}

function startVerb(user: NatsUser, [verb = "", ...args]: readonly string[]) {
  const creds = credentials(user).slice("file:".length);
  const where = ["--data-folder", join(folder, "data"), "--nats", witness.url, "--creds", creds];
  return start([verb, ...where, ...args], { cwd: DEPLOYMENT });
}

async function everyVerb(
  context: TestContext,
): Promise<{ readonly canceled: string; readonly made: string }> {
  const watching = startVerb("command", ["watch"]);
  context.after(() => watching.signal("SIGKILL"));
  const [asked = "", canceled = ""] = (
    await Promise.all(["wall", "door"].map((text) => run("ask", "asker", text, "--no-wait")))
  ).map((id) => id.trim());
  const input = join(folder, "input.json");
  writeFileSync(input, JSON.stringify({ bytes: 2_000_000 }));
  const done = await run("ask", "maker", "--skill", "artifact", "--file", input);
  const [made = assert.fail(done)] = /task_[0-9a-f]{24}/.exec(done) ?? [];
  await run("artifact", made, "--out", join(folder, "blob"));
  await run("reply", asked, "green");
  await run("authorize", asked);
  await run("cancel", canceled);
  assert.match(await run("status"), new RegExp(asked));
  await run("status", asked.slice(0, 12));
  assert.match(await run("agents"), /acme-asker +listening/);
  assert.match(await run("peers"), /^bob-lobby .*amiss: record\.card/m);
  assert.match(await run("cards"), /^support +acme-support +valid /m);
  const unknown = await startVerb("command", ["ask", "bob-lobby", "hello"]).finished;
  assert.match(unknown.stderr, /no channelRef/);
  const { stdout } = await startVerb("command", ["doctor"]).finished;
  assert.match(stdout, /^ok +JetStream: enabled\n(.*\n)*ok +durables: 21 of 21 /m);
  watching.signal("SIGINT");
  assert.equal((await watching.finished).code, 0);
  return { canceled, made };
}

/** What `dead` looks up of messages whose bodies have not travelled with them. */
async function everyBody(): Promise<void> {
  const nc = await as("command");
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  for (const { name } of STREAMS) await readBySeq(jsm, name, 1);
  await nc.close();
}

test("another account hears nothing of the agents, and its messages reach nobody", async () => {
  const nc = await connect({ servers: nats.url, user: "stranger", pass: "stranger" });
  const heard: string[] = [];
  nc.subscribe(">", { callback: (_, message) => void heard.push(message.subject) });
  await ensureStreams(await jetstreamManager(nc));
  const own = await peer.ask("acme-stepper", {
    channelRef: "stepper",
    a2a: { file: join(folder, "x"), steps: 1 },
  });
  await until("it is answered", async () => (await peer.events(own.taskId)).length > 1);
  assert.deepEqual(
    heard.filter((subject) => subject.startsWith("a2a.v1.")),
    [],
  );
  const messageId = "msg_stranger";
  nc.publish(`a2a.v1.task.${SENDER}.acme-stepper.${messageId}`, "{}");
  await nc.flush();
  const jsm = await jetstreamManager(peer.nc);
  assert.equal(await readLastOn(jsm, "A2A_TASKS", `a2a.v1.task.${SENDER}.acme-stepper.${messageId}`), null);
  await nc.close();
});

test("the page's example is a configuration that the server takes", async () => {
  const page = readFileSync(join(ROOT, "docs", "nats.md"), "utf8");
  const [, example] = /```text\n(accounts [\s\S]*?)```/.exec(page) ?? [];
  const file = join(folder, "nats.conf");
  writeFileSync(file, example ?? assert.fail("no example"));
  const env = { ...process.env, ACME_PASSWORD: "secret" };
  const { status, stderr } = spawnSync(await findNatsServer(), ["-t", "-c", file], { env, encoding: "utf8" });
  assert.equal(status, 0, stderr);
});
