import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  AckPolicy,
  DeliverPolicy,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import { headers, type NatsConnection, nanos } from "@nats-io/transport-node";
import { STALE_AFTER_MS } from "../../shared/cards/bucket-facts.ts";
import { lookThrough, MAX_LOOKED_AT } from "../../shared/cards/look-through.ts";
import { keepLook } from "../../shared/cards/peer-keeping.ts";
import { peersKnown } from "../../shared/cards/peers.ts";
import { connectNats } from "../../shared/nats/index.ts";
import { memoryPeers } from "../../shared/testing/memory-peers.ts";
import { startNats, type TestNats } from "../support/nats-server.ts";
import { bytesOf, peerRecord } from "./support/records.ts";

let server: TestNats;
let nc: NatsConnection;
let js: JetStreamClient;
let jsm: JetStreamManager;

before(async () => {
  server = await startNats();
  nc = await connectNats({ servers: [server.url], credentials: "none", name: "test" });
  js = jetstream(nc);
  jsm = await jetstreamManager(nc);
});
after(async () => {
  await nc.close();
  await server.stop();
});

const BY = { reader: "sluice_look_acme", now: Date.now };
const look = () => lookThrough(js, jsm, BY);
const put = (key: string, bytes: Uint8Array) => js.publish(`$KV.A2A_PEERS.${key}`, bytes);

test("where there is no bucket, nobody is seen; in one, each key as it is now", async () => {
  assert.deepEqual((await look()).entries, []);
  await jsm.streams.add({
    name: "KV_A2A_PEERS",
    subjects: ["$KV.A2A_PEERS.>"],
    max_msgs_per_subject: 1,
    max_age: nanos(180_000),
    allow_rollup_hdrs: true,
    deny_delete: true,
    allow_direct: true,
  });
  assert.deepEqual((await look()).entries, []);

  const holds = { publishedAt: null, expiresAt: null };
  const record = (id: string, over: object = {}) => bytesOf(peerRecord(id, { ...holds, ...over }));
  await put("adam", record("adam", { instanceId: "before" }));
  await put("adam", record("adam"));
  await put("bad", new TextEncoder().encode("{"));
  await put("eve", record("eve"));
  const purged = headers();
  purged.set("KV-Operation", "DEL");
  await js.publish("$KV.A2A_PEERS.eve", "", { headers: purged });

  const seen = await look();
  assert.deepEqual(
    seen.entries.map(({ key, bytes }) => [key, bytes !== undefined]),
    [
      ["adam", true],
      ["bad", true],
      ["eve", false],
    ],
  );
  const store = memoryPeers();
  // As if the server's clock were never ahead of ours.
  const at = Math.max(seen.at, ...seen.entries.map((of) => of.at));
  await keepLook(store, { ...seen, at });
  const { peers, amiss } = await peersKnown(store, [], at);
  assert.deepEqual(
    peers.map(({ id, status }) => [id, status.state]),
    [["adam", "live"]],
  );
  assert.deepEqual(
    amiss.map(({ key }) => key),
    ["bad"],
  );
  const { consumers } = await jsm.streams
    .info("KV_A2A_PEERS")
    .then(({ state }) => ({ consumers: state.consumer_count }));
  assert.equal(consumers, 0, "nothing is left behind");
});

test("a look that was ended in the middle hides nothing from the next", async () => {
  // What a killed function leaves: the reader, which has been told everything.
  const left = await jsm.consumers.add("KV_A2A_PEERS", {
    name: BY.reader,
    deliver_policy: DeliverPolicy.LastPerSubject,
    filter_subject: "$KV.A2A_PEERS.>",
    ack_policy: AckPolicy.None,
  });
  const told = await js.consumers.getConsumerFromInfo(left).fetch({ max_messages: left.num_pending });
  for await (const message of told) if (message.info.pending === 0) break;
  const seen = await look();
  assert.deepEqual([left.num_pending, seen.entries.length], [3, 3]);
});

test("keys at the bound and one past it", async () => {
  await jsm.streams.purge("KV_A2A_PEERS");
  const keys = (count: number) => Array.from({ length: count }, (_, at) => `key-${at}`);
  await Promise.all(keys(MAX_LOOKED_AT).map((key) => put(key, new Uint8Array(1))));
  assert.equal((await look()).entries.length, MAX_LOOKED_AT);
  await put("key-last", new Uint8Array(1));
  const { entries } = await look();
  assert.equal(entries.length, MAX_LOOKED_AT);
  assert.ok(!entries.some(({ key }) => key === "key-last"));

  // As seen when all but the last were put too long ago to be live.
  const { seq } = await put("key-alive", new Uint8Array(1));
  const alive = await jsm.streams.getMessage("KV_A2A_PEERS", { seq });
  assert.ok(alive !== null);
  const now = () => alive.time.getTime() + STALE_AFTER_MS;
  const lately = await lookThrough(js, jsm, { ...BY, now });
  assert.ok(lately.entries.length < MAX_LOOKED_AT);
  assert.equal(lately.entries.at(-1)?.key, "key-alive");
});

test("a server that does not answer is no bucket without cards", async () => {
  const gone = await connectNats({ servers: [server.url], credentials: "none", name: "test" });
  const [itsJs, itsJsm] = [jetstream(gone), await jetstreamManager(gone)];
  await gone.close();
  await assert.rejects(lookThrough(itsJs, itsJsm, BY));
});
