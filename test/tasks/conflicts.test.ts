import assert from "node:assert/strict";
import { test } from "node:test";
import { TransactionCanceledException, TransactionConflictException } from "@aws-sdk/client-dynamodb";
import { CONFLICT_TRIES, throughConflicts } from "../../shared/tasks/conflicts.ts";

const cancelled = (...codes: string[]) =>
  new TransactionCanceledException({
    message: "cancelled",
    $metadata: {},
    CancellationReasons: codes.map((Code) => ({ Code })),
  });
const conflict = new TransactionConflictException({ message: "conflict", $metadata: {} });

/** A write that fails so many times, and what came of it. */
async function tried(error: Error, failures: number) {
  const pauses: number[] = [];
  let tries = 0;
  const outcome = await throughConflicts(
    async () => {
      if (++tries <= failures) throw error;
      return "written";
    },
    async (ms) => pauses.push(ms),
  ).catch((thrown: unknown) => thrown);
  return { outcome, tries, pauses };
}

for (const [what, error] of [
  ["a transaction that met another", cancelled("None", "TransactionConflict")],
  ["a transaction that was throttled", cancelled("ThrottlingError", "None")],
  ["a write that met a transaction", conflict],
] as const)
  test(`${what} is tried again, with growing pauses, up to the bound`, async () => {
    const { outcome, pauses } = await tried(error, CONFLICT_TRIES - 1);
    assert.equal(outcome, "written");
    assert.equal(pauses.length, CONFLICT_TRIES - 1);
    for (const [n, ms] of pauses.entries()) assert.ok(ms >= 0 && ms <= Math.min(1_000, 50 * 2 ** n), `${ms}`);
    const given = await tried(error, CONFLICT_TRIES);
    assert.equal(given.outcome, error);
    assert.equal(given.tries, CONFLICT_TRIES);
  });

for (const error of [cancelled("ConditionalCheckFailed", "None"), new Error("no table")])
  test(`what trying again does not help is not: ${error.message}`, async () => {
    const { outcome, tries } = await tried(error, 1);
    assert.equal(outcome, error);
    assert.equal(tries, 1);
  });
