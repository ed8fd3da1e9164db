import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { problemOf } from "../support/patches.ts";
import { Choices, readChoices, writeChoices } from "./choices.ts";
import { explore } from "./explore.ts";
import { playHistory } from "./history.ts";
import { INVARIANTS } from "./invariants.ts";
import { readMutations, search } from "./mutate.ts";
import { narrate, smallest } from "./report.ts";

/** Always the same histories: what others find is for those who look (`npm run simulate`), not for whoever lands. */
const HISTORIES = 1_000;
const FOR_MS = 120_000;
const FIXED_SEED = 1;
/** A few of the faults that the simulation finds at once; `npm run mutations` has them all. */
const QUICK = ["append-without-condition", "acked-before-decided"];
const MAX_SECONDS = 60;

describe("histories in which things go wrong", () => {
  for (const seed of [FIXED_SEED, FIXED_SEED + 1])
    test(`break no invariant: seed ${seed}`, async (t) => {
      const { histories, found } = await explore({ seed, histories: HISTORIES, forMs: FOR_MS });
      t.diagnostic(`seed ${seed}: ${histories} histories`);
      if (found === undefined) return;
      const lines: string[] = [];
      const small = await smallest(found.violation, found.choices);
      await narrate(small.choices, (line) => lines.push(line));
      assert.fail(
        `history ${found.history} of seed ${seed} breaks ${found.violation.invariant}\n${lines.join("\n")}`,
      );
    });

  test("are the same for the same choices", async () => {
    const told: string[][] = [];
    for (let turn = 0; turn < 2; turn++) {
      const lines: string[] = [];
      told.push(lines);
      const choices = Choices.random(FIXED_SEED, 3);
      const { choices: made } = await playHistory(choices, (line) => lines.push(withoutNonces(line)));
      const again: string[] = [];
      told.push(again);
      await playHistory(Choices.replay(made), (line) => again.push(withoutNonces(line)));
    }
    assert.ok((told[0]?.length ?? 0) > 20);
    for (const other of told) assert.deepEqual(other, told[0]);
  });

  test("without any trouble come to their end, whatever is asked", async () => {
    const { violation, steps } = await playHistory(Choices.replay([]));
    assert.equal(violation, undefined);
    assert.ok(steps > 5);
  });
});

describe("mutations", () => {
  test("still apply, all of them", () => {
    for (const mutation of readMutations()) assert.equal(problemOf(mutation), undefined, mutation.name);
  });

  for (const mutation of readMutations(QUICK))
    test(`are caught: ${mutation.name}`, async () => {
      const { invariant } = await search(mutation, { seed: FIXED_SEED, seconds: MAX_SECONDS });
      assert.ok(mutation.breaks.includes(invariant ?? ""), `expected ${mutation.breaks}, got ${invariant}`);
    });

  test("are at least twenty, and each says what it breaks", () => {
    const mutations = readMutations();
    assert.ok(mutations.length >= 20);
    const broken = new Set(mutations.flatMap(({ breaks }) => breaks));
    assert.deepEqual(
      Object.keys(INVARIANTS).filter((invariant) => !broken.has(invariant)),
      [],
      "every invariant is broken by one",
    );
  });
});

test("choices are written as one word, and read again", () => {
  for (const list of [[], [0], [0, 0, 0], [1, 0, 0, 35, 36, 0, 999], [7]])
    assert.deepEqual(readChoices(writeChoices(list)), list);
  assert.equal(writeChoices([0, 0, 0, 12, 0, 1]), "_3.c.0.1");
  assert.throws(() => readChoices("1.!"), /expected numbers of base 36/);
});

/** Nonces are no choices, and nothing depends on them. */
function withoutNonces(line: string): string {
  return line.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "…");
}
