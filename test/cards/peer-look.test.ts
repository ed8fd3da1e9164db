import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { keepLook } from "../../shared/cards/peer-keeping.ts";
import {
  FORGET_PEERS_AFTER_MS,
  type LookedAt,
  MAX_AMISS,
  MAX_PEERS,
  SEEN_EVERY_MS,
} from "../../shared/cards/peer-look.ts";
import { peersKnown } from "../../shared/cards/peers.ts";
import { memoryPeers } from "../../shared/testing/memory-peers.ts";
import { putAt } from "./support/records.ts";

const AT = Date.UTC(2030, 0, 1);
const bad = (key: string, at = AT): LookedAt => ({ key, at, bytes: new TextEncoder().encode("{") });
const many = <T>(count: number, of: (at: number) => T) => Array.from({ length: count }, (_, at) => of(at));
const named = (at: number) => `peer-${String(at).padStart(4, "0")}`;

/** What is kept after looks, each at its time. */
function looking() {
  const store = memoryPeers();
  return {
    store,
    look: (at: number, entries: readonly LookedAt[], own?: ReadonlySet<string>) =>
      keepLook(store, { at, entries, ...(own && { own }) }),
    async known(at: number) {
      const { peers, amiss } = await peersKnown(store, [], at);
      return { peers: peers.map(({ id, status }) => `${id} ${status.state}`), amiss, all: peers };
    },
  };
}

test("one malformed record hides no other, and is listed with its reason and since when", async () => {
  const { look, known } = looking();
  const entries = [bad("bad-one"), putAt("adam", AT), bad("bad-two"), putAt("eve", AT)];
  await look(AT, entries);
  await look(AT + 1_000, entries);
  const { peers, amiss } = await known(AT + 1_000);
  assert.deepEqual(peers, ["adam live", "eve live"]);
  assert.deepEqual(amiss, [
    { key: "bad-one", reason: "record: expected JSON", since: AT },
    { key: "bad-two", reason: "record: expected JSON", since: AT },
  ]);
  await look(
    AT + 2_000,
    [entries[1], entries[3]].filter((of) => of !== undefined),
  );
  assert.deepEqual((await known(AT + 2_000)).amiss, []);
});

test("whatever lies beside them, sound records are all there", async () => {
  const sound = fc.uniqueArray(fc.integer({ min: 0, max: 30 }), { maxLength: 8 });
  const rubbish = fc.array(fc.tuple(fc.string({ maxLength: 20 }), fc.uint8Array({ maxLength: 30 })), {
    maxLength: 8,
  });
  await fc.assert(
    fc.asyncProperty(sound, rubbish, async (ids, others) => {
      const { look, known } = looking();
      const wrong = others.map(([key, bytes]) => ({ key: `x${key}`, at: AT, bytes }));
      await look(AT, [...wrong, ...ids.map((id) => putAt(named(id), AT))]);
      const { peers, amiss } = await known(AT);
      assert.deepEqual(peers, ids.map((id) => `${named(id)} live`).sort());
      assert.equal(amiss.length, wrong.length);
    }),
    { numRuns: 40 },
  );
});

test("a peer that puts a bad record is not heard of by it, and what was known of it stays", async () => {
  const { look, known } = looking();
  await look(AT, [putAt("adam", AT)]);
  await look(AT + 90_000, [bad("adam", AT + 60_000)]);
  const { peers, all, amiss } = await known(AT + 90_000);
  assert.deepEqual(peers, ["adam stale"]);
  assert.equal(all[0]?.skills.length, 1);
  assert.equal(amiss[0]?.key, "adam");
});

test("our own agents are no peers", async () => {
  const { look, known } = looking();
  await look(AT, [putAt("acme-exec", AT), bad("acme-support")], new Set(["acme-exec", "acme-support"]));
  const { peers, amiss } = await known(AT);
  assert.deepEqual([peers, amiss], [[], []]);
});

test("a card that was taken away makes its peer stale at once, and its next record brings it back", async () => {
  const { look, known } = looking();
  await look(AT, [putAt("adam", AT)]);
  await look(AT + 1_000, [{ key: "adam", at: AT + 500 }]);
  assert.deepEqual((await known(AT + 1_000)).all[0]?.status, { state: "stale", reason: "gone", since: AT });
  await look(AT + 2_000, [putAt("adam", AT + 1_500)]);
  assert.deepEqual((await known(AT + 2_000)).peers, ["adam live"]);
  await look(AT + 3_000, [{ key: "nobody", at: AT }]);
  assert.deepEqual((await known(AT + 3_000)).peers, ["adam live"]);
});

test("a server whose clock is ahead puts no record into the future", async () => {
  const { look, known } = looking();
  await look(AT, [putAt("adam", AT + 3_600_000)]);
  assert.equal((await known(AT)).all[0]?.lastSeen, AT);
});

