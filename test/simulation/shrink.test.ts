import assert from "node:assert/strict";
import { test } from "node:test";
import { shrink } from "./shrink.ts";

const forever = { untilMs: Number.POSITIVE_INFINITY };

test("what does not matter is left out, and what matters is made small", async () => {
  const list = Array.from({ length: 200 }, (_, at) => (at * 7) % 11);
  // It fails wherever a number over 4 comes before one over 7.
  const fails = async (of: readonly number[]) => {
    const first = of.findIndex((value) => value > 4);
    return first >= 0 && of.slice(first + 1).some((value) => value > 7);
  };
  assert.ok(await fails(list));
  assert.deepEqual(await shrink(list, fails, forever), [5, 8]);
});

test("zeros that must stand stay", async () => {
  const fails = async (of: readonly number[]) => of.length >= 4 && (of[3] ?? 0) > 0;
  assert.deepEqual(await shrink([3, 0, 9, 9, 9, 1], fails, forever), [0, 0, 0, 1]);
});

test("what cannot be made smaller stays as it is, and time ends the search", async () => {
  const list = [1, 2, 3];
  assert.deepEqual(await shrink(list, async (of) => String(of) === String(list), forever), list);
  assert.deepEqual(await shrink(list, async () => true, { untilMs: 0 }), list);
});
