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
  assert.equal(await answer(taskId, { approve: true }), "answered");
  assert.deepEqual((await probe.told(taskId)).slice(-2), [
    "WORKING authorization received",
    "COMPLETED acted",
  ]);
  assert.equal(await answer(taskId, { approve: false }), "over");
});

test("a denial of the operator's ends the task, with the reason", async () => {
  const taskId = await gated("operator");
  assert.equal(await answer(taskId, { approve: false, denyReason: " not on a Friday " }), "answered");
  const { error } = (await probe.last(taskId)) ?? {};
  assert.deepEqual(error, { code: "auth_not_satisfied", message: "not on a Friday" });
});

test("what asks its requester, asks nothing, or is not there, is not answered", async () => {
  const requesters = await gated();
  assert.equal((await probe.last(requesters))?.data, undefined);
  assert.equal(await answer(requesters, { approve: true }), "asks its requester");
  await probe.approve(requesters, true);
  assert.equal(await answer(requesters, { approve: true }), "over");
  const asleep = await probe.start((step) => step.sleep("long", "1d"));
  assert.equal(await answer(asleep, { approve: true }), "asks nothing");
  assert.equal(await answer("task_none", { approve: true }), "unknown");
});

test("its requester may cancel it all the same", async () => {
  const taskId = await gated("operator");
  await probe.world.cancel(taskId);
  assert.equal((await probe.last(taskId))?.state, "TASK_STATE_CANCELED");
});

test("an answer holds though its hint is lost, and though a worker takes the task up meanwhile", async () => {
  const lost = await gated("operator");
  assert.equal(await answer(lost, { approve: true }, { hint: async () => {} }), "answered");
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
  assert.equal(await answer(taken, { approve: true }, { store: stale }), "answered");
  assert.equal((await probe.last(taken))?.content, "acted");
});
