import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { dynamoPeers } from "../../shared/cards/dynamodb-peers.ts";
import type { HttpFacts, NatsFacts } from "../../shared/cards/peer-facts.ts";
import { keepLook, keepProbes, keepRefreshes } from "../../shared/cards/peer-keeping.ts";
import { readPeerRecord } from "../../shared/cards/peer-record.ts";
import type { PeerStore } from "../../shared/cards/peer-store.ts";
import { peersKnown } from "../../shared/cards/peers.ts";
import type { RemoteConfig } from "../../shared/config/remotes.ts";
import { MAX_CARD_BYTES, MAX_CARD_SKILLS, readCard } from "../../shared/remotes/card.ts";
import { refreshRemote } from "../../shared/remotes/refresh.ts";
import { memoryPeers } from "../../shared/testing/memory-peers.ts";
import { currentCard, encoded, json, server, URL_OF } from "../remotes/support.ts";
import { simulatedAccess } from "../support/simulated-store.ts";
import { startTable } from "../support/table.ts";
import { bytesOf, peerRecord, putAt } from "./support/records.ts";

const table = await startTable();
after(() => table.stop());
const AT = Date.UTC(2030, 0, 1);

function natsFacts(id: string, over: Partial<NatsFacts> = {}): NatsFacts {
  const read = readPeerRecord(id, bytesOf(peerRecord(id)), AT);
  assert.ok(read.ok);
  return { ...read.value.facts, firstSeen: AT, ...over };
}

function httpFacts(id: string, body: Uint8Array = encoded(currentCard())): HttpFacts {
  const read = readCard(body, URL_OF);
  assert.ok(read.ok, read.ok ? "" : read.reason);
  const path = "/.well-known/agent-card.json";
  const signature = { state: "unsigned" } as const;
  return {
    transport: "http",
    id,
    url: URL_OF,
    path,
    card: read.value.card,
    notes: [],
    signature,
    firstSeen: AT,
  };
}

/** A card of the greatest size, with as many skills as there may be. */
function largestCard(): Uint8Array {
  const skills = (text: string) =>
    Array.from({ length: MAX_CARD_SKILLS }, (_, at) => ({ id: `s${at}`, description: text }));
  const room = MAX_CARD_BYTES - encoded(currentCard({ skills: skills("") })).byteLength;
  // Of three bytes each in UTF-8, as in the table.
  return encoded(currentCard({ skills: skills("大".repeat(Math.floor(room / MAX_CARD_SKILLS / 3))) }));
}

const REMOTE: RemoteConfig = {
  ...{ name: "auditor", url: URL_OF, headers: {}, streaming: true, external: false, subscribesTo: [] },
  skills: [{ name: "filed" }],
};

