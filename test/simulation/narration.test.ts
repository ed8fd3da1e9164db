import assert from "node:assert/strict";
import { test } from "node:test";
import { Narration } from "./narration.ts";

test("sweeps that do the same are counted, and whatever else happens is told", () => {
  const told: string[] = [];
  const narration = new Narration((line) => told.push(line));
  const sweep = (n: number, ...deeds: string[]) => {
    for (const deed of ["begins", "queries due#0", "queries due#1", ...deeds, "is done"])
      narration.tell(`${(n * 60).toFixed(3).padStart(9)} sweep${n} ${deed}`);
  };
  sweep(1);
  sweep(2, "reads head of task_1");
  sweep(3, "reads head of task_1");
  sweep(4, "reads head of task_1");
  narration.tell("  240.000 work1 begins");
  sweep(5, "reads head of task_1");
  narration.tell("  360.000 sweep6 begins");
  narration.tell("  360.000 work1 is done");
  narration.tell("  360.000 sweep6 is done");
  narration.tell("  420.000 sweep7 begins");
  narration.end();
  assert.deepEqual(
    told.map((line) => line.trim()),
    [
      ...["60.000 sweep1 begins", "60.000 sweep1 queries due#0", "60.000 sweep1 is done"],
      ...["120.000 sweep2 begins", "120.000 sweep2 queries due#0"],
      ...["120.000 sweep2 reads head of task_1", "120.000 sweep2 is done", "… and 2 times more"],
      "240.000 work1 begins",
      ...["300.000 sweep5 begins", "300.000 sweep5 queries due#0"],
      ...["300.000 sweep5 reads head of task_1", "300.000 sweep5 is done"],
      ...["360.000 sweep6 begins", "360.000 work1 is done", "360.000 sweep6 is done"],
      "420.000 sweep7 begins",
    ],
  );
});
