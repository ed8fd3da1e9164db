import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Standings } from "../../../shared/policy/standing.ts";
import { Pauses } from "../../../shared/tasks/pauses.ts";
import { memoryPauses } from "../../../shared/testing/memory-pauses.ts";
import { Probe } from "../../support/probe.ts";

const MINUTE = 60_000;
const probe = new Probe();
const store = memoryPauses();

/** What a sandbox knows that has just begun. */
const fresh = () => {
  const standingOf = async (runtime: string) => {
    const pause = await store.pauseOf(runtime);
    return pause === undefined ? {} : { pause };
  };
  const standings = new Standings({
    store: { standingOf },
    now: probe.world.now,
    timing: { pauseKnownMs: 5_000 },
  });
  return new Pauses({ store, standings });
};
const held = async () => {
  const found: string[] = [];
  for await (const taskId of store.held(runtimeOf())) found.push(taskId);
  return found;
};
const runtimeOf = () => probe.world.deployment.agents[0]?.runtime ?? "";
const headOf = async (taskId: string) => {
  const head = await probe.world.store.head(taskId);
  assert.ok(head);
  return head;
};
const pausing = (refuse = false) => store.pause(runtimeOf(), { at: 0, by: "eve", refuse });

describe("a paused agent", () => {
  test("has its tasks noted and not claimed, and goes on with them once it is resumed", async () => {
    const hint = await probe.admit(async (step) => step.run("work", () => "done"));
    await pausing();
    await probe.world.work(hint, { pauses: fresh() });
    await probe.world.work({ ...hint, epoch: 7 }, { pauses: fresh() });
    const { to: _, ...old } = hint;
    await probe.world.work(old, { pauses: fresh() });
    assert.deepEqual(await held(), [hint.taskId]);
    const { epoch, dueAt } = await headOf(hint.taskId);
    assert.deepEqual([epoch, dueAt !== undefined], [0, true], "sweep will offer it again");
    await store.resume(runtimeOf());
    await probe.world.work(hint, { pauses: fresh() });
    assert.equal((await probe.last(hint.taskId))?.content, "done");
    await store.release(runtimeOf(), hint.taskId);
  });

  test("loses no task when it is resumed between the look and the note", async () => {
    const hint = await probe.admit(async () => "done");
    await pausing();
    const pauses = fresh();
    assert.ok(await pauses.of(runtimeOf()));
    await store.resume(runtimeOf());
    // What it knows is that the agent is paused, and whoever has resumed it has found no note.
    await probe.world.work(hint, { pauses });
    assert.equal((await probe.last(hint.taskId))?.content, "done");
    assert.deepEqual(await held(), []);
  });

  test("has its deadlines, and its tasks can be cancelled", async () => {
    const late = await probe.admit(async () => "done", { delivery: { timeoutSec: 60 } });
    const cancelled = await probe.admit(async () => "done");
    await pausing();
    await probe.world.cancel(cancelled.taskId);
    assert.equal((await probe.last(cancelled.taskId))?.state, "TASK_STATE_CANCELED");
    await probe.world.work(late, { pauses: fresh() });
    probe.world.skip(2 * MINUTE);
    const { epoch, beat } = await headOf(late.taskId);
    await probe.world.work({ ...late, epoch, beat }, { pauses: fresh() });
    assert.equal((await probe.last(late.taskId))?.error?.code, "timeout");
    assert.equal((await headOf(late.taskId)).dueAt, undefined);
    await store.resume(runtimeOf());
  });
});
