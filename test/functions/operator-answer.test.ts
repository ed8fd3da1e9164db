import assert from "node:assert/strict";
import { test } from "node:test";
import { answerAsOperator, type OperatorDeps, type Verdict } from "../../shared/events/operator-answer.ts";
import { hintOf } from "../../shared/tasks/messages.ts";
import { Probe } from "../support/probe.ts";

const probe = new Probe();

/** Answers as the operator, and goes on. */
async function answer(taskId: string, verdict: Verdict, over: Partial<OperatorDeps> = {}) {
  const { store, values, now, hints } = probe.world;
  const hint: OperatorDeps["hint"] = async (head) => void hints.push({ hint: hintOf(head), delaySec: 0 });
  const answered = await answerAsOperator({ store, values, now, hint, ...over }, taskId, verdict);
  await probe.go();
  return answered;
}
const gated = (by?: "operator" | "requester") =>
  probe.start(async (step) => {
    await step.approve("gate", "Go?", by === undefined ? {} : { by });
    return await step.run("act", () => "acted");
  });

test("what only the operator may approve its requester cannot, nor deny; the operator can", async () => {
  const taskId = await gated("operator");
  const asksWhom = async () => (await probe.last(taskId))?.data;
  assert.deepEqual(await asksWhom(), { by: "operator" }, "programs are told whom to send there");
  for (const approve of [true, false]) {
    await probe.approve(taskId, approve);
    assert.equal(
      (await probe.told(taskId)).at(-1),
      "AUTH_REQUIRED only the operator may approve this.\n\nGo?",
      "it is asked again",
    );
    assert.deepEqual(await asksWhom(), { by: "operator" });
  }
  assert.deepEqual(await answer(taskId, { approve: true }), { step: "gate" });
  assert.deepEqual((await probe.told(taskId)).slice(-2), [
    "WORKING authorization received",
    "COMPLETED acted",
  ]);
  assert.deepEqual(await answer(taskId, { approve: false }), { none: "over" });
});

test("a denial of the operator's ends the task, with the reason", async () => {
  const taskId = await gated("operator");
  assert.deepEqual(await answer(taskId, { approve: false, denyReason: " not on a Friday " }), {
    step: "gate",
  });
  const { error } = (await probe.last(taskId)) ?? {};
  assert.deepEqual(error, { code: "auth_not_satisfied", message: "not on a Friday" });
});

test("what asks its requester, asks nothing, or is not there, is not answered", async () => {
  const requesters = await gated();
  assert.equal((await probe.last(requesters))?.data, undefined);
  assert.deepEqual(await answer(requesters, { approve: true }), { none: "asks its requester" });
  await probe.approve(requesters, true);
  assert.deepEqual(await answer(requesters, { approve: true }), { none: "over" });
  const asleep = await probe.start((step) => step.sleep("long", "1d"));
  assert.deepEqual(await answer(asleep, { approve: true }), { none: "asks nothing" });
  assert.deepEqual(await answer("task_none", { approve: true }), { none: "unknown" });
});

test("of two questions the one is answered that was meant", async () => {
  const taskId = await probe.start(async (step) => {
    await step.approve("plan", "Go?", { by: "operator" });
    await step.approve("checkpoint", "On?", { by: "operator" });
    return "done";
  });
  assert.deepEqual(await answer(taskId, { approve: true, step: "checkpoint" }), { asks: "plan" });
  assert.deepEqual(await answer(taskId, { approve: true, step: "plan" }), { step: "plan" });
  // Given once more, as by who has not seen that it was taken.
  assert.deepEqual(await answer(taskId, { approve: true, step: "plan" }), { asks: "checkpoint" });
  assert.equal((await probe.last(taskId))?.state, "TASK_STATE_AUTH_REQUIRED");
});

test("its requester may cancel it all the same", async () => {
  const taskId = await gated("operator");
  await probe.world.cancel(taskId);
  assert.equal((await probe.last(taskId))?.state, "TASK_STATE_CANCELED");
});

test("an answer holds though its hint is lost, and though a worker takes the task up meanwhile", async () => {
  const lost = await gated("operator");
  assert.deepEqual(await answer(lost, { approve: true }, { hint: async () => {} }), { step: "gate" });
  await probe.pass(60_000);
  assert.equal((await probe.last(lost))?.content, "acted");

  const taken = await gated("operator");
  const { store } = probe.world;
  let before = await store.head(taken);
  const stale = {
    ...store,
    head: async (taskId: string) => {
      const head = before ?? (await store.head(taskId));
      before = undefined;
      return head;
    },
  };
  // Somebody else wakes the task: its head is another by then.
  if (before !== undefined) await probe.world.work(hintOf(before));
  assert.deepEqual(await answer(taken, { approve: true }, { store: stale }), { step: "gate" });
  assert.equal((await probe.last(taken))?.content, "acted");
});
