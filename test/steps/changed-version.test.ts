import assert from "node:assert/strict";
import { test } from "node:test";
import { FatalError, type Step } from "sluice";
import { startTask } from "sluice/testing";
import { change, completed, version, wait } from "./support/versions.ts";

test("a task is woken by what the old version waited for, not by a deployment", async () => {
  const t = await startTask(version(wait));
  await t.untilWaiting();
  t.deploy(version(async () => "at once"));
  await t.skip("9d");
  assert.equal(t.events.length, 1);
  await t.skip("1d");
  assert.equal(completed(await t.outcome()), "at once");
});

test("a failure that is stored is thrown by the new version as well, whatever its function does", async () => {
  const trying = (fn: () => string) => async (step: Step) => {
    const tried = await step.run("try", fn).catch((error: Error) => `${error.name}: ${error.message}`);
    await wait(step);
    return tried;
  };
  const { outcome } = await change(
    trying(() => {
      throw new FatalError("no ink");
    }),
    trying(() => "ink"),
  );
  assert.equal(completed(outcome), "FatalError: no ink");
});

test("tasks from before go the old way, later ones the new", async () => {
  const changedAt = new Date("2030-01-02T00:00:00Z");
  const before = async (step: Step) => {
    await step.run("address", () => "old");
    await wait(step);
    return step.run("send", () => "the old way");
  };
  const both = async (step: Step) => {
    const isOld = step.now() < changedAt;
    if (isOld) return before(step);
    await wait(step);
    return step.run("deliver", () => "the new way");
  };
  const { outcome } = await change(before, both);
  assert.equal(completed(outcome), "the old way");
  const later = await startTask(version(both), { startsAt: changedAt });
  later.crash({ after: "deliver" });
  assert.equal(completed(await later.outcome()), "the new way");
});

test("a worker of the old version that dies leaves its steps to the new one", async () => {
  const t = await startTask(
    version((step) => step.run("a", () => "old").then(() => step.run("b", () => "old"))),
  );
  t.crash({ after: "a" });
  await t.skip(0);
  t.deploy(version(async (step) => [await step.run("a", () => "new"), await step.run("b", () => "new")]));
  assert.equal(completed(await t.outcome()), "old,new");
});
