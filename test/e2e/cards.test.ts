import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { errors, type Msg } from "@nats-io/transport-node";
import * as z from "zod";
import { ROOT } from "../../infra/bundle.ts";
import { awsSettings } from "../../infra/local/aws.ts";
import { openPeersBucket, type PeersBucket } from "../../shared/cards/bucket.ts";
import { readDidKey } from "../../shared/cards/did-key.ts";
import { dynamoNotes } from "../../shared/cards/dynamodb-notes.ts";
import { recordFaults } from "../../shared/cards/validate.ts";
import { verifyCard } from "../../shared/cards/verifying.ts";
import { Follower } from "../cards/follower.ts";
import { run } from "../cli/run.ts";
import { type Sluice, startSluice } from "../support/sluice.ts";
import { until } from "../support/until.ts";

/** The whole product shows its agents' cards: who looks here is a peer, and the command. */

const cwd = mkdtempSync(join(tmpdir(), "sluice-cards-"));
const FIXTURES = join(ROOT, "test/fixtures/deployment");
/** Of the fixtures. */
const GUILD = "101234567890123456";
/** At which the product is run here. */
const TIME_SCALE = 20;
const AGENTS = "asker boss counted-limited counted exec faulty maker narrow stepper support".split(" ");
const RUNTIMES = AGENTS.map((id) => `acme-${id}`);

let sluice: Sluice;
let bucket: PeersBucket;
before(async () => {
  mkdirSync(join(cwd, ".sluice"));
  writeFileSync(join(cwd, "agents.yaml"), readFileSync(join(FIXTURES, "agents.yaml")));
  const files = { config: join(cwd, "agents.yaml"), agentsDir: join(FIXTURES, "agents") };
  sluice = await startSluice({ dataDir: join(cwd, ".sluice"), files });
  bucket = await openPeersBucket(sluice.peer.nc);
  await renewed();
});
after(async () => {
  await sluice?.stop();
  rmSync(cwd, { recursive: true, force: true });
});

const bytesOf = (text: string) => new TextEncoder().encode(text);
const cardOf = (runtime: string) => bucket.get(runtime).catch(() => undefined);

/** Waits until each card has been put since now. */
async function renewed(): Promise<void> {
  const known = new Map<string, number>();
  for (const runtime of RUNTIMES) known.set(runtime, (await cardOf(runtime))?.revision ?? 0);
  for (const [runtime, revision] of known)
    await until(
      `the card of ${runtime} is put`,
      async () => {
        const card = await cardOf(runtime);
        return card !== undefined && card.revision > revision;
      },
      { seen: () => sluice.lines.filter((line) => line.startsWith("cards:")).slice(-5) },
    );
}

const look = z.object({ runtime: z.string(), state: z.string(), faults: z.array(z.string()) });
async function cards(): Promise<{ code: number | null; cards: z.infer<typeof look>[]; stderr: string }> {
  const { code, json, stderr } = await run(["cards", "--json"], { cwd });
  return { code, cards: z.array(look).parse(json()), stderr };
}

test("each agent's card is one that every peer takes, and the command says so", async () => {
  for (const runtime of RUNTIMES)
    assert.deepEqual(recordFaults(runtime, (await cardOf(runtime))?.bytes ?? bytesOf("")), []);
  const shown = await cards();
  assert.deepEqual(
    shown.cards,
    RUNTIMES.map((runtime) => ({ runtime, state: "valid", faults: [] })),
  );
  assert.equal(shown.code, 0, shown.stderr);
});

test("a peer that follows the bucket as existing ones do finds the agents and has them work, whatever a third party puts there", async () => {
  const { nc } = sluice.peer;
  const follower = new Follower(nc, TIME_SCALE);
  const findsAll = () => {
    const found = new Set(follower.listed(GUILD).map(({ runtime }) => runtime));
    return RUNTIMES.every((runtime) => found.has(runtime));
  };
  // As a publisher does that knows no better: its record ends the watch of such a peer each time.
  const put = () => void bucket.put("mallory", bytesOf("{")).catch(() => undefined);
  put();
  const puts = setInterval(put, 60_000 / TIME_SCALE);
  try {
    for (let round = 1; round <= 3; round++) {
      const { stumbles } = follower;
      await until("it has come upon the bad record", () => follower.stumbles > stumbles);
      await until("it finds all agents", findsAll);
    }
    assert.deepEqual(follower.listed("201234567890123456"), []);
    const found = follower.listed(GUILD).find(({ runtime }) => runtime === "acme-maker");
    const { runtime, channelRef, skillId } = found ?? assert.fail("not found");
    const { taskId } = await sluice.peer.ask(runtime, { channelRef, skillId });
    const events = await sluice.peer.outcome(taskId);
    assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
  } finally {
    clearInterval(puts);
    await follower.stop();
  }
});

