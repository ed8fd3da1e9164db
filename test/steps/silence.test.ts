import assert from "node:assert/strict";
import { before, test } from "node:test";
import { Probe } from "../support/probe.ts";

const HOUR = 3_600_000;
const probe = new Probe();
let heard: typeof probe.world.messenger.heard;
before(() => {
  heard = probe.world.messenger.heard;
});
const unread = { waiting: 1, unsettled: 0, handedOut: 0, settled: 0 };

/** A task that acts unless somebody objects within an hour; the hour is over. */
async function silent(): Promise<string> {
  const taskId = await probe.start(async (step) => {
    await step.approve("gate", "Go?", { timeout: "1h", onTimeout: "approve" });
    return "acted";
  });
  await probe.pass(HOUR);
  return taskId;
}

/** All looks but the first of an invocation: until the question is left for later. */
const looks = <T>(look: T) => Array.from({ length: 8 }, () => look);

test("an objection that is on its stream when the window ends counts, though it is read later", async () => {
  heard.push(...looks(unread));
  const taskId = await silent();
  assert.equal((await probe.last(taskId))?.state, "TASK_STATE_AUTH_REQUIRED");
  await probe.approve(taskId, false, "no");
  assert.deepEqual((await probe.last(taskId))?.error, { code: "auth_not_satisfied", message: "no" });
  heard.splice(0);
});

test("while NATS is away nothing goes ahead, and once all is heard it does", async () => {
  heard.push(...looks(new Error("NATS is out of reach")));
  const taskId = await silent();
  assert.equal((await probe.last(taskId))?.state, "TASK_STATE_AUTH_REQUIRED");
  heard.splice(0);
  await probe.pass(HOUR);
  assert.deepEqual((await probe.told(taskId)).slice(-2), [
    "WORKING no objection was made",
    "COMPLETED acted",
  ]);
});

test("what comes after the window keeps nobody waiting", async () => {
  heard.push({ waiting: 0, unsettled: 1, handedOut: 7, settled: 5 });
  heard.push(...looks({ waiting: 1, unsettled: 1, handedOut: 9, settled: 7 }));
  const taskId = await silent();
  assert.equal((await probe.last(taskId))?.content, "acted");
  heard.splice(0);
});