for (const [name, open] of [
  ["memory", memoryPeers],
  ["a simulated table", () => dynamoPeers(simulatedAccess())],
  ["DynamoDB", () => dynamoPeers(table.access)],
] as const)
  describe(`peers over ${name}`, () => {
    let peers: PeerStore;
    before(() => {
      peers = open();
    });
    const forgetAll = async () => {
      for (const transport of ["nats", "http"] as const)
        for (const [id, { version }] of await peers.facts(transport))
          await peers.forget({ transport, id }, version);
      const [nats, http] = await Promise.all([peers.ledger("nats"), peers.ledger("http")]);
      await peers.putLedger("nats", { lookedAt: 0, sightings: [], amiss: [] }, nats.version);
      await peers.putLedger("http", { standings: [] }, http.version);
    };

    test("facts are put, replaced and forgotten only by who knows how they are", async () => {
      const facts = natsFacts("adam");
      assert.equal((await peers.facts("nats")).size, 0);
      assert.equal(await peers.putFacts(facts, 1), false, "none is there");
      assert.equal(await peers.putFacts(facts, 0), true);
      assert.equal(await peers.putFacts(facts, 0), false, "one is there");
      assert.deepEqual([...(await peers.facts("nats"))], [["adam", { version: 1, value: facts }]]);
      assert.equal(await peers.putFacts({ ...facts, version: "2" }, 1), true);
      assert.equal(await peers.putFacts({ ...facts, version: "3" }, 1), false);
      assert.equal((await peers.facts("nats")).get("adam")?.value.id, "adam");
      assert.equal(await peers.forget(facts, 1), false);
      assert.equal(await peers.forget(facts, 2), true);
      assert.equal((await peers.facts("nats")).size, 0);
    });

    test("peers of one transport are not those of the other, nor are ledgers", async () => {
      await peers.putFacts(natsFacts("adam"), 0);
      await peers.putFacts(httpFacts("adam"), 0);
      await peers.putLedger("http", { standings: [{ id: "adam", failures: 1 }] }, 0);
      assert.deepEqual([...(await peers.facts("nats")).keys()], ["adam"]);
      assert.deepEqual((await peers.facts("http")).get("adam")?.value, httpFacts("adam"));
      assert.deepEqual(await peers.ledger("nats"), {
        version: 0,
        value: { lookedAt: 0, sightings: [], amiss: [] },
      });
      assert.deepEqual((await peers.ledger("http")).version, 1);
      assert.equal(await peers.putLedger("http", { standings: [] }, 0), false);
      assert.equal(await peers.putLedger("http", { standings: [] }, 1), true);
      await forgetAll();
    });

    test("the largest card there may be is kept", async () => {
      const facts = httpFacts("large", largestCard());
      assert.ok(JSON.stringify(facts).length > 80_000);
      assert.equal(await peers.putFacts(facts, 0), true);
      assert.deepEqual((await peers.facts("http")).get("large")?.value, facts);
      await forgetAll();
    });

    test("a peer on NATS comes, falls silent and comes back, on a clock of the test's own", async () => {
      const stateAt = async (now: number) =>
        (await peersKnown(peers, [], now)).peers.map(({ status }) => status.state);
      await keepLook(peers, { at: AT, entries: [putAt("adam", AT)] });
      assert.deepEqual(await stateAt(AT + 89_999), ["live"]);
      await keepLook(peers, { at: AT + 90_000, entries: [putAt("adam", AT)] });
      assert.deepEqual(await stateAt(AT + 90_000), ["stale"]);
      await keepLook(peers, { at: AT + 91_000, entries: [putAt("adam", AT + 91_000)] });
      assert.deepEqual(await stateAt(AT + 91_000), ["live"]);
      await forgetAll();
    });

    test("an agent over HTTP fails three times and comes back, and is looked after meanwhile", async () => {
      const names = new Set(["auditor"]);
      let at = AT;
      const refresh = async (good: boolean) => {
        const known = (await peers.facts("http")).get("auditor");
        const facts =
          known?.value.transport === "http" ? { version: known.version, value: known.value } : undefined;
        const standing = (await peers.ledger("http")).value.standings[0];
        const answer = { [`${new URL(URL_OF).origin}/.well-known/agent-card.json`]: json(currentCard()) };
        const { send } = server(good ? answer : {});
        const result = await refreshRemote(REMOTE, { facts, standing }, { send, now: () => at });
        await keepRefreshes(peers, [result], names);
        return result.outcome;
      };
      const peer = async () => (await peersKnown(peers, [REMOTE], at)).peers[0];

      assert.deepEqual((await peer())?.status, { state: "unseen" });
      assert.deepEqual(
        (await peer())?.capabilities,
        ["streaming"],
        "as the file has it until there is a card",
      );
      assert.equal(await refresh(true), "updated");
      const first = await peer();
      assert.deepEqual(first?.status, { state: "live" });
      assert.deepEqual(
        first?.skills.map(({ id, from }) => [id, from]),
        [
          ["filed", "file"],
          ["audit", "card"],
        ],
      );
      assert.equal(first?.supported, true);

      const probe = { at: AT + 5, reachable: false, latencyMs: 12, error: "no answer" };
      await keepProbes(peers, new Map([["auditor", probe]]), names);
      const states = [];
      for (let failures = 1; failures <= 3; failures++) {
        at += 600_000;
        assert.equal(await refresh(false), "failed");
        states.push((await peer())?.status.state);
      }
      assert.deepEqual(states, ["live", "live", "stale"]);
      const stale = await peer();
      assert.deepEqual([stale?.failing?.failures, stale?.failing?.failingSince], [3, AT + 600_000]);
      assert.equal(stale?.lastSeen, AT);
      assert.equal(stale?.name, "Auditor", "the last good card is kept");
      assert.deepEqual(stale?.health, probe);

      assert.equal(await refresh(true), "unchanged");
      const back = await peer();
      assert.deepEqual([back?.status, back?.failing], [{ state: "live" }, undefined]);
      const moved = { ...REMOTE, url: "https://elsewhere.example.com/a2a" };
      assert.equal(
        (await peersKnown(peers, [moved], at)).peers[0]?.name,
        "auditor",
        "the card was another's",
      );
    });

    test("nothing is written of an agent over HTTP when nothing has changed", async () => {
      const names = new Set(["auditor"]);
      const versions = async () => [
        (await peers.facts("http")).get("auditor")?.version,
        (await peers.ledger("http")).version,
      ];
      const known = (await peers.facts("http")).get("auditor");
      const before = await versions();
      const [standing] = (await peers.ledger("http")).value.standings;
      assert.ok(standing);
      const again = (seen: number) =>
        keepRefreshes(
          peers,
          [
            {
              ...{
                name: "auditor",
                outcome: "unchanged",
                version: known?.version ?? 0,
                added: [],
                removed: [],
              },
              standing: { ...standing, seen },
            },
          ],
          names,
        );
      await again((standing.seen ?? 0) + 29_999);
      assert.deepEqual(await versions(), before);
      await again((standing.seen ?? 0) + 30_000);
      assert.deepEqual(await versions(), [before[0], (before[1] ?? 0) + 1]);
      await keepRefreshes(peers, [], new Set());
      assert.deepEqual(await versions(), [undefined, (before[1] ?? 0) + 2], "no more in the file");
      assert.deepEqual((await peers.ledger("http")).value, { standings: [] });
      await forgetAll();
    });

    test("of those who write at the same time none loses what the other has written", async () => {
      const names = new Set(["a", "b", "c"]);
      const probe = (at: number) => ({ at, reachable: true, latencyMs: 1 });
      await Promise.all([...names].map((id, at) => keepProbes(peers, new Map([[id, probe(at)]]), names)));
      const { standings } = (await peers.ledger("http")).value;
      assert.deepEqual(
        standings.map(({ id, probe: of }) => [id, of?.at]),
        [
          ["a", 0],
          ["b", 1],
          ["c", 2],
        ],
      );
      await forgetAll();
    });
  });
