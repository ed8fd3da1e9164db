/**
 * Runs the tests: `npm test`, or `npm test -- test/wire/*.test.ts` for some of them. What they need is brought first,
 * with visible progress: a nats-server, and the assembly of the test deployment.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { findNatsServer } from "../infra/local/nats-server.ts";
import { synthesize } from "../infra/synth.ts";

/** End-to-end files run a whole deployment each; two at a time is what two cores take. */
const CONCURRENCY = 2;
/** Several times what all of them take: a process that never ends must not hold up whoever waits. */
const MAX_MINUTES = 30;
const ROOT = resolve(import.meta.dirname, "..");
/** What Node has compiled, for the hundreds of its processes that follow. */
const COMPILED = join(ROOT, ".cache/test-compiled");
const DEPLOYMENT = join(ROOT, "test/fixtures/deployment");

const say = (text: string) => process.stderr.write(`${text}\n`);

const binary = await findNatsServer(say);
say("synthesizing the test deployment …");
await synthesize({
  agentsDir: join(DEPLOYMENT, "agents"),
  agentsYaml: join(DEPLOYMENT, "agents.yaml"),
  outDir: join(ROOT, ".cache/test-assembly"),
});

const reporters = ["spec", join(import.meta.dirname, "slowest.ts")].flatMap((reporter) => [
  `--test-reporter=${reporter}`,
  "--test-reporter-destination=stdout",
]);
const asked = process.argv.slice(2);
// Tests also load what they have written into folders of their own: that is not kept for ever.
if (asked.length === 0) rmSync(COMPILED, { recursive: true, force: true });
const files = asked.length > 0 ? asked : globSync("test/**/*.test.ts", { cwd: ROOT }).sort();
const tests = spawn(
  process.execPath,
  ["--test", `--test-concurrency=${CONCURRENCY}`, ...reporters, ...files],
  {
    cwd: ROOT,
    stdio: "inherit",
    env: { ...process.env, NATS_SERVER_BIN: binary, NODE_COMPILE_CACHE: COMPILED },
  },
);
const late = setTimeout(() => {
  say(`the tests have not ended within ${MAX_MINUTES} minutes: a test file keeps its process alive`);
  tests.kill("SIGKILL");
}, MAX_MINUTES * 60_000);
const [code] = await once(tests, "exit");
clearTimeout(late);
process.exitCode = code ?? 1;
