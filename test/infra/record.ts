/**
 * Writes test/infra/seen-calls.json anew: runs the tests that bring up the whole product, a file at a time, and notes
 * what each function asks AWS for (`npm run seen-calls`; `npm run seen-calls -- test/e2e/sizes.test.ts …` runs some, and
 * adds to what the list has). Those that stand between the functions and AWS themselves are not looked at. Only what
 * differs from the run before is worth a look: a call that is no longer seen.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import * as z from "zod";
import { SEEN_CALLS_FILE } from "../support/seen-calls.ts";

type Calls = Readonly<Record<string, readonly string[]>>;

const ROOT = resolve(import.meta.dirname, "../..");
const LIST = join(import.meta.dirname, "seen-calls.json");
const WHOLE = [
  "test/{e2e,conformance}/*.test.ts",
  "test/cli/{operating,steps}.test.ts",
  "test/faults/{cancel,repeats,outage,kill-points}.test.ts",
];

/** Runs a file of tests, and gives what functions were seen to ask for. */
async function callsDuring(test: string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-seen-"));
  const file = join(folder, "calls");
  try {
    const env = { ...process.env, [SEEN_CALLS_FILE]: file };
    const tests = spawn(process.execPath, ["test/run.ts", test], { cwd: ROOT, stdio: ["ignore", 2, 2], env });
    const [code] = await once(tests, "exit");
    if (code !== 0) throw new Error(`${test} fails; what it has seen is not written down`);
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** With further calls, a line each: the function's name, a tab, the call. */
function withLines(calls: Calls, lines: readonly string[]): Calls {
  const all: Record<string, readonly string[]> = { ...calls };
  for (const line of lines) {
    const [name = "", call = ""] = line.split("\t");
    // An agent's own function is of the same kind as the others'.
    const kind = name.split("-")[0] ?? "";
    all[kind] = [...new Set([...(all[kind] ?? []), call])].sort();
  }
  return Object.fromEntries(Object.entries(all).sort());
}

const known = z.record(z.string(), z.array(z.string()));
const write = (calls: Calls) => writeFileSync(LIST, `${JSON.stringify(calls, null, 2)}\n`);

const asked = process.argv.slice(2);
const whole = asked.length === 0;
if (whole) write({});
for (const test of whole ? globSync(WHOLE, { cwd: ROOT }).sort() : asked) {
  const lines = await callsDuring(test);
  write(withLines(known.parse(JSON.parse(readFileSync(LIST, "utf8"))), lines));
}
