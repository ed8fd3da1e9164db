import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { type StartOptions, startTask } from "sluice/testing";
import deployGate, { input, settings } from "../../agents/deploy-gate.ts";
import { dieAtEachWrite } from "../support/kill-points.ts";

const node = process.execPath;
const folder = mkdtempSync(join(tmpdir(), "sluice-deploy-gate-"));
const log = join(folder, "log");
after(() => rmSync(folder, { recursive: true }));
beforeEach(() => rmSync(log, { force: true }));

/** Leaves a line with the task's id in the log. */
const note = `require("node:fs").appendFileSync(${JSON.stringify(log)}, process.env.SLUICE_TASK + "\\n");`;
const targets = {
  shop: [node, "-e", `${note} console.log("shop is up")`],
  broken: [node, "-e", `${note} console.error("no disk"); process.exitCode = 3`],
  slow: [node, "-e", `${note} setInterval(() => {}, 1000)`],
  any: { argv: [node, "-p", "JSON.stringify(process.argv.slice(1))"], args: true, timeoutSec: 600 },
};
const start = (text: string, options: StartOptions = {}) =>
  startTask(deployGate, { settings: { targets, graceSec: 60 }, text, ...options });
const deployments = () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []);

test("what is approved is deployed when the grace period is over", async () => {
  const t = await start("shop the prices of May");
  await t.untilWaiting();
  assert.equal(t.events.at(-1)?.state, "TASK_STATE_AUTH_REQUIRED");
  assert.match(
    t.question?.prompt ?? "",
    /^Deploy shop: the prices of May\nThis runs .* 60 s after your approval; a cancel until then stops it\./,
  );
  await t.skip("1h");
  await t.approve();
  await t.untilWaiting();
  assert.equal(t.events.at(-1)?.content, "approved; shop is deployed in 60 s unless this task is cancelled");
  await t.skip("59s");
  assert.deepEqual(deployments(), []);
  const outcome = await t.outcome();
  assert.deepEqual(
    [outcome.state, outcome.text],
    ["TASK_STATE_COMPLETED", "shop is deployed: the prices of May"],
  );
  assert.deepEqual(deployments(), [t.id]);
  assert.equal(outcome.artifacts.find(({ id }) => id === "log")?.text, "shop is up\n");
  assert.deepEqual(
    t.steps.map(({ name }) => name),
    ["plan", "approval", "grace period", "deploy", "log", "data"],
  );
});

test("a denial, and silence, end the task before anything has run", async () => {
  const denied = await start("shop the prices of May");
  await denied.approve(false, "not on a Friday");
  const silent = await start("shop the prices of May");
  await silent.untilWaiting();
  await silent.skip("1d");
  for (const [t, message] of [
    [denied, /not on a Friday/],
    [silent, /nobody answered within 86400 s/],
  ] as const) {
    const { state, error } = await t.outcome();
    assert.deepEqual([state, error?.code], ["TASK_STATE_FAILED", "auth_not_satisfied"]);
    assert.match(error?.message ?? "", message);
  }
  assert.deepEqual(deployments(), []);
});

test("a cancel before the grace period is over stops it", async () => {
  for (const approved of [false, true]) {
    const t = await start("shop the prices of May");
    if (approved) await t.approve();
    await t.untilWaiting();
    await t.cancel("changed my mind");
    const { state } = await t.outcome();
    assert.equal(state, "TASK_STATE_CANCELED");
    await t.skip("2h");
  }
  assert.deepEqual(deployments(), []);
});

test("a cancel while the command runs kills it", async () => {
  const t = await start("slow the prices of May", { settings: { targets, graceSec: 0 } });
  await t.approve();
  while (deployments().length === 0) await wait(10);
  await t.cancel();
  assert.equal((await t.outcome()).state, "TASK_STATE_CANCELED");
});

test("a command that fails fails the task, and what it wrote is given out", async () => {
  const t = await start("broken the prices of May");
  await t.approve();
  const { state, error, artifacts } = await t.outcome();
  assert.deepEqual([state, error?.code], ["TASK_STATE_FAILED", "internal"]);
  assert.match(error?.message ?? "", /broken is not deployed: exit code 3\nno disk$/);
  assert.equal(artifacts[0]?.text, "no disk\n");
  assert.equal(deployments().length, 1, "it is not tried again");
});

test("what was approved is what runs, with the arguments that were shown", async () => {
  const args = ["v1.2.3", "two words", "$(id)"];
  const t = await start("", { data: { target: "any", description: "the prices of May", args } });
  await t.untilWaiting();
  assert.match(t.question?.prompt ?? "", /v1\.2\.3 "two words" "\$\(id\)" 60 s after/);
  await t.approve();
  const { artifacts } = await t.outcome();
  assert.deepEqual(JSON.parse(artifacts[0]?.text ?? ""), args);
});

test("nobody is asked for what cannot be deployed", async () => {
  const refused = async (text: string, message: RegExp, options: StartOptions = {}) => {
    const t = await start(text, options);
    const { state, error } = await t.outcome();
    assert.equal(state, "TASK_STATE_FAILED");
    assert.match(error?.message ?? "", message);
    assert.ok(t.events.every((event) => event.state !== "TASK_STATE_AUTH_REQUIRED"));
  };
  await refused("bank the prices of May", /"bank" is not allowed; allowed: shop, broken, slow, any/);
  await refused("shop x", /none \(see `targets` of this agent in agents\.yaml\)/, { settings: {} });
  await refused("shop", /expected a description of the deployment/);
  await refused("", /"shop" takes no arguments|shop takes no arguments/, {
    data: { target: "shop", description: "x", args: ["y"] },
  });
  // 60 s of grace and 600 s for the command.
  await refused("any x", /any may take 660 s: ask with a timeout above that/, { timeoutSec: 659 });
  const enough = await start("any x", { timeoutSec: 660 });
  await enough.untilWaiting();
});

test("what is asked for, and what the operator sets, at the bounds", () => {
  const asked = (args: unknown) => input.safeParse({ target: "a", description: "b", args }).success;
  assert.equal(asked(Array(16).fill("x".repeat(200))), true);
  assert.equal(asked(Array(17).fill("x")), false);
  assert.equal(asked(["x".repeat(201)]), false);
  assert.deepEqual(input.parse(" shop  the\nprices "), {
    target: "shop",
    description: "the\nprices",
    args: [],
  });
  assert.deepEqual(settings.parse({}), { targets: {}, graceSec: 60, approveWithinSec: 86_400 });
  for (const right of [{ graceSec: 0 }, { graceSec: 604_800 }, { approveWithinSec: 2_592_000 }])
    assert.equal(settings.safeParse(right).success, true);
  for (const wrong of [
    { graceSec: 604_801 },
    { graceSec: -1 },
    { approveWithinSec: 0 },
    { approveWithinSec: 2_592_001 },
  ])
    assert.equal(settings.safeParse(wrong).success, false);
});

for (const when of ["before", "after"] as const)
  test(`whichever write a process dies ${when}, the task ends with the same events`, async () => {
    const writes = await dieAtEachWrite({
      agent: deployGate,
      start: { text: "demo the prices of May", settings: { targets: { demo: ["echo", "up"] } } },
      when,
      play: async (t) => {
        await t.approve();
        const { artifacts } = await t.outcome();
        assert.equal(artifacts.find(({ id }) => id === "log")?.text, "up\n");
      },
      eventsOf: (events) =>
        events.map(({ revision, kind, state, content }) => [revision, kind, state, content]),
    });
    assert.ok(writes > 20, `${writes} writes`);
  });