test("the card of an agent that was taken out goes, and a third party's bad record harms nobody", async () => {
  for (const [key, text] of [
    ["mallory", "{"],
    ["acme-gone-by", JSON.stringify({ agentId: "acme-support", card: { capabilities: [] } })],
    ["acme-gone", JSON.stringify({ instanceId: "sluice-acme" })],
  ] as const)
    await bucket.put(key, bytesOf(text));
  const ddb = new DynamoDBClient(awsSettings(sluice.host.endpoints.dynamodb));
  const notes = dynamoNotes({
    client: DynamoDBDocumentClient.from(ddb),
    table: sluice.host.tableName,
  });
  // As a version of the deployment that still had the agent has left it.
  await notes.add(["acme-gone"]);
  await until("it is gone", async () => (await cardOf("acme-gone")) === undefined);
  await until("it is forgotten", async () => !(await notes.read([])).published.has("acme-gone"));
  ddb.destroy();
  assert.deepEqual((await notes.read([])).published, new Set(RUNTIMES));
  assert.notEqual(await cardOf("mallory"), undefined);
  const shown = await run(["cards"], { cwd });
  assert.equal(shown.code, 0, shown.stderr);
  assert.match(shown.stdout, /^AGENT +CARD +STATE +AGE +SKILLS\n/);
  assert.match(shown.stdout, /\nsupport +acme-support +valid +\d+ s +support\/task\n/);
});

/** Whom somebody is told of who asks for cards; nobody while no bridge listens. */
async function discovered(): Promise<Set<string>> {
  const ids = new Set<string>();
  try {
    const asked = await sluice.peer.nc.requestMany("a2a.v1.card.discover", "", { maxWait: 300 });
    for await (const answer of asked) ids.add(z.object({ agentId: z.string() }).parse(answer.json()).agentId);
  } catch (error) {
    assert.ok(error instanceof errors.RequestError && error.isNoResponders(), String(error));
  }
  return ids;
}

/** What a command that succeeds says under `--json`. */
async function told(...args: string[]): Promise<unknown> {
  const { code, json, stderr } = await run([...args, "--json"], { cwd });
  assert.equal(code, 0, stderr);
  return json();
}
const signedLook = look.omit({ faults: true }).extend({ did: z.string().nullable(), card: z.unknown() });
const signedCards = async () => z.array(signedLook).parse(await told("cards", "--agent-card"));
const key = z.tuple([z.object({ did: z.string(), previous: z.string().optional() })]).transform(([of]) => of);

test("an agent that an operator hides while it runs is found no more, by nobody; and again once it is shown", async () => {
  const NARROW = "acme-narrow";
  const isTold = async () => {
    const ids = await discovered();
    return ids.has("acme-support") ? ids.has(NARROW) : undefined;
  };
  const stateOf = async () => (await signedCards()).find(({ runtime }) => runtime === NARROW)?.state;
  for (const [field, shown] of [
    ["discoverable=false", false],
    ["discoverable=true", true],
  ] as const) {
    await told("policy", "apply", "narrow", "--set", field);
    await until("the bucket has it so", async () => ((await cardOf(NARROW)) !== undefined) === shown);
    await until("who asks is told so", async () => (await isTold()) === shown);
    await until(
      "its signed card goes by it",
      async () => (await run(["cards", "--agent-card"], { cwd })).code === 0,
    );
    assert.equal(await stateOf(), shown ? "valid" : "hidden");
    const seen = (await cards()).cards.find(({ runtime }) => runtime === NARROW);
    assert.equal(seen?.state, shown ? "valid" : "hidden");
  }
});

