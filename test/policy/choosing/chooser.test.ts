import assert from "node:assert/strict";
import { test } from "node:test";
import { Breaker } from "../../../shared/policy/choosing/breaker.ts";
import { ChoiceError, Chooser, type Facts, type Request } from "../../../shared/policy/choosing/chooser.ts";
import { type Circuit, circuitRules } from "../../../shared/policy/choosing/circuit.ts";
import { Cooldowns, type Cooling } from "../../../shared/policy/choosing/cooldown.ts";
import { Escalation, escalationRules, type Refusals } from "../../../shared/policy/choosing/escalation.ts";
import { OutcomeBook, type Outcomes } from "../../../shared/policy/choosing/outcomes.ts";
import { registryOf } from "../../../shared/policy/choosing/registry.ts";
import { memoryItems } from "../../../shared/testing/memory-items.ts";

const START = 1_900_000_000_000;
const FINE: Facts = { allowed: true, healthy: true, stale: false };
const AGENTS = registryOf({
  file: [
    { name: "ann", skills: ["scan"] },
    { name: "bob", skills: ["scan"] },
  ],
  cards: [{ name: "cat", skills: ["scan"] }],
});

function start(facts: Readonly<Record<string, Facts>> = {}) {
  const clock = { now: START, random: 0 };
  const now = () => clock.now;
  const lines: unknown[] = [];
  const line = (level: string) => (message: string, fields?: object) =>
    lines.push([level, message, { ...fields }]);
  const counts: string[] = [];
  const telemetry = {
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
    count: (metric: string, _value?: number, of: Readonly<Record<string, string>> = {}) =>
      counts.push([metric, ...Object.values(of)].join(" ")),
  };
  const outcomes = new OutcomeBook({ store: memoryItems<Outcomes>(), now });
  const breaker = new Breaker({ store: memoryItems<Circuit>(), now, rules: circuitRules(), telemetry });
  const chooser = new Chooser({
    registry: async () => AGENTS,
    facts: async () => (agent) => facts[agent] ?? FINE,
    outcomes,
    breaker,
    cooldowns: new Cooldowns({ store: memoryItems<Cooling>(), now, seconds: { scan: 30 } }),
    escalation: new Escalation({ store: memoryItems<Refusals>(), now, rules: escalationRules() }),
    telemetry,
    random: () => clock.random,
  });
  let subjects = 0;
  const ask = (request: Partial<Request>) =>
    chooser.choose({ runtime: "acme-ed", hops: 0, subject: `repo ${++subjects}`, ...request });
  const refusal = async (request: Partial<Request>) => {
    try {
      return assert.fail(JSON.stringify(await ask(request)));
    } catch (error) {
      if (error instanceof ChoiceError) return error.refusal;
      throw error;
    }
  };
  return { clock, lines, counts, outcomes, breaker, ask, refusal };
}

const agentsOf = ({ chosen }: { chosen: readonly { agent: string }[] }) => chosen.map(({ agent }) => agent);
const failing = () => Promise.reject(new Error("down"));

test("what an agent has done counts for itself: who fails is not drawn, until it is forgotten", async () => {
  const { clock, outcomes, ask, counts, lines } = start();
  assert.deepEqual(await ask({ skill: "scan" }), {
    chosen: [{ agent: "ann", why: "skill", despite: [] }],
    passedOver: [
      { agent: "bob", reasons: ["not_drawn"] },
      { agent: "cat", reasons: ["outranked"] },
    ],
    hops: 1,
  });
  await outcomes.note("ann", { good: false });
  assert.deepEqual(agentsOf(await ask({ skill: "scan" })), ["bob"]);
  clock.now += 31 * 60_000;
  assert.deepEqual(agentsOf(await ask({ skill: "scan" })), ["ann"]);
  assert.deepEqual([counts, lines], [[], []]);
});

