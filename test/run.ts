/**
 * Runs the tests: `npm test`, or `npm test -- test/wire/*.test.ts` for some of them (docs/testing.md). What they need is
 * brought first, with visible progress: a nats-server, and the assembly of the test deployment.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, rmSync } from "node:fs";
import { setPriority } from "node:os";
import { join, matchesGlob, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { findNatsServer } from "../infra/local/nats-server.ts";
import { synthesize } from "../infra/synth.ts";

/** End-to-end files run a whole deployment each; two at a time is what two cores take. */
const CONCURRENCY = 2;
/**
 * What has time: files that mostly wait for real time to pass, and such as compute without anything running meanwhile.
 * They run one after the other beside all others, on what those leave of the processors, or a third of that would be
 * idle. None of them kills what must come back within a lease.
 */
const PATIENT = [
  "test/cli/dead.test.ts",
  "test/e2e/cards.test.ts",
  "test/functions/bridge/{bridge,bridge-trouble,handover,service}.test.ts",
  "test/functions/cards/remotes.test.ts",
  "test/functions/work/slots.test.ts",
  "test/http/answers.test.ts",
  "test/infra/*.test.ts",
  "test/local/{event-source,file-trouble,function-pool,host}.test.ts",
  "test/local/metrics/host.test.ts",
  "test/model/*.test.ts",
  "test/nats/{connect,messenger}.test.ts",
  "test/simulation/*.test.ts",
  "test/steps/{kill-points,large}.test.ts",
  "test/tasks/*.contract.test.ts",
];
/** How nice they are to the others (setpriority(2)). */
const NICE = 5;
/** Several times what all of them take: a process that never ends must not hold up whoever waits. */
const MAX_MINUTES = 30;
const ROOT = resolve(import.meta.dirname, "..");
/** What Node has compiled, for the hundreds of its processes that follow. */
const COMPILED = join(ROOT, ".cache/test-compiled");
const DEPLOYMENT = join(ROOT, "test/fixtures/deployment");

const say = (line: string) => process.stderr.write(`${line}\n`);

const binary = await findNatsServer(say);
say("synthesizing the test deployment …");
await synthesize({
  agentsDir: join(DEPLOYMENT, "agents"),
  agentsYaml: join(DEPLOYMENT, "agents.yaml"),
  outDir: join(ROOT, ".cache/test-assembly"),
});

const asked = process.argv.slice(2);
const running: ChildProcess[] = [];
const late = setTimeout(() => {
  say(`the tests have not ended within ${MAX_MINUTES} minutes: a test file keeps its process alive`);
  for (const child of running) child.kill("SIGKILL");
}, MAX_MINUTES * 60_000);
process.exitCode = asked.length > 0 ? await codeOf(start(asked, CONCURRENCY, "inherit")) : await allTests();
clearTimeout(late);

/** All files. What the patient have to tell comes last, in one piece. */
async function allTests(): Promise<number> {
  // Tests also load what they have written into folders of their own: that is not kept for ever.
  rmSync(COMPILED, { recursive: true, force: true });
  const files = globSync("test/**/*.test.ts", { cwd: ROOT }).sort();
  const gone = PATIENT.filter((pattern) => !files.some((file) => matchesGlob(file, pattern)));
  if (gone.length > 0) throw new Error(`test/run.ts: there is no ${gone.join(", ")}`);
  const isPatient = (file: string) => PATIENT.some((pattern) => matchesGlob(file, pattern));
  const patient = start(files.filter(isPatient), 1, "pipe");
  if (patient.pid !== undefined) setPriority(patient.pid, NICE);
  const told = patient.stdout ? text(patient.stdout) : "";
  const others = start(
    files.filter((file) => !isPatient(file)),
    CONCURRENCY,
    "inherit",
  );
  const codes = await Promise.all([codeOf(others), codeOf(patient)]);
  process.stdout.write(await told);
  return codes.find((code) => code !== 0) ?? 0;
}

/** Starts test files, so many at a time. */
function start(files: readonly string[], concurrency: number, stdout: "inherit" | "pipe"): ChildProcess {
  const reporters = ["spec", join(import.meta.dirname, "slowest.ts")].flatMap((reporter) => [
    `--test-reporter=${reporter}`,
    "--test-reporter-destination=stdout",
  ]);
  const child = spawn(
    process.execPath,
    ["--test", `--test-concurrency=${concurrency}`, ...reporters, ...files],
    {
      cwd: ROOT,
      stdio: ["inherit", stdout, "inherit"],
      env: { ...process.env, NATS_SERVER_BIN: binary, NODE_COMPILE_CACHE: COMPILED },
    },
  );
  running.push(child);
  return child;
}

async function codeOf(child: ChildProcess): Promise<number> {
  const [code] = await once(child, "exit");
  return code ?? 1;
}
