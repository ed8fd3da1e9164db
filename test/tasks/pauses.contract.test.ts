import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, describe, test } from "node:test";
import { dynamoPauses } from "../../shared/tasks/dynamodb-pauses.ts";
import { memoryPauses } from "../../shared/testing/memory-pauses.ts";
import { simulatedAccess } from "../support/simulated-store.ts";
import { startTable } from "../support/table.ts";

const table = await startTable();
after(() => table.stop());
const PAUSE = { at: 1_900_000_000_000, by: "eve", refuse: false };
const EXPIRES = 2_000_000_000;

for (const [name, open] of [
  ["memory", memoryPauses],
  ["a simulated table", () => dynamoPauses(simulatedAccess())],
  ["DynamoDB", () => dynamoPauses(table.access)],
] as const)
  describe(`pauses over ${name}`, () => {
    const pauses = open();
    const runtime = `acme-${randomBytes(6).toString("hex")}`;

    test("an agent is paused, otherwise paused, and resumed; others are not", async () => {
      assert.equal(await pauses.pauseOf(runtime), undefined);
      await pauses.pause(runtime, PAUSE);
      assert.deepEqual(await pauses.pauseOf(runtime), PAUSE);
      await pauses.pause(runtime, { ...PAUSE, refuse: true });
      assert.deepEqual(await pauses.pauseOf(runtime), { ...PAUSE, refuse: true });
      assert.equal(await pauses.pauseOf(`${runtime}-2`), undefined);
      assert.equal(await pauses.resume(runtime), true);
      assert.equal(await pauses.resume(runtime), false);
      assert.equal(await pauses.pauseOf(runtime), undefined);
    });

    test("what was held back is told once, of each agent alone, until it is released", async () => {
      const held = async (of = runtime) => {
        const found: string[] = [];
        for await (const taskId of pauses.held(of)) found.push(taskId);
        return found;
      };
      assert.deepEqual(await held(), []);
      for (const taskId of ["task_b", "task_a", "task_b"]) await pauses.hold(runtime, taskId, EXPIRES);
      await pauses.pause(runtime, PAUSE);
      assert.deepEqual(await held(), ["task_a", "task_b"]);
      assert.deepEqual(await held(`${runtime}-2`), []);
      await pauses.release(runtime, "task_a");
      await pauses.release(runtime, "task_a");
      assert.deepEqual(await held(), ["task_b"]);
    });
  });
