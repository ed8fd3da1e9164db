import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  OutcomeBook,
  type Outcomes,
  type Result,
  weightOf,
  withResult,
} from "../../../shared/policy/choosing/outcomes.ts";
import { memoryItems } from "../../../shared/testing/memory-items.ts";

const START = 1_900_000_000_000;
const MINUTE = 60_000;

/** What is remembered of results that came at a time. */
const after = (results: readonly Result[], now = START) =>
  results.reduce<Outcomes | undefined>((known, result) => withResult(known, result, now), undefined);
const times = (count: number, result: Result) => Array.from({ length: count }, () => result);
const good = { good: true };
const bad = { good: false };

test("an agent of whom nothing is known is as good as can be", () => {
  assert.equal(weightOf(undefined, START), 1);
});

test("a weight is the success rate, divided by 1 and what a success has cost", () => {
  assert.equal(weightOf(after(times(4, good)), START), 1);
  assert.equal(weightOf(after([...times(3, good), bad]), START), 0.75);
  assert.equal(weightOf(after(times(2, { good: true, costUsd: 1 })), START), 0.5);
  // A failure's cost is part of what the successes have cost.
  assert.equal(
    weightOf(
      after([
        { good: true, costUsd: 1 },
        { good: false, costUsd: 2 },
      ]),
      START,
    ),
    0.5 / 4,
  );
  assert.equal(weightOf(after(times(3, bad)), START), 0);
});

test("what was counts half after half an hour, and a failure is forgotten in the end", () => {
  const known = after(times(4, bad));
  const later = withResult(known, good, START + 30 * MINUTE);
  assert.equal(weightOf(later, START + 30 * MINUTE), 1 / 3);
  // Time alone changes no rate, until so little is left that it is nothing: four are half of one after three halvings.
  assert.equal(weightOf(known, START + 90 * MINUTE), 0);
  assert.equal(weightOf(known, START + 91 * MINUTE), 1);
});

test("of a cost no more is believed than can be, and nothing that is none", () => {
  const weightAfter = (costUsd: number) => weightOf(after([{ good: true, costUsd }]), START);
  assert.equal(weightAfter(1_000_001), weightAfter(1_000_000));
  assert.ok(weightAfter(1_000_000) > 0);
  for (const costUsd of [-5, 0, Number.NaN, Number.NEGATIVE_INFINITY]) assert.equal(weightAfter(costUsd), 1);
  assert.equal(weightAfter(Number.POSITIVE_INFINITY), weightAfter(1_000_000));
});

const result = fc.record({ good: fc.boolean(), costUsd: fc.option(fc.double(), { nil: undefined }) });
const history = fc.array(
  fc.tuple(result, fc.oneof(fc.integer({ min: -MINUTE, max: 60 * MINUTE }), fc.constant(-(10 ** 10)))),
  { maxLength: 30 },
);

test("whatever an agent says and the clock does, a weight is from 0 to 1, and a success never makes it worse", () => {
  fc.assert(
    fc.property(history, (of) => {
      let now = START;
      let known: Outcomes | undefined;
      for (const [each, ms] of of) {
        now += ms;
        known = withResult(known, each, now);
        const weight = weightOf(known, now);
        assert.ok(weight >= 0 && weight <= 1, `${weight}`);
        assert.ok(Object.values(known).every(Number.isFinite));
        assert.ok(
          weightOf(withResult(known, good, now), now) >= weight - 1e-12 || known.good + known.bad < 0.5,
        );
      }
    }),
  );
});

test("each agent's results are its own, those of many writers all counted", async () => {
  const store = memoryItems<Outcomes>();
  const books = [1, 2].map(() => new OutcomeBook({ store, now: () => START, pause: async () => {} }));
  await Promise.all(books.flatMap((book) => [book.note("ann", good), book.note("ann", bad)]));
  await books[0]?.note("bob", bad);
  const weight = await books[1]?.weights(["ann", "bob", "cat"]);
  assert.deepEqual(
    ["ann", "bob", "cat"].map((agent) => weight?.(agent)),
    [0.5, 0, 1],
  );
});
