import assert from "node:assert/strict";
import { test } from "node:test";
import type { DelegateOptions, Step } from "../../shared/agents/index.ts";
import type { StartOptions, TestTask } from "../../testing/index.ts";
import { Simulation } from "../../testing/simulation.ts";
import { agentOf, failure, start } from "./support/delegating.ts";

const SCANNERS = [
  { id: "cat", skills: ["scan"] },
  { id: "dan", skills: ["scan", "task"] },
] as const;

const scan = (step: Step, over: Partial<DelegateOptions> = {}, name = "scan") =>
  step.delegate(name, { skill: "scan", message: "repo", ...over });
const begin = (run: (step: Step) => unknown, options: StartOptions = {}) =>
  start(run, { neighbours: SCANNERS, depth: 12, ...options });
/** Ends the delegation of a step, well or badly, and tells who had it. */
async function end(t: TestTask, step: string, good: boolean): Promise<string> {
  const given = await t.delegation(step);
  await (good ? given.complete("ok") : given.fail("internal", "broken"));
  return given.to;
}

test("who has the skill is chosen, asked for it where it takes its tasks, and told of", async () => {
  const t = await begin((step) => scan(step).then(({ by }) => by));
  const given = await t.delegation("scan");
  assert.ok(given.to === "test-cat" || given.to === "test-dan", given.to);
  assert.deepEqual([given.channelRef, given.skill], [given.to.slice(5), "scan"]);
  await given.complete("ok");
  assert.equal((await t.outcome()).text, given.to);
  const [line] = t.log.filter(({ message }) => message === "an agent is chosen");
  const other = given.to === "test-cat" ? "test-dan" : "test-cat";
  assert.deepEqual([line?.fields?.why, line?.fields?.passedOver], ["skill", `${other}: not_drawn`]);
});

test("nobody is chosen anew: the same agent has it, whoever runs the step again and whatever has changed", async () => {
  let sends = 0;
  const simulation = new Simulation(
    agentOf((step) => scan(step)),
    {
      neighbours: SCANNERS,
      choosing: { cooldownSec: { scan: 86_400 } },
      fate: ({ kind }) => (kind === "messenger.send" && ++sends <= 3 ? "after" : undefined),
    },
  );
  await simulation.admit({ skill: "task", a2a: "go", from: "adam" });
  await simulation.until("sent by each of four workers", () => sends > 3);
  assert.equal(new Set(simulation.messenger.sent.map(({ subject }) => subject)).size, 1);
  assert.equal(new Set(simulation.messenger.sent.map(({ body }) => body)).size, 1);
});

test("a worker that dies between the choice and its entry leaves no cooldown to the next", async () => {
  let puts = 0;
  const simulation = new Simulation(
    agentOf((step) => scan(step)),
    {
      neighbours: SCANNERS,
      choosing: { cooldownSec: { scan: 86_400 } },
      fate: ({ kind }) => (kind === "store.append" && ++puts === 1 ? "before" : undefined),
    },
  );
  await simulation.admit({ skill: "task", a2a: "go", from: "adam" });
  await simulation.until("it is sent", () => simulation.messenger.sent.length > 0);
  assert.ok(puts > 1);
});

test("who fails, and who says nothing in time, is not drawn again while that is remembered", async () => {
  for (const silent of [false, true]) {
    const t = await begin(async (step) => {
      const first = await failure(scan(step, { timeout: "1m" }));
      const second = await scan(step, {}, "second");
      const third = await scan(step, {}, "third");
      return JSON.stringify([first.split(" ")[0], second.by, third.by]);
    });
    const first = await t.delegation("scan");
    if (silent) await t.skip("1m");
    else await first.fail("internal", "broken");
    const other = first.to === "test-cat" ? "test-dan" : "test-cat";
    assert.equal(await end(t, "second", true), other);
    assert.equal(await end(t, "third", true), other);
    assert.deepEqual((await t.outcome()).data, [silent ? "timeout" : "internal", other, other]);
  }
});

test("the default is asked for its general skill when nobody has the one that is wanted", async () => {
  const t = await begin((step) => step.delegate("x", { skill: "paint", message: "" }), {
    choosing: { default: "dan" },
  });
  const { to, skill } = await t.delegation("x");
  assert.deepEqual([to, skill], ["test-dan", "task"]);
});

test("an agent is named by its id, its display name or its runtime, and none takes its place", async () => {
  for (const to of ["cat", "test-cat"]) {
    const t = await begin((step) => scan(step, { to }));
    assert.equal((await t.delegation("scan")).to, "test-cat");
    assert.equal(t.log.filter(({ message }) => message === "an agent is chosen").length, 0);
  }
});

