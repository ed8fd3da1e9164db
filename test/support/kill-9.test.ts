import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { kill9, wholeLines } from "./kill-9.ts";

test("kill -9 of a process, and of nothing else", async () => {
  // 0 and what is below are groups (kill(2)): this process and the runner would go down with it.
  for (const pid of [undefined, "", " ", "0", 0, -1, "-7", Number.NaN, "12 "])
    assert.throws(() => kill9(pid), /expected a process's id/);
  const child = spawn("sleep", ["60"]);
  const ended = once(child, "exit");
  kill9(child.pid);
  assert.deepEqual(await ended, [null, "SIGKILL"]);
});

test("of a file that is being written, the lines that are whole", () => {
  assert.deepEqual(["", "12", "12\n", "12\n34"].map(wholeLines), [[], [], ["12"], ["12"]]);
});
