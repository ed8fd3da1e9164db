import assert from "node:assert/strict";
import test from "node:test";
import { StatusLine } from "../../shared/steps/status.ts";
import { systemClock } from "../../shared/tasks/clock.ts";
import { until } from "../support/until.ts";

test("a text is not lost when its timer is early by the clock", async () => {
  let now = 1_000;
  let due = 0;
  const line = new StatusLine({ everyMs: 10, clock: { ...systemClock, now: () => now }, due: () => due++ });
  line.restore(now);
  line.set("half way");
  // The timers of this process go on, the clock stands one millisecond before the text's time.
  now += 9;
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(due, 0);
  assert.equal(line.take(false), undefined);
  now += 1;
  await until("the text is due", () => due === 1);
  assert.equal(line.take(false), "half way");
  line.close();
});

test("a text that comes right after another was taken along is due in its turn", async () => {
  let now = 1_000;
  let due = 0;
  const line = new StatusLine({ everyMs: 10, clock: { ...systemClock, now: () => now }, due: () => due++ });
  line.restore(now);
  line.set("one");
  now += 10;
  assert.equal(line.take(false), "one"); // by a step's entry, before the timer of its own
  line.set("two");
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(due, 0, "it is not yet its time");
  now += 10;
  await until("the second text is due", () => due === 1);
  assert.equal(line.take(false), "two");
  line.close();
});

test("a text that is in the journal already is not told again by whoever takes over", () => {
  const line = new StatusLine({ everyMs: 10, clock: systemClock, due: () => {} });
  line.restore(1_000, "half way");
  line.set("half way");
  assert.equal(line.take(true), undefined);
  line.set("nearly there");
  assert.equal(line.take(true), "nearly there");
  line.close();
});