test("each refusal is an error with its reason, the same on each run, and has its word on the wire", async () => {
  const all = [{ runtimeAgentId: "test-cat", skillId: "scan" }];
  for (const [options, expected, code, more] of [
    [
      { to: "caat" },
      /^target_unresolved -: .*no agent is called "caat"; nearest are "cat"/,
      "unknown_agent",
      {},
    ],
    [{ to: "all" }, /^several -: .*one agent is to be named, not all/, "internal", {}],
    [{ to: "cat", skill: "paint" }, /^unknown_skill -: .*it has "scan"/, "unknown_skill", {}],
    [{ skill: undefined }, /^no_skill -: /, "internal", {}],
    [{ skill: "paint" }, /^no_candidate -: .*no agent has it/, "unknown_agent", {}],
    [
      { to: "dan" },
      /^unauthorized_target -: .*no delegateTargets for scan of dan/,
      "unauthorized_target",
      {},
    ],
    [{ skill: "task" }, /^no_candidate -: .*"test-dan" is not_allowed/, "unknown_agent", {}],
    [{}, /^policy_denied -: .*maxDelegationDepth/, "policy_denied", { depth: 0 }],
    [{}, /^hop_limit -: .*12 times already/, "policy_denied", { message: handedOn(12) }],
    [{}, /^hop_limit -: /, "policy_denied", { message: handedOn("many") }],
  ] as const) {
    const policy = { delegateTargets: all };
    const settings = { policy, ...more } as StartOptions;
    const t = await begin(async (step) => {
      const first = await failure(scan(step, options));
      await step.sleep("later", "1h");
      assert.equal(await failure(scan(step, options, "again")), first.replaceAll('"scan":', '"again":'));
      return first;
    }, settings);
    const { text, error } = await t.outcome();
    assert.match(text, expected, error?.message);
    const uncaught = await begin((step) => scan(step, options), settings);
    assert.equal((await uncaught.outcome()).error?.code, code, expected.source);
  }
});

/** A message that was handed on so often, in the form in which one of ours hands on a text. */
function handedOn(hops: unknown) {
  return { kind: "text", text: "go", metadata: { "a2a.trace": { hops } } };
}

test("the hops of what came are counted on, in both forms of a message", async () => {
  for (const [message, sent] of [
    [handedOn(4), { kind: "text", text: "repo", metadata: { "a2a.trace": { hops: 5 } } }],
    [
      { message: { parts: [{ text: "go" }], metadata: { "a2a.trace": { hops: 11 } } } },
      { message: { parts: [{ data: 1 }], metadata: { "a2a.trace": { hops: 12 } } } },
    ],
  ] as const) {
    const asked = "message" in sent ? { message: { data: 1 } } : {};
    const simulation = new Simulation(
      agentOf((step) => scan(step, asked)),
      { neighbours: SCANNERS },
    );
    await simulation.admit({ skill: "task", a2a: message, from: "adam" });
    await simulation.until("it is sent", () => simulation.messenger.sent.length > 0);
    assert.deepEqual(JSON.parse(simulation.messenger.sent[0]?.body ?? "").payload.a2a, sent);
  }
});

test("a skill rests for a subject after somebody was chosen for it, and for no other", async () => {
  const t = await begin(
    async (step) => {
      await scan(step, { subject: "repo@1" }, "first");
      const second = await failure(scan(step, { subject: "repo@1" }, "second"));
      await scan(step, { subject: "repo@2" }, "other");
      await step.sleep("a while", "1m");
      await scan(step, { subject: "repo@1" }, "later");
      return second;
    },
    { choosing: { cooldownSec: { scan: 60 } } },
  );
  for (const step of ["first", "other", "later"]) await end(t, step, true);
  assert.match((await t.outcome()).text, /^cooldown -: .*"scan" for "repo@1" rests until/);
});

test("ten refusals of one kind are told of once", async () => {
  const t = await begin(async (step) => {
    for (let n = 0; n < 12; n++) await failure(scan(step, { to: "nobody" }, `scan ${n}`));
    return "";
  });
  await t.outcome();
  const told = t.log.filter(({ message }) => message === "refused again and again");
  assert.deepEqual(
    told.map(({ level, fields }) => [level, fields?.code, fields?.runtime, fields?.step]),
    [["error", "target_unresolved", "test-ann", "scan 9"]],
  );
});
