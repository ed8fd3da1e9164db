/**
 * Writes test/infra/seen-calls.json anew: runs the end-to-end tests and notes what each function asks AWS for
 * (`npm run seen-calls`). Those that stand between the functions and AWS themselves are not looked at. Only what differs
 * from the run before is worth a look: a call that is no longer seen.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { SEEN_CALLS_FILE } from "../support/seen-calls.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const LIST = join(import.meta.dirname, "seen-calls.json");

const folder = mkdtempSync(join(tmpdir(), "sluice-seen-"));
const file = join(folder, "calls");
const tests = spawn(
  process.execPath,
  ["test/run.ts", ...globSync("test/{e2e,conformance}/*.test.ts", { cwd: ROOT }).sort()],
  {
    cwd: ROOT,
    stdio: ["ignore", 2, 2],
    env: { ...process.env, [SEEN_CALLS_FILE]: file },
  },
);
const [code] = await once(tests, "exit");
const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
rmSync(folder, { recursive: true });
if (code !== 0) throw new Error("the end-to-end tests fail; what they have seen is not written down");

const calls: Record<string, string[]> = {};
for (const line of [...new Set(lines)].sort()) {
  const [name = "", call = ""] = line.split("\t");
  // An agent's own function is of the same kind as the others'.
  const kind = name.split("-")[0] ?? "";
  calls[kind] = [...new Set([...(calls[kind] ?? []), call])].sort();
}
writeFileSync(LIST, `${JSON.stringify(calls, null, 2)}\n`);
