import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { FunctionPool } from "../../infra/local/function-pool.ts";
import { Limiter } from "../../infra/local/limiter.ts";
import { Processes } from "../../infra/local/processes.ts";
import { Processors } from "../../infra/local/processors.ts";

const AT_ONCE = 2 * availableParallelism();
const INVOCATIONS = AT_ONCE + 2;

/** How many sandboxes a function is given for invocations that come at once and last so many milliseconds. */
async function sandboxesFor(haveRoom: boolean, ms: number): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "sluice-pool-"));
  const code = `export const handler = () => new Promise((done) => setTimeout(() => done(process.pid), ${ms}));\n`;
  writeFileSync(join(dir, "index.mjs"), code);
  const pool = new FunctionPool({
    declaration: {
      ...{ name: "waits", arn: "arn:aws:lambda:us-east-1:000000000000:function:waits" },
      ...{ handler: "index.handler", codeDir: dir, timeoutSec: 30, memoryMb: 256 },
      ...{ environment: {}, asyncRetries: 0, reservedConcurrency: undefined },
    },
    environment: { PATH: process.env.PATH ?? "", LAMBDA_TASK_ROOT: dir, _HANDLER: "index.handler" },
    timeoutMs: 30_000,
    processes: new Processes(dir),
    starts: new Limiter(INVOCATIONS),
    processors: { haveRoom },
    onChange: () => {},
    onLine: () => {},
  });
  try {
    let most = 0;
    const all = Array.from({ length: INVOCATIONS }, async () => {
      const result = await pool.invoke("{}");
      most = Math.max(most, pool.pids.length);
      return result.ok;
    });
    assert.deepEqual(new Set(await Promise.all(all)), new Set([true]));
    return most;
  } finally {
    await pool.stop();
    rmSync(dir, { recursive: true });
  }
}

describe("a function's sandboxes", () => {
  test("while the processors are busy there are two for each, and the rest of the invocations wait", async () => {
    assert.equal(await sandboxesFor(false, 400), AT_ONCE);
  });

  test("become more when none comes free for a while and the processors have room", async () => {
    assert.equal(await sandboxesFor(true, 3_000), INVOCATIONS);
  });

  test("are busy when nine tenths of the last moments were not idle", () => {
    let [now, idle, all] = [0, 0, 0];
    const processors = new Processors(
      () => ({ idle, all }),
      () => now,
    );
    const pass = (share: number) => {
      [now, idle, all] = [now + 200, idle + 1_000 * share, all + 1_000];
      return processors.haveRoom;
    };
    assert.ok(processors.haveRoom, "nothing is known yet");
    assert.deepEqual([pass(0.05), pass(0.2), pass(0.1), pass(0.11)], [false, true, false, true]);
    now += 100;
    idle += 0;
    all += 1_000;
    assert.ok(processors.haveRoom, "too soon to look again");
  });
});
