import assert from "node:assert/strict";
import { test } from "node:test";
import { circuitRecord, circuitText, standingOf } from "../../cli/peers/circuits.ts";
import { localTime } from "../../cli/text.ts";
import { Breaker } from "../../shared/policy/choosing/breaker.ts";
import { circuit, circuitRules } from "../../shared/policy/choosing/circuit.ts";
import { dynamoItems } from "../../shared/policy/choosing/dynamodb-items.ts";
import { simulatedAccess } from "../support/simulated-store.ts";

test("circuits are shown as the functions leave them in the table, until when they are open", async () => {
  const store = dynamoItems(simulatedAccess(), "circuit", circuit);
  const telemetry = { warn() {}, count() {} };
  const rules = circuitRules();
  let now = 1_900_000_000_000;
  const breaker = new Breaker({ store, now: () => now, rules, telemetry, pause: async () => {} });
  const fail = () => assert.rejects(breaker.around("auditor", () => Promise.reject(new Error("away"))));
  const standing = async () => standingOf(await store.readAll(["auditor", "planner"]), "auditor", now);
  const shown = async () => circuitText(await standing());

  assert.equal(await shown(), "closed");
  await fail();
  assert.equal(await shown(), "closed, 1 failure");
  for (let failures = 2; failures <= rules.failures; failures++) await fail();
  const until = now + rules.openMs;
  assert.equal(await shown(), `open until ${localTime(new Date(until))}`);
  assert.deepEqual(circuitRecord(await standing()), {
    state: "open",
    failures: 0,
    until: new Date(until).toISOString(),
  });
  now = until - 1;
  assert.match(await shown(), /^open until /);
  now = until;
  assert.equal(await shown(), "half open");
  await breaker.around("auditor", async () => {});
  assert.deepEqual(circuitRecord(await standing()), { state: "closed", failures: 0, until: null });
});

test("where no table is known nothing is said of a circuit", () => {
  assert.equal(circuitText(standingOf(undefined, "auditor", 0)), "-");
  assert.equal(circuitRecord(standingOf(undefined, "auditor", 0)), null);
});
