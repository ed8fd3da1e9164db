import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { DeleteCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import * as z from "zod";
import { type CardsDeps, insistOnCards, showCards } from "../../../functions/cards/cards.ts";
import { lookForPeers } from "../../../functions/cards/look.ts";
import { ensurePeersBucket, openPeersBucket, type PeersBucket } from "../../../shared/cards/bucket.ts";
import { dynamoNotes } from "../../../shared/cards/dynamodb-notes.ts";
import { dynamoPeers } from "../../../shared/cards/dynamodb-peers.ts";
import { instanceOf } from "../../../shared/cards/instance.ts";
import { recordFaults } from "../../../shared/cards/validate.ts";
import { type HostedAgent, parseDeployment } from "../../../shared/config/deployment.ts";
import { connectNats, NatsError } from "../../../shared/nats/index.ts";
import { dynamoPolicies } from "../../../shared/policy/dynamodb-policies.ts";
import { parseSubject } from "../../../shared/wire/index.ts";
import { hosted } from "../../cards/support.ts";
import { documentedCosts } from "../../support/documented.ts";
import { startNats, type TestNats } from "../../support/nats-server.ts";
import { startTable } from "../../support/table.ts";
import { until } from "../../support/until.ts";

/** A run of the function over a real broker and a real table. */

const STREAM = "KV_A2A_PEERS";
const SUPPORT = "acme-support";
const OTHER = "acme-other";

let nats: TestNats;
let table: Awaited<ReturnType<typeof startTable>>;
let nc: NatsConnection;
let bucket: PeersBucket;
before(async () => {
  [nats, table] = await Promise.all([startNats(), startTable()]);
  nc = await connectNats({ servers: [nats.url], credentials: "none", name: "cards" });
});
after(async () => {
  await nc.close();
  await nats.stop();
  await table.stop();
});

/** What a run has told: counts and measures by their names, and the messages of warnings and errors. */
const told = new Map<string, number[]>();
const said: string[] = [];
const note = (name: string, value = 1) => void told.set(name, [...(told.get(name) ?? []), value]);
const telemetry = {
  debug() {},
  info() {},
  warn: (message: string) => void said.push(message),
  error: (message: string) => void said.push(message),
  count: note,
  measure: note,
};

beforeEach(async () => {
  bucket = await openPeersBucket(nc);
});
afterEach(async () => {
  told.clear();
  said.length = 0;
  asked.length = 0;
  await (await jetstreamManager(nc)).streams.delete(STREAM).catch(() => undefined);
  const published = [...(await publishedOf())];
  if (published.length > 0) await notes().forget(published);
});

const notes = () => dynamoNotes(table.access);
const publishedOf = async () => (await notes().read([])).published;
/** How often the table was asked for what. */
const asked: string[] = [];

function deps(agents: readonly HostedAgent[], over: Partial<CardsDeps> = {}): CardsDeps {
  const deployment = parseDeployment({ deployment: "acme", agents: [] });
  return {
    connection: async () => nc,
    notes: {
      read: noted("read", notes().read),
      add: noted("add", notes().add),
      forget: noted("forget", notes().forget),
    },
    deployment: { ...deployment, agents: [...agents] },
    servers: ["tls://nats.example:4222"],
    instance: "sluice-acme",
    startedAt: 0,
    telemetry,
    timing: { scale: 1 },
    now: Date.now,
    ...over,
  };
}

function noted<A extends unknown[], R>(what: string, act: (...of: A) => R): (...of: A) => R {
  return (...of) => {
    asked.push(what);
    return act(...of);
  };
}

const onCard = z.object({
  card: z.object({
    skills: z.array(
      z.object({ id: z.string(), inputModes: z.array(z.string()), outputModes: z.array(z.string()) }),
    ),
  }),
});
const [support, other] = [hosted("support"), hosted("other")];
const hidden = { ...other, policy: { ...other.policy, discoverable: false } };
const instanceAt = async (key: string) => instanceOf((await bucket.get(key))?.bytes ?? new Uint8Array());
const put = (key: string, text: string) => bucket.put(key, new TextEncoder().encode(text));

test("each agent has a card in a bucket as peers make it, and gives a sign of life", async () => {
  const beats: Msg[] = [];
  nc.subscribe("a2a.v1.heartbeat.>", { max: 2, callback: (_, message) => void beats.push(message) });
  await showCards(deps([support, other]));
  for (const runtime of [SUPPORT, OTHER])
    assert.deepEqual(recordFaults(runtime, (await bucket.get(runtime))?.bytes ?? new Uint8Array()), []);
  const { config } = await (await jetstreamManager(nc)).streams.info(STREAM);
  assert.deepEqual(
    [config.max_age, config.max_msgs_per_subject, config.max_msg_size, config.num_replicas],
    [180_000_000_000, 1, 65_536, 1],
  );

  await until("both live", () => beats.length === 2);
  const [beat] = beats;
  assert.deepEqual(parseSubject(beat?.subject ?? ""), {
    kind: "heartbeat",
    from: SUPPORT,
    instance: "sluice-acme",
  });
  assert.deepEqual(beat?.json(), {
    agentId: SUPPORT,
    instanceId: "sluice-acme",
    status: "online",
    startedAt: "1970-01-01T00:00:00.000Z",
    version: "1.0.0",
  });
  // There were none before: they count as old as a card can become.
  assert.deepEqual([Object.fromEntries(told), said], [{ CardAge: [180_000] }, []]);
  assert.deepEqual(await publishedOf(), new Set([SUPPORT, OTHER]));
});

test("a run that finds the agents that it knows asks the table as often as the page says", async () => {
  const peers = dynamoPeers(table.access);
  const store = { ...peers, facts: noted("facts", peers.facts), ledger: noted("ledger", peers.ledger) };
  // The first look of all is written, so that it is known that somebody looks.
  await lookForPeers({ ...deps([support]), store: peers });
  for (const run of [deps([support]), deps([support])]) {
    await showCards(run);
    await lookForPeers({ ...run, store });
  }
  assert.deepEqual(asked, ["read", "add", "facts", "ledger", "read", "facts", "ledger"]);
  assert.deepEqual(documentedCosts().get("each run of `cards` of one agent"), {
    requests: 3,
    writes: 0,
    reads: 5,
  });
  assert.equal((await store.ledger("nats")).version, 1, "while nobody is there, nothing more is written");
  for (const name of ["PeersLive", "PeersStale", "PeersAmiss"]) assert.deepEqual(told.get(name), [0, 0, 0]);
});

test("the next run tells how old the cards were, in the deployment's own time", async () => {
  await showCards(deps([support]));
  const at = (await bucket.get(SUPPORT))?.at ?? 0;
  await showCards(deps([support], { now: () => at + 2_000, timing: { scale: 20 } }));
  assert.deepEqual(told.get("CardAge"), [180_000, 40_000]);
});

test("a bucket that is there is left as its operator has set it", async () => {
  const jsm = await jetstreamManager(nc);
  await ensurePeersBucket(nc);
  const { config } = await jsm.streams.update(STREAM, { max_age: 600_000_000_000, max_msgs_per_subject: 5 });
  await showCards(deps([support]));
  assert.deepEqual((await jsm.streams.info(STREAM)).config, config);
});

test("the card of an agent that was taken out, or is to be found no more, goes, and then is forgotten", async () => {
  for (const agents of [[support], [support, hidden]]) {
    await showCards(deps([support, other]));
    await showCards(deps(agents));
    assert.equal(await bucket.get(OTHER), undefined);
    // A bridge that is about to end has put it once more.
    await put(OTHER, JSON.stringify({ instanceId: "sluice-acme" }));
    await showCards(deps(agents));
    assert.equal(await bucket.get(OTHER), undefined);
    assert.deepEqual(await publishedOf(), new Set([SUPPORT, OTHER]));
    await showCards(deps(agents));
    assert.deepEqual(await publishedOf(), new Set([SUPPORT]));
  }
});

test("the policy in force decides who has a card and what is on it: what the table says, else the file", async () => {
  const policies = dynamoPolicies(table.access);
  const skills = ["task", "refund"].map((slug) => ({ slug, name: slug, description: "", tags: [] }));
  const agents = [{ ...support, skills }, other];
  let base = 0;
  const change = async (fields: Partial<HostedAgent["policy"]>) =>
    assert.equal(
      await policies.change(
        SUPPORT,
        { base: base++, fields },
        { at: 0, by: "ada", command: "x", changes: [] },
      ),
      "changed",
    );
  const shown = async () => {
    await showCards(deps(agents));
    assert.notEqual(await bucket.get(OTHER), undefined);
    const card = await bucket.get(SUPPORT);
    return card && onCard.parse(JSON.parse(Buffer.from(card.bytes).toString())).card.skills;
  };
  const idsOf = async () => (await shown())?.map(({ id }) => id);
  assert.deepEqual(await idsOf(), ["support/task", "support/refund"]);
  await change({ exposeSkills: [{ id: "refund", inputModes: ["image/png"] }] });
  assert.deepEqual(await shown(), [
    { id: "support/refund", inputModes: ["image/png"], outputModes: ["text/plain", "application/json"] },
  ]);
  await change({ acceptSkills: ["task"] });
  assert.deepEqual(await idsOf(), ["support/task"]);
  for (const fields of [{ discoverable: false }, { enabled: false }]) {
    await change(fields);
    assert.equal(await shown(), undefined);
    await change({});
    assert.deepEqual(await idsOf(), ["support/task", "support/refund"]);
  }
});

test("an agent whose policy is of a later version is shown to nobody, and no other suffers", async () => {
  await showCards(deps([support, other]));
  const Item = { pk: `policy#${SUPPORT}`, sk: "policy", version: 99, fields: { blessed: true } };
  const { client, table: TableName } = table.access;
  await client.send(new PutCommand({ TableName, Item }));
  const { agents } = await showCards(deps([support, other]));
  assert.equal(await bucket.get(SUPPORT), undefined);
  assert.notEqual(await bucket.get(OTHER), undefined);
  assert.deepEqual([agents.map(({ runtime }) => runtime), said], [[OTHER], ["a card is withheld"]]);
  await client.send(new DeleteCommand({ TableName, Key: { pk: Item.pk, sk: Item.sk } }));
});

test("nobody else's card is taken away: neither one that we never put, nor one that is another's by now", async () => {
  await showCards(deps([support, other]));
  await put("bob-lobby", "{}");
  await put(OTHER, JSON.stringify({ instanceId: "sluice-acme--dev" }));
  await showCards(deps([support]));
  assert.equal(await instanceAt(OTHER), "sluice-acme--dev");
  assert.notEqual(await bucket.get("bob-lobby"), undefined);
  assert.deepEqual(await publishedOf(), new Set([SUPPORT]));
});

test("a card of another's under an id of ours is replaced, and told of", async () => {
  await ensurePeersBucket(nc);
  for (const text of ["no JSON", JSON.stringify({ instanceId: "sluice-acme--dev" })]) {
    await put(SUPPORT, text);
    await showCards(deps([support]));
    assert.equal(await instanceAt(SUPPORT), "sluice-acme");
  }
  assert.deepEqual(told.get("CardsForeign"), [1, 1]);
});

test("a record that readers would refuse is not put, keeps no other back, and an older one of the agent goes", async () => {
  await showCards(deps([support, other]));
  await showCards(deps([{ ...support, channelRef: "no slug" }, other]));
  assert.equal(await bucket.get(SUPPORT), undefined);
  assert.notEqual(await bucket.get(OTHER), undefined);
  assert.deepEqual([told.get("CardsWithheld"), told.get("CardAge")?.at(-1)], [[1], 180_000]);
  assert.deepEqual(said, ["a card is withheld"]);
});

test("a bucket that takes no card of ours is a failure of the run; one that takes some is none", async () => {
  await ensurePeersBucket(nc);
  await showCards(deps([support]));
  const jsm = await jetstreamManager(nc);
  // As many messages as it has: a card that is there can be replaced, another does not fit.
  await jsm.streams.update(STREAM, { max_msgs: 1 });
  await showCards(deps([support, other]));
  assert.deepEqual([told.get("CardsFailed"), told.get("CardAge")?.at(-1)], [[1], 180_000]);
  await assert.rejects(showCards(deps([other])), /maximum messages/);
});

test("a broker that is away for a moment is waited for; credentials that are refused are not", async () => {
  const [away, denied] = (["nats_unreachable", "nats_refused"] as const).map(
    (code) => new NatsError(code, code),
  );
  let tries = 0;
  const failing = (error: Error | undefined, times: number) => ({
    connection: async () => {
      if (tries++ < times) throw error;
      return nc;
    },
  });
  await insistOnCards(deps([support], failing(away, 2)), Date.now() + 60_000);
  assert.deepEqual([tries, said.length], [3, 2]);
  tries = 0;
  await assert.rejects(
    insistOnCards(deps([support], failing(denied, 9)), Date.now() + 60_000),
    /nats_refused/,
  );
  assert.equal(tries, 1);
  tries = 0;
  await assert.rejects(insistOnCards(deps([support], failing(away, 9)), Date.now()), /nats_unreachable/);
  assert.equal(tries, 1);
});
