import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { STALE_AFTER_MS } from "../../shared/cards/bucket-facts.ts";
import { keepLook } from "../../shared/cards/peer-keeping.ts";
import { FAILED_REFRESHES, httpStatus, natsStatus } from "../../shared/cards/peer-status.ts";
import { peersKnown } from "../../shared/cards/peers.ts";
import { memoryPeers } from "../../shared/testing/memory-peers.ts";
import { putAt } from "./support/records.ts";

const AT = Date.UTC(2030, 0, 1);
const HOLDS = AT + 180_000;
const seen = { id: "a", seen: AT, expiresAt: HOLDS };

test("whoever looks all the time sees a peer go stale at 90 seconds, and back at its next record", () => {
  const at = (ms: number) => natsStatus(seen, AT + ms, AT + ms);
  assert.deepEqual(at(0), { state: "live" });
  assert.deepEqual(at(STALE_AFTER_MS - 1), { state: "live" });
  assert.deepEqual(at(STALE_AFTER_MS), { state: "stale", reason: "silent", since: AT + 90_000 });
  const next = { ...seen, seen: AT + 100_000, expiresAt: AT + 280_000 };
  assert.deepEqual(natsStatus(next, AT + 100_000, AT + 100_000), { state: "live" });
});

test("nobody is stale by what was not looked for, until nobody has looked for as long", () => {
  const looked = AT + 60_000;
  assert.deepEqual(natsStatus(seen, looked, AT + 119_999), { state: "live" });
  assert.equal(natsStatus(seen, AT + 120_000, AT + 120_000).state, "stale");
  assert.equal(natsStatus(seen, looked, looked + STALE_AFTER_MS - 1).state, "live");
  assert.equal(natsStatus(seen, looked, looked + STALE_AFTER_MS).state, "stale");
});

test("a record that has expired by its own word, and one that was taken away", () => {
  const short = { ...seen, expiresAt: AT + 30_000 };
  assert.equal(natsStatus(short, AT + 29_999, AT + 29_999).state, "live");
  assert.deepEqual(natsStatus(short, AT + 30_000, AT + 30_000), {
    state: "stale",
    reason: "expired",
    since: AT + 30_000,
  });
  assert.deepEqual(natsStatus({ ...seen, gone: true }, AT, AT), {
    state: "stale",
    reason: "gone",
    since: AT,
  });
  assert.deepEqual(natsStatus(undefined, AT, AT), { state: "unseen" });
});

test("an agent over HTTP is stale after three refreshes that failed", () => {
  const failing = { id: "a", seen: AT, failures: FAILED_REFRESHES - 1, failingSince: AT + 1 };
  assert.deepEqual(httpStatus(failing), { state: "live" });
  assert.deepEqual(httpStatus({ ...failing, failures: FAILED_REFRESHES }), {
    state: "stale",
    reason: "failing",
    since: AT + 1,
  });
  assert.deepEqual(httpStatus({ id: "a", failures: 1, failingSince: AT }), { state: "unseen" });
  assert.deepEqual(httpStatus(undefined), { state: "unseen" });
});

/** What a function knows that looks each minute, of a peer that puts its record at certain times. */
async function watched(puts: readonly number[], looks: readonly number[], asked: number) {
  const store = memoryPeers();
  for (const look of looks) {
    const last = puts.findLast((of) => of <= look);
    const entries = last === undefined ? [] : [putAt("adam-lobby", AT + last)];
    await keepLook(store, { at: AT + look, entries });
  }
  const { peers } = await peersKnown(store, [], AT + asked);
  return peers[0]?.status.state;
}

test("a peer that puts its record each minute is never stale to who looks each minute, whatever the phases", async () => {
  const SECOND = 1_000;
  const phase = fc.integer({ min: 0, max: 59_999 });
  const jitter = fc.array(fc.integer({ min: 0, max: 8 * SECOND }), { minLength: 8, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(
      phase,
      jitter,
      jitter,
      fc.integer({ min: 0, max: 59_999 }),
      async (start, late, slow, after) => {
        const puts = late.map((of, at) => start + at * 60 * SECOND + of);
        const looks = slow.map((of, at) => 60 * SECOND + at * 60 * SECOND + of);
        // Of what was put until the last look; the next comes within a minute and what it may be late.
        const known = looks.slice(0, 6);
        const asked = (known.at(-1) ?? 0) + after;
        assert.equal(await watched(puts, known, asked), "live");
      },
    ),
    { numRuns: 60 },
  );
});

test("a peer that has fallen silent is stale at the first look after 90 seconds, and never before", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 59_999 }),
      fc.integer({ min: 1_000, max: 60_000 }),
      fc.integer({ min: 0, max: 400_000 }),
      async (put, period, asked) => {
        const looks = Array.from({ length: Math.floor(asked / period) + 1 }, (_, at) => at * period).filter(
          (at) => at <= asked,
        );
        const state = await watched([put], looks, asked);
        const found = looks.find((at) => at >= put);
        if (found === undefined) assert.equal(state, undefined);
        else {
          if (asked < put + 90_000) assert.equal(state, "live");
          const told = looks.find((at) => at >= put + 90_000);
          if (told !== undefined) assert.equal(state, "stale", `${put} ${period} ${asked}`);
        }
      },
    ),
    { numRuns: 60 },
  );
});
