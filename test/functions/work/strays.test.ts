import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

const strays = new URL("../../../functions/work/strays.ts", import.meta.url).href;

/** Runs a script in a process of its own, beside a runtime that would end it at anything uncaught. */
async function run(script: string): Promise<{ stdout: string; code: number }> {
  const source = `
    process.on("uncaughtException", () => process.exit(129));
    process.on("unhandledRejection", () => process.exit(128));
    const { ownStrays, watchStrays } = await import(${JSON.stringify(strays)});
    watchStrays({ error: () => {} });
    const blame = (name) => (error) => console.log(name, error.message);
    ${script}`;
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", source]);
    return { stdout, code: 0 };
  } catch (error) {
    assert.ok(error instanceof Error && "code" in error && "stdout" in error, String(error));
    return { stdout: String(error.stdout), code: Number(error.code) };
  }
}

test("an error that nobody catches is its own handler's, whoever runs by then", async () => {
  const { stdout, code } = await run(`
    ownStrays(blame("first"), () => setTimeout(() => { throw new Error("timer"); }, 20));
    ownStrays(blame("second"), () => void (async () => {
      await new Promise((resolve) => setTimeout(resolve, 60));
      throw new Error("promise");
    })());
    await ownStrays(blame("third"), () => new Promise((resolve) => setTimeout(resolve, 120)));
    console.log("third is done");`);
  assert.equal(code, 0);
  assert.deepEqual(stdout.trim().split("\n"), ["first timer", "second promise", "third is done"]);
});

test("an error of no handler ends the process", async () => {
  const { stdout, code } = await run(`
    setTimeout(() => { throw new Error("ours"); }, 5);
    setTimeout(() => console.log("still here"), 200);`);
  assert.deepEqual([stdout, code], ["", 1]);
});
