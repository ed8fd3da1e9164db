import assert from "node:assert/strict";
import { test } from "node:test";
import { Probe } from "../support/probe.ts";

const HOUR = 3_600_000;
const probe = new Probe();
const heard = () => probe.world.messenger.heard;
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

test("a silence counts only once NATS is there and all is heard", async () => {
  heard().push(new Error("NATS is out of reach"), unread);
  const taskId = await silent();
  assert.equal(heard().length, 0);
  assert.deepEqual((await probe.told(taskId)).slice(-2), [
    "WORKING no objection was made",
    "COMPLETED acted",
  ]);
});

test("what comes after the window keeps nobody waiting", async () => {
  heard().push({ waiting: 0, unsettled: 1, handedOut: 7, settled: 5 });
  heard().push({ waiting: 1, unsettled: 1, handedOut: 9, settled: 7 }, unread);
  const taskId = await silent();
  assert.equal((await probe.last(taskId))?.content, "acted");
  assert.deepEqual(heard().splice(0), [unread]);
});
