/**
 * Runs every function under AWS's own runtime interface client (`npm run conformance`), which it installs first: into
 * the user's cache, never into the dependencies.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { installRic, missingPackages, ricMain } from "./ric.ts";

const say = (text: string) => process.stderr.write(`${text}\n`);

if (ricMain() === undefined) {
  const missing = missingPackages();
  if (missing.length > 0) {
    say(`aws-lambda-ric compiles when it is installed, and this machine lacks: ${missing.join(", ")}`);
    say(`on Debian: apt-get install ${missing.join(" ")}`);
    process.exit(1);
  }
  say("installing aws-lambda-ric; it compiles for some minutes …");
  await installRic();
}
const tests = spawn(process.execPath, ["test/run.ts", "test/conformance/functions.test.ts"], {
  cwd: join(import.meta.dirname, "../.."),
  stdio: "inherit",
});
const [code] = await once(tests, "exit");
process.exitCode = code ?? 1;
