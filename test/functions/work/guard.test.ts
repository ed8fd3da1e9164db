import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import test from "node:test";

const GUARD = new URL("../../../functions/work/guard.ts", import.meta.url).href;

/** Nothing that is guarded takes as long; without its guard, a program that never yields would never end. */
const MAX_MS = 30_000;

/** Runs a guarded program to its end. */
async function guarded(program: string) {
  const source = `import { guardMainThread } from ${JSON.stringify(GUARD)}; guardMainThread({ leaseMs: 1 }); ${program}`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", source], { timeout: MAX_MS });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { stdout, stderr, code: child.exitCode, signal: child.signalCode };
}

test("a process whose main thread never yields is ended, and says why", async () => {
  const { stderr, signal } = await guarded("for (;;);");
  assert.equal(signal, "SIGKILL");
  const { level, message } = JSON.parse(stderr) as Record<string, unknown>;
  assert.equal(level, "ERROR");
  assert.match(String(message), /has not yielded for 3000 ms/);
});

test("one that computes in pieces shorter than a lease is left alone, and kept alive by nothing", async () => {
  const program = `
    for (let piece = 1; piece <= 3; piece++) {
      for (const end = Date.now() + 2_000; Date.now() < end; );
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    console.log("done");`;
  const { stdout, stderr, code } = await guarded(program);
  assert.deepEqual({ stdout, stderr, code }, { stdout: "done\n", stderr: "", code: 0 });
});
