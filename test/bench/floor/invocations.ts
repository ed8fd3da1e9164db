import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FunctionPool } from "../../../infra/local/function-pool.ts";
import { Limiter } from "../../../infra/local/limiter.ts";
import { Processes } from "../../../infra/local/processes.ts";

const SANDBOXES = 2;
const WARM_UP = 20;

/** How often a second the local host invokes a function that does nothing, in two sandboxes at once. */
export async function invocationsPerSecond(count: number): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "sluice-noop-"));
  writeFileSync(join(dir, "index.mjs"), "export const handler = async () => null;\n");
  const pool = new FunctionPool({
    declaration: {
      name: "noop",
      arn: "arn:aws:lambda:us-east-1:000000000000:function:noop",
      handler: "index.handler",
      codeDir: dir,
      timeoutSec: 30,
      memoryMb: 256,
      reservedConcurrency: SANDBOXES,
      environment: {},
      asyncRetries: 0,
    },
    environment: { PATH: process.env.PATH ?? "", LAMBDA_TASK_ROOT: dir, _HANDLER: "index.handler" },
    timeoutMs: 30_000,
    processes: new Processes(dir),
    starts: new Limiter(SANDBOXES),
    processors: { haveRoom: true },
    onChange: () => {},
    onLine: () => {},
  });
  const run = (n: number) => Promise.all(Array.from({ length: n }, () => pool.invoke("{}")));
  try {
    await run(WARM_UP);
    const began = performance.now();
    await run(count);
    return count / ((performance.now() - began) / 1_000);
  } finally {
    await pool.stop();
    rmSync(dir, { recursive: true });
  }
}
