import assert from "node:assert/strict";
import { test } from "node:test";
import { peersKnown } from "../../shared/cards/peers.ts";
import type { RemoteConfig } from "../../shared/config/remotes.ts";
import { isTurn, probeRound, REFRESH_EVERY_MS, refreshRound } from "../../shared/remotes/rounds.ts";
import { memoryPeers } from "../../shared/testing/memory-peers.ts";
import { currentCard, json } from "./support.ts";

const START = Date.UTC(2030, 0, 1);
const MINUTE = 60_000;

function remote(name: string): RemoteConfig {
  const url = `https://${name}.example.com/a2a`;
  return { name, url, headers: {}, streaming: false, external: false, skills: [], subscribesTo: [] };
}
const remotes = Array.from({ length: 30 }, (_, at) => remote(`r${at}`));

/** Agents that all have a card, but those that are dead, and who was asked when. */
function world() {
  const asked: string[] = [];
  const dead = new Set<string>();
  let at = START;
  let running = 0;
  let most = 0;
  const round = {
    remotes,
    store: memoryPeers(),
    now: () => at,
    sendTo:
      ({ name }: RemoteConfig) =>
      async () => {
        asked.push(name);
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        return dead.has(name) ? new Response("", { status: 503 }) : json(currentCard({ name }))();
      },
  };
  return {
    round,
    dead,
    most: () => most,
    asked: () => asked.splice(0),
    wait: (ms: number) => {
      at += ms;
    },
  };
}

test("all are asked at first, some at a time, then each once in ten minutes, spread over them", async () => {
  const { round, asked, wait, most } = world();
  const first = await refreshRound(round);
  assert.deepEqual(
    first.map(({ name, outcome }) => [name, outcome]),
    remotes.map(({ name }) => [name, "updated"]),
  );
  assert.equal(most(), 16);
  asked();
  const minutes: number[] = [];
  for (let minute = 0; minute < 10; minute++) {
    wait(MINUTE);
    await refreshRound(round);
    minutes.push(...asked().map(() => minute));
  }
  assert.equal(minutes.length, remotes.length);
  assert.ok(new Set(minutes).size > 5, "not all at once");
});

test("each agent's turn comes once in the time", () => {
  for (const { name } of remotes) {
    let seen = START;
    const turns = Array.from({ length: 20 }, (_, minute) => {
      const at = START + 7 + minute * MINUTE;
      if (!isTurn(name, { id: name, seen, failures: 0 }, at)) return false;
      seen = at;
      return true;
    });
    assert.equal(turns.filter(Boolean).length, 2);
    assert.equal(turns.lastIndexOf(true) - turns.indexOf(true), REFRESH_EVERY_MS / MINUTE);
  }
});

test("who was left out when the turn was comes next, but for who fails; a deployment that lives faster has more turns", () => {
  const [{ name } = assert.fail()] = remotes;
  const at = Array.from({ length: 10 }, (_, minute) => START + minute * MINUTE);
  const turnsOf = (standing: Parameters<typeof isTurn>[1], scale?: number) =>
    at.filter((now) => isTurn(name, standing, now, scale)).length;
  const overdue = START - REFRESH_EVERY_MS - MINUTE;
  assert.equal(turnsOf({ id: name, seen: overdue, failures: 0 }), 10);
  assert.equal(turnsOf({ id: name, seen: overdue + 10 * MINUTE, failures: 0 }), 1);
  assert.equal(turnsOf({ id: name, seen: overdue, failures: 1, failingSince: START }), 1);
  assert.equal(
    turnsOf({ id: name, seen: at[9] ?? 0, failures: 0 }, 10),
    turnsOf({ id: name, failures: 1 }, 10),
  );
});

test("an operator who wants one refreshed waits for no turn", async () => {
  const { round, asked } = world();
  await refreshRound(round);
  asked();
  const [one, ...more] = await refreshRound({ ...round, only: new Set(["r7"]) });
  assert.deepEqual([one?.name, one?.outcome, more.length], ["r7", "unchanged", 0]);
  assert.deepEqual(asked(), ["r7"]);
});

test("a round that is ended keeps what has come, and asks the others next time", async () => {
  const { round, asked } = world();
  const ended = new AbortController();
  const sendTo = (of: RemoteConfig) => async () => {
    if (of.name === "r20") ended.abort();
    return round.sendTo(of)();
  };
  const results = await refreshRound({ ...round, sendTo, signal: ended.signal });
  assert.ok(results.length >= 4 && results.length < remotes.length);
  asked();
  await refreshRound(round);
  const { peers } = await peersKnown(round.store, remotes, START);
  assert.ok(peers.every(({ status }) => status.state === "live"));
});

test("dead agents keep nobody else from being refreshed and looked after", async () => {
  const { round, dead } = world();
  dead.add("r3");
  const results = await refreshRound(round);
  assert.equal(results.filter(({ outcome }) => outcome === "updated").length, remotes.length - 1);
  assert.match(results[3]?.warning ?? "", /^remote agent r3: .*status 200, got 503; .*status 200, got 503$/);
  const probes = await probeRound({ ...round, signal: new AbortController().signal });
  assert.equal(probes.get("r3")?.probe.reachable, false);
  assert.equal(probes.get("r4")?.probe.reachable, true);
  const { peers } = await peersKnown(round.store, remotes, START);
  assert.deepEqual(
    peers.slice(3, 5).map(({ status, health }) => [status.state, health?.reachable]),
    [
      ["unseen", false],
      ["live", true],
    ],
  );
  assert.deepEqual((await probeRound(round)).get("r3")?.before?.reachable, false);
  assert.equal((await probeRound({ ...round, remotes: [] })).size, 0);
  assert.equal((await probeRound({ ...round, signal: AbortSignal.abort() })).size, 0, "its time is over");
});
