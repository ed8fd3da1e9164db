import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SimulatedClock } from "../../shared/testing/clock.ts";

test("a clock stands still until it is moved, and stops at each timer", () => {
  const clock = new SimulatedClock(100);
  const fired: string[] = [];
  clock.timer(5, () => fired.push("5"));
  clock.timer(5, () => fired.push("5 again"));
  const forget = clock.timer(2, () => fired.push("forgotten"));
  clock.timer(-1, () => fired.push("at once"));
  forget();
  assert.equal(clock.next(), 100);
  clock.move(200);
  assert.deepEqual([clock.now(), fired], [100, ["at once"]]);
  clock.move(104);
  assert.deepEqual([clock.now(), fired.length], [104, 1]);
  clock.move(200);
  clock.move(200);
  assert.deepEqual([clock.now(), fired], [105, ["at once", "5", "5 again"]]);
  clock.move(200);
  assert.deepEqual([clock.now(), clock.next()], [200, undefined]);
  clock.move(150);
  assert.equal(clock.now(), 200, "it never goes back");
});

test("timers fire in the order of their times, then of their setting, whatever is set and forgotten", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(20), fc.boolean()), { maxLength: 60 }), (timers) => {
      const clock = new SimulatedClock(0);
      const fired: (readonly [number, number])[] = [];
      for (const [index, [ms, kept]] of timers.entries()) {
        const forget = clock.timer(ms, () => fired.push([clock.now(), index]));
        if (!kept) forget();
      }
      while (clock.next() !== undefined) clock.move(1_000);
      const expected = timers
        .map(([ms, kept], index) => ({ ms, kept, index }))
        .filter(({ kept }) => kept)
        .sort((one, other) => one.ms - other.ms || one.index - other.index)
        .map(({ ms, index }) => [ms, index]);
      assert.deepEqual(fired, expected);
    }),
  );
});