test("nothing is written when nothing has changed, and that peers are still there only now and then", async () => {
  const { store, look } = looking();
  const written = async (of: ReturnType<typeof look>) => {
    const { known: _, ...rest } = await of;
    return rest;
  };
  const nobody = { lookedAt: AT, sightings: [], amiss: [] };
  assert.deepEqual(
    await written(look(AT, [])),
    { put: [], forget: [], ledger: nobody },
    "that somebody looks",
  );
  assert.deepEqual(await written(look(AT + 60_000, [])), { put: [], forget: [] }, "nobody was ever there");
  const first = await look(AT, [putAt("adam", AT)]);
  assert.deepEqual([first.put.length, first.ledger?.sightings.length], [1, 1]);
  const soon = await look(AT + SEEN_EVERY_MS - 1, [putAt("adam", AT + 20_000)]);
  assert.deepEqual(await written(Promise.resolve(soon)), { put: [], forget: [] });
  assert.equal(soon.known.sightings[0]?.seen, AT + 20_000, "known all the same");
  const later = await look(AT + SEEN_EVERY_MS, [putAt("adam", AT + 20_000)]);
  assert.deepEqual([later.put, later.ledger?.sightings[0]?.seen], [[], AT + 20_000]);
  const renamed = await look(AT + SEEN_EVERY_MS, [putAt("adam", AT + 20_000, { instanceId: "adam-2" })]);
  assert.deepEqual([renamed.put.length, renamed.ledger], [1, undefined], "its facts alone");
  assert.equal(renamed.put[0]?.firstSeen, AT);
  const same = putAt("adam", AT + 20_000, { instanceId: "adam-2" });
  const newcomer = await look(AT + 31_000, [same, putAt("eve", AT + 31_000)]);
  assert.deepEqual([newcomer.put.length, newcomer.ledger?.sightings.length], [1, 2]);
  await look(AT + 200_000, []);
  assert.equal(
    (await store.ledger("nats")).value.lookedAt,
    AT + 200_000,
    "that all of them are gone is news",
  );
  assert.deepEqual(
    await written(look(AT + 260_000, [])),
    { put: [], forget: [] },
    "that they still are is none",
  );
});

test("an earlier look that comes later takes nothing back", async () => {
  const { store, look, known } = looking();
  await look(AT + 60_000, [putAt("adam", AT + 59_000)]);
  await look(AT, [putAt("adam", AT - 1_000, { instanceId: "adam-0" })]);
  assert.equal((await known(AT + 60_000)).all[0]?.firstSeen, AT + 60_000);
  assert.equal((await store.facts("nats")).get("adam")?.version, 1, "nor do its facts");
  assert.equal((await known(AT + 60_000)).all[0]?.lastSeen, AT + 59_000);
});

test("peers at the bound and one past it: a live one is kept, one that is stale gives way", async () => {
  const { look, known } = looking();
  const all = (count: number, at: number) => many(count, (of) => putAt(named(of), at + of));
  const now = AT + MAX_PEERS;
  await look(now, all(MAX_PEERS, AT));
  assert.equal((await known(now)).peers.length, MAX_PEERS);
  await look(now + 1_000, [...all(MAX_PEERS, AT), putAt("aaron", now)]);
  const refused = await known(now + 1_000);
  assert.equal(refused.peers.length, MAX_PEERS);
  assert.ok(!refused.peers.includes("aaron live"));
  assert.deepEqual(refused.amiss, [
    { key: "aaron", reason: "peers: expected at most 256 that are live", since: now + 1_000 },
  ]);
  // All but the first put another record.
  const then = now + 100_000;
  await look(then, [...all(MAX_PEERS, then - MAX_PEERS).slice(1), putAt("aaron", then)]);
  const replaced = await known(then);
  assert.equal(replaced.peers.length, MAX_PEERS);
  assert.ok(replaced.peers.includes("aaron live"));
  assert.ok(!replaced.peers.some((of) => of.startsWith(named(0))));
  assert.deepEqual(replaced.amiss, []);
});

test("bad records at the bound and one past it", async () => {
  for (const count of [MAX_AMISS, MAX_AMISS + 1]) {
    const { look, known } = looking();
    await look(
      AT,
      many(count, (at) => bad(named(at))),
    );
    assert.equal((await known(AT)).amiss.length, MAX_AMISS);
  }
});

test("who was not there for a month is forgotten", async () => {
  const { store, look } = looking();
  await look(AT, [putAt("adam", AT)]);
  await look(AT + FORGET_PEERS_AFTER_MS - 1, [putAt("eve", AT + FORGET_PEERS_AFTER_MS - 1)]);
  assert.equal((await store.facts("nats")).size, 2);
  await look(AT + FORGET_PEERS_AFTER_MS, [putAt("eve", AT + FORGET_PEERS_AFTER_MS)]);
  assert.deepEqual([...(await store.facts("nats")).keys()], ["eve"]);
});

test("those who look at the same time lose nothing of each other", async () => {
  const { look, known } = looking();
  await Promise.all(many(4, (at) => look(AT + at, [putAt(named(at), AT), putAt("adam", AT)])));
  assert.equal((await known(AT + 4)).peers.length, 5);
});
