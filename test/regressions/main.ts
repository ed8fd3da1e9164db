/**
 * Shows that no mend goes unnoticed when it is lost: `npm run regressions -- [NAME …] [--quick]` sees the tests of the
 * faults that were found pass, then brings back one fault at a time, in a copy of the project, and sees its test fail;
 * see docs/regressions.md.
 */
import * as z from "zod";
import { findNatsServer } from "../../infra/local/nats-server.ts";
import { orRefuse, readOptions } from "../support/options.ts";
import { inCopy } from "../support/patches.ts";
import { digestOf, type Regression, readRegressions } from "./regressions.ts";
import { type Ended, runTests } from "./run-tests.ts";
import { keep, type Seen } from "./seen.ts";

const MAX_WHY = 70;

const say = (text: string) => process.stdout.write(`${text}\n`);

const { options, names } = readOptions(
  z.object({ quick: z.boolean().default(false) }),
  { quick: { type: "boolean" } },
  true,
);
const regressions = orRefuse("NAME", () => readRegressions(names));
process.env.NATS_SERVER_BIN = await findNatsServer(say);
const broken = options.quick ? new Set<string>() : await failingAnyway(regressions);
let failed = 0;
for (const [index, regression] of regressions.entries()) {
  const seen = await see(regression, broken.has(regression.name));
  keep(seen);
  if (seen.verdict === "fails") failed++;
  say(`${`${index + 1}/${regressions.length}`.padStart(6)}  ${row(seen)}`);
}
say(`${failed} of ${regressions.length} tests fail without the mend that they are of`);
if (failed < regressions.length) process.exitCode = 1;

/** The faults whose tests do not pass with the mend either: they show nothing. */
async function failingAnyway(all: readonly Regression[]): Promise<Set<string>> {
  const failing = new Set<string>();
  const files = Map.groupBy(all, ({ file }) => file);
  say(`the tests as they are, in ${files.size} files:`);
  await inCopy(undefined, async (copy) => {
    for (const [file, of] of files) {
      // On a busy machine a test may be late, so those that fail have another chance.
      const bad = await failingOf(copy, file, await failingOf(copy, file, of));
      for (const { name } of bad) failing.add(name);
      say(`${(bad.length === 0 ? "pass" : "FAIL").padStart(6)}  ${file}`);
    }
  });
  return failing;
}

async function failingOf(copy: string, file: string, of: readonly Regression[]): Promise<Regression[]> {
  if (of.length === 0) return [];
  const titles = of.map(({ title }) => title);
  const ended = await runTests(copy, file, titles);
  return of.filter(({ title }) => ended.get(title)?.kind !== "passed");
}

/** Brings a fault back, and sees what its test says. */
async function see(regression: Regression, isBroken: boolean): Promise<Seen> {
  const { name, file, title, error } = regression;
  const started = performance.now();
  const ended = await inCopy(regression, (copy) => runTests(copy, file, [title]));
  const end = ended.get(title);
  return {
    name,
    at: new Date().toISOString(),
    digest: digestOf(regression),
    verdict: isBroken ? "UNEXPECTED" : verdictOf(end, error),
    why: isBroken ? "it fails with the mend, too" : whyOf(end),
    seconds: Math.round((performance.now() - started) / 100) / 10,
  };
}

function verdictOf(end: Ended | undefined, error: string | undefined): Seen["verdict"] {
  if (end?.kind === "passed") return "PASSES";
  if (end?.kind !== "failed") return "NOT RUN";
  return end.plainly || (error !== undefined && end.why.includes(error)) ? "fails" : "UNEXPECTED";
}

function whyOf(end: Ended | undefined): string {
  return end?.kind === "failed" ? end.why : "";
}

function row({ verdict, name, seconds, why }: Seen): string {
  const line = why.replaceAll(/\s+/g, " ");
  const short = line.length > MAX_WHY ? `${line.slice(0, MAX_WHY - 1)}…` : line;
  return [verdict.padEnd(10), name.padEnd(32), `${seconds.toFixed(1)} s`.padStart(8), short].join("  ");
}