test("each agent's A2A card is signed by the key that keys shows, and after a rotation by its successor", async () => {
  const { did } = key.parse(await told("keys", "show"));
  const before = await signedCards();
  assert.deepEqual(
    before.map((of) => [of.runtime, of.state, of.did]),
    RUNTIMES.map((runtime) => [runtime, "valid", did]),
  );
  const rotated = key.parse(await told("keys", "rotate", "--yes"));
  assert.equal(rotated.previous, did);
  await until("all are signed anew", async () => (await signedCards()).every((of) => of.did === rotated.did));
  const pinned = readDidKey(did) ?? assert.fail("no did:key");
  for (const { card } of await signedCards()) {
    const verdict = await verifyCard(card, pinned);
    assert.deepEqual([verdict.state, verdict.state === "valid" && verdict.succeeded], ["valid", did]);
  }
  const { stdout, code } = await run(["cards", "--agent-card", "support"], { cwd });
  assert.equal(code, 0);
  assert.match(stdout, /^\{\n {2}"name": "support",\n/);
  assert.match(stdout, new RegExp(`\nacme-support: valid, by ${rotated.did}, signed `));
});

test("the command tells which cards are missing, invalid, stale or left over, and fails", async () => {
  await sluice.stopHost();
  const card = await cardOf("acme-maker");
  assert.ok(card);
  const record = z.looseObject({}).parse(JSON.parse(Buffer.from(card.bytes).toString()));
  await bucket.remove("acme-asker", (await cardOf("acme-asker")) ?? assert.fail("no card"));
  await bucket.put("acme-boss", bytesOf(JSON.stringify({ agentId: "acme-boss" })));
  await bucket.put("acme-maker", bytesOf(JSON.stringify({ ...record, expiresAt: "2026-01-01T00:00:00Z" })));
  const config = join(cwd, "agents.yaml");
  const before = readFileSync(config, "utf8");
  writeFileSync(config, `${before}  exec: { discoverable: false }\n  faulty: { discoverable: false }\n`);
  await bucket.remove("acme-faulty", (await cardOf("acme-faulty")) ?? assert.fail("no card"));
  const args = ["cards", "--nats", sluice.nats.url];
  const env = { SLUICE_DATA: "" };
  mkdirSync(join(cwd, "agents"), { recursive: true });
  for (const id of AGENTS)
    writeFileSync(
      join(cwd, "agents", `${id}.ts`),
      `export { default } from ${JSON.stringify(join(FIXTURES, "agents", `${id}.ts`))};\n`,
    );
  const { code, json, stdout, stderr } = await run([...args, "--json"], { cwd, env });
  assert.equal(code, 1, stdout + stderr);
  const states = new Map(
    z
      .array(look)
      .parse(json())
      .map(({ runtime, state }) => [runtime, state]),
  );
  for (const [id, state] of Object.entries({
    asker: "missing",
    boss: "invalid",
    maker: "stale",
    exec: "left",
    faulty: "hidden",
    support: "valid",
  }))
    assert.equal(states.get(`acme-${id}`), state, id);
  assert.match((await run(args, { cwd, env })).stdout, /\nacme-boss: card: /);
  writeFileSync(config, before);
  await sluice.startHost();
});

test("cards and signs of life go on while bridges take over from each other, and after the broker was gone", async () => {
  const beats = new Map<string, number>();
  const heard = (_: unknown, { subject }: Msg) => void beats.set(subject, (beats.get(subject) ?? 0) + 1);
  sluice.peer.nc.subscribe("a2a.v1.heartbeat.*.sluice-acme", { callback: heard });
  const go = async () => {
    const known = new Map(beats);
    await renewed();
    for (const runtime of RUNTIMES) {
      const subject = `a2a.v1.heartbeat.${runtime}.sluice-acme`;
      await until(`${runtime} lives`, () => (beats.get(subject) ?? 0) > (known.get(subject) ?? 0));
    }
    const told = new Set<string>();
    await until("all are told to who asks", async () => {
      for (const id of await discovered()) told.add(id);
      return told.size === RUNTIMES.length;
    });
  };
  const bridges = runsOf("bridge");
  await until("two bridges have ended", () => runsOf("bridge") >= bridges + 2);
  await go();
  await sluice.nats.kill("SIGKILL");
  await sluice.nats.restart();
  await go();
});

const runsOf = (name: string) => sluice.lines.filter((line) => line.startsWith(`${name}: REPORT`)).length;
