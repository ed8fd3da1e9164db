import assert from "node:assert/strict";
import { test } from "node:test";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { lookForPeers } from "../../cli/peers/look.ts";
import { readBucket } from "../../cli/peers.ts";
import { PEERS_STREAM, STALE_AFTER_MS } from "../../shared/cards/bucket-facts.ts";
import { MAX_LOOKED_AT } from "../../shared/cards/look-through.ts";
import { openStage } from "./peer.ts";

const consumers = async (jsm: JetStreamManager) =>
  (await jsm.streams.info(PEERS_STREAM)).state.consumer_count;

test("a bucket full of what was put once hides nobody who is there, from any number of commands at once", async () => {
  await using stage = await openStage();
  const { nc } = stage;
  const jsm = await jetstreamManager(nc);
  await jsm.streams.add({ name: PEERS_STREAM, subjects: ["$KV.A2A_PEERS.>"], max_msgs_per_subject: 1 });
  const put = (key: string) => jetstream(nc).publish(`$KV.A2A_PEERS.${key}`, "{}");
  const old = Array.from({ length: MAX_LOOKED_AT }, (_, at) => `old-${at}`);
  await Promise.all(old.map(put));
  const bound = await lookForPeers(nc, new Set());
  assert.deepEqual([bound.peers.length, bound.lately], [MAX_LOOKED_AT, false]);

  const { seq } = await put("alive");
  const alive = (await jsm.streams.getMessage(PEERS_STREAM, { seq })) ?? assert.fail("it is not there");
  // As it is when all others were put too long ago to be live.
  const now = alive.time.getTime() + STALE_AFTER_MS;
  const looks = await Promise.all([1, 2, 3].map(() => lookForPeers(nc, new Set(), now)));
  for (const { peers, lately } of looks) {
    assert.equal(lately, true);
    assert.ok(peers.length < MAX_LOOKED_AT);
    assert.ok(peers.some(({ id }) => id === "alive"));
  }

  const some = await readBucket(nc, ["old-7", "alive", "eve"], now);
  assert.deepEqual(some.entries.map(({ key }) => key).sort(), ["alive", "old-7"]);
  assert.equal(some.lately, false);
  assert.equal(await consumers(jsm), 0, "nothing is left behind");
});
