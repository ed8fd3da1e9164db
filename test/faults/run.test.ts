import assert from "node:assert/strict";
import { test } from "node:test";
import { Chance } from "./run/chance.ts";
import { action, drawPlan } from "./run/plan.ts";
import { complaints, keep, summary } from "./run/report.ts";
import { faultRun } from "./run/run.ts";
import { drawSpecs } from "./run/specs.ts";

/** `npm run faults` takes longer, and meets more. */
const SHORT = { lengthMs: 12_000, settleMs: 60_000, rate: 3.5, timeScale: 20 };

test("the same seed gives the same plan and the same tasks", () => {
  const plan = () => drawPlan(new Chance("seed 7").fork("plan"), 360_000);
  assert.deepEqual(plan(), plan());
  assert.deepEqual(
    plan(),
    action.array().parse(JSON.parse(JSON.stringify(plan()))),
    "a kept plan is the plan",
  );
  const tasks = () => {
    const specs = drawSpecs(new Chance("seed 7").fork("tasks"), (id) => id);
    return Array.from({ length: 50 }, () => specs.next().value);
  };
  assert.deepEqual(tasks(), tasks());
  assert.notDeepEqual(plan(), drawPlan(new Chance("seed 8").fork("plan"), 360_000));
});

test("a plan of six minutes has a broker's restart that takes longer than every timeout, and enough kills", () => {
  for (let seed = 1; seed <= 20; seed++) {
    const plan = drawPlan(new Chance(`seed ${seed}`).fork("plan"), 360_000);
    const kills = plan.filter(({ kind }) => kind.startsWith("kill"));
    assert.ok(kills.length >= 60, `${kills.length} kills`);
    assert.ok(plan.some((of) => of.kind === "kill server" && of.name === "nats" && of.downMs === 30_000));
    assert.ok(plan.every(({ at }, index) => at >= (plan[index - 1]?.at ?? 0) && at <= 360_000));
  }
});

// One seed that is always the same: what other seeds find is for those who look (`npm run faults`), not for whoever lands.
test("a short fault run ends clean", async (t) => {
  const outcome = await faultRun({ ...SHORT, seed: 1, say: () => {} });
  for (const line of summary(outcome)) t.diagnostic(line);
  const again = `npm run faults -- --replay ${keep(outcome, `short-${outcome.seed}`)}`;
  assert.deepEqual(outcome.violations, [], `${again}\n${complaints(outcome).join("\n")}`);
  assert.deepEqual(outcome.troubled, [], again);
  assert.ok(outcome.ledger.tasks.length >= 40);
});