test("whose circuit is open is passed over, refused when it is named, and asked again after a minute", async () => {
  const { clock, breaker, ask, refusal } = start();
  for (let i = 0; i < 5; i++) await assert.rejects(breaker.around("ann", failing), /^Error: down$/);
  assert.deepEqual(agentsOf(await ask({ skill: "scan" })), ["bob"]);
  const { reason, retryAt } = await refusal({ targets: ["ann"] });
  assert.deepEqual([reason, retryAt], ["circuit_open", START + 60_000]);
  clock.now += 60_000;
  assert.deepEqual(agentsOf(await ask({ skill: "scan" })), ["ann"]);
});

test("a skill rests only after somebody was chosen for it", async () => {
  const { clock, ask, refusal } = start({ ann: { ...FINE, allowed: false } });
  assert.equal((await refusal({ targets: ["ann"], skill: "scan", subject: "s" })).reason, "not_allowed");
  assert.deepEqual(agentsOf(await ask({ skill: "scan", subject: "s", by: "task_1 ask" })), ["bob"]);
  assert.deepEqual(agentsOf(await ask({ skill: "scan", subject: "s", by: "task_1 ask" })), ["bob"]);
  clock.now += 1;
  const { message, retryAt } = await refusal({ skill: "scan", subject: "s" });
  assert.equal(message, 'cooldown: "scan" for "s" rests until 2030-03-17T17:47:10.000Z');
  assert.equal(retryAt, START + 30_000);
});

test("the twelfth hop is the last", async () => {
  const { ask, refusal } = start();
  assert.equal((await ask({ targets: ["ann"], hops: 11 })).hops, 12);
  assert.equal((await refusal({ targets: ["ann"], hops: 12 })).reason, "hop_limit");
});

test("a refusal has a line and a count, ten of one kind are told of once", async () => {
  const { refusal, lines, counts } = start();
  const typo = { targets: ["annn"], skill: "scan" };
  const { reason, instead } = await refusal(typo);
  assert.deepEqual([reason, instead], ["target_unresolved", ["ann"]]);
  const fields = { runtime: "acme-ed", code: "target_unresolved", skill: "scan", executor: "annn" };
  assert.deepEqual(lines, [["info", "nobody was chosen", fields]]);
  assert.deepEqual(counts, ["ChoicesRefused acme-ed target_unresolved"]);
  for (let i = 2; i <= 9; i++) await refusal(typo);
  await refusal({ targets: ["bobb"] });
  assert.equal(counts.length, 10);
  for (let i = 10; i <= 15; i++) await refusal(typo);
  assert.deepEqual(
    lines.filter((line) => Array.isArray(line) && line[0] !== "info"),
    [["error", "refused again and again", fields]],
  );
  assert.equal(counts.filter((of) => of === "RefusalsEscalated acme-ed target_unresolved").length, 1);
});

test("a refusal that cannot be counted is one all the same, and what a requester names is cut in a line", async () => {
  const lines: [string, unknown][] = [];
  const telemetry = {
    info: () => {},
    error: () => {},
    warn: (message: string, fields?: object) => lines.push([message, { ...fields }]),
    count: () => {},
  };
  const chooser = new Chooser({
    registry: async () => AGENTS,
    facts: async () => () => FINE,
    outcomes: { weights: async () => () => 1 },
    breaker: { openUntil: async () => () => undefined },
    cooldowns: { take: () => Promise.reject(new Error("not asked")) },
    escalation: { refused: () => Promise.reject(new Error("no answer")) },
    telemetry,
    random: () => 0,
  });
  const long = "x".repeat(100);
  await assert.rejects(chooser.choose({ runtime: "r", targets: [long], hops: 0 }), ChoiceError);
  const fields = { runtime: "r", code: "target_unresolved", executor: "x".repeat(80) };
  assert.deepEqual(lines, [
    ["a refusal could not be counted", { ...fields, errorName: "Error", errorMessage: "no answer" }],
  ]);
});
