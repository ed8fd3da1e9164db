import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nearest } from "../../../shared/config/nearest.ts";
import { draw } from "../../../shared/policy/choosing/draw.ts";

const weights = fc.array(fc.oneof(fc.constant(0), fc.double({ min: 1e-9, max: 1, noNaN: true })), {
  minLength: 1,
  maxLength: 8,
});

const countsOf = (of: readonly number[], draws: Iterable<number>) => {
  const candidates = of.map((weight) => ({ weight, times: 0 }));
  for (const random of draws) draw(candidates, random).times++;
  return candidates;
};

test("over evenly spread numbers each comes up as often as its weight says, to within one", () => {
  fc.assert(
    fc.property(weights, (of) => {
      const n = 1_000;
      const total = of.reduce((sum, weight) => sum + weight, 0);
      const counts = countsOf(
        of,
        Array.from({ length: n }, (_, i) => (i + 0.5) / n),
      );
      counts.forEach(({ weight, times }, i) => {
        const expected = total === 0 ? (i === 0 ? n : 0) : (n * weight) / total;
        assert.ok(Math.abs(times - expected) <= 1 + 1e-6, `${i}: ${times}, expected ${expected}`);
        if (weight === 0 && total > 0) assert.equal(times, 0);
      });
    }),
  );
});

/** Numbers from 0 to below 1 that are the same for a seed (Mulberry32). */
function* seeded(seed: number, count: number): Generator<number> {
  let state = seed;
  for (let i = 0; i < count; i++) {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    yield ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }
}

test("over a seeded sample the counts are within five standard deviations of what the weights say", () => {
  const n = 20_000;
  for (const of of [
    [1, 1],
    [0.9, 0.1, 0],
    [0.5, 0.25, 0.125, 0.125],
  ]) {
    const total = of.reduce((sum, weight) => sum + weight, 0);
    for (const { weight, times } of countsOf(of, seeded(7, n))) {
      const share = weight / total;
      assert.ok(Math.abs(times - n * share) <= 5 * Math.sqrt(n * share * (1 - share)), `${weight}: ${times}`);
    }
  }
});

test("without any weight it is the first, without a candidate an error, and a number of 1 is no way out", () => {
  assert.equal(
    draw(
      [
        { weight: 0, id: "a" },
        { weight: 0, id: "b" },
      ],
      0.9,
    ).id,
    "a",
  );
  assert.equal(
    draw(
      [
        { weight: 0.1, id: "a" },
        { weight: 0, id: "b" },
      ],
      1,
    ).id,
    "a",
  );
  assert.throws(() => draw([], 0), /^RangeError: a draw: expected at least one candidate, got none$/);
});

test("nearest names: at most three, the nearest first, none too far, whatever is asked", () => {
  assert.deepEqual(nearest("Acme-Suport", ["acme-support", "acme-report", "zebra"]), [
    "acme-support",
    "acme-report",
  ]);
  assert.deepEqual(nearest("aaaa", ["aaab", "aaac", "aaad", "aaae"]), ["aaab", "aaac", "aaad"]);
  assert.deepEqual(nearest("", ["a", "abc", "a"]), []);
  fc.assert(
    fc.property(fc.string({ maxLength: 500 }), fc.array(fc.string({ maxLength: 500 })), (name, names) => {
      const near = nearest(name, names);
      assert.ok(near.length <= 3 && near.every((each) => names.includes(each)));
      if (
        names.includes(name) &&
        names.every((each) => each.toLowerCase() !== name.toLowerCase() || each === name)
      )
        assert.equal(near[0]?.slice(0, 128), name.slice(0, 128));
    }),
  );
});
