import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import * as z from "zod";
import { oursOf } from "./engines/ours.ts";
import { median, percentile, say } from "./print.ts";
import { Recording } from "./recording.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** They are installed here when they are to be measured, and are no dependencies of ours. */
const FOLDER = join(ROOT, ".cache/bench-engines");
const PACKAGES = {
  "@aws/durable-execution-sdk-js": "2",
  "@aws/durable-execution-sdk-js-testing": "1",
  "@restatedev/restate-sdk": "1",
  "@restatedev/restate-server": "1",
} as const;
const WITHIN_MS = 100_000;

/** What one engine took for the handlers that all have run, in milliseconds. */
const measured = z.object({
  step: z.array(z.number()),
  parallel: z.number().nullable(),
  /** From the handler's call to the last stored step, after a suspension. */
  replay: z.number().nullable(),
  /** What it could not do. */
  said: z.array(z.string()),
});
export type Measured = z.infer<typeof measured>;

/** What the handlers do. */
export interface Work {
  readonly steps: number;
  readonly parallel: number;
  readonly stored: number;
}

/** The same handlers on Sluice's engine, the AWS durable execution SDK's local runner, and Restate's server. */
export async function benchEngines(work: Work): Promise<void> {
  const out = new Recording("engines");
  install();
  const versions = Object.fromEntries(Object.keys(PACKAGES).map((name) => [name, versionOf(name)]));
  const engines: { readonly name: string; readonly of: Measured }[] = [];
  say("Sluice …");
  engines.push({ name: "Sluice: engine, dynoxide over SQLite", of: await oursOf(work) });
  for (const [name, file] of [
    [
      `AWS durable execution SDK ${versions["@aws/durable-execution-sdk-js"]}: local runner, in memory`,
      "durable",
    ],
    [`Restate ${versions["@restatedev/restate-server"]}: server, on disk`, "restate"],
  ] as const) {
    say(`${name} …`);
    engines.push({ name, of: run(file, work) });
  }
  const { steps, parallel, stored } = work;
  const known = (value: number | null) => value ?? "";
  out.table(
    [
      "ENGINE",
      `A STEP OF ${steps}, MS`,
      "P95",
      `${parallel} AT ONCE, MS`,
      `${stored} STORED, AGAIN, MS`,
      "EACH, µS",
    ],
    engines.map(({ name, of }) => [
      name,
      of.step.length === 0 ? "" : median(of.step),
      of.step.length === 0 ? "" : percentile(of.step, 0.95),
      known(of.parallel),
      known(of.replay),
      of.replay === null ? "" : (of.replay * 1_000) / stored,
    ]),
  );
  for (const { name, of } of engines) for (const said of of.said) out.note(`${name}: ${said}`);
  out.note(
    "All on this machine, one after the other, with the same handlers. They do not keep the same promises here: the " +
      "local runner keeps its checkpoints in memory and is a tool for tests; Restate's server writes its log to disk, " +
      "and serves the handler over a stream that stays open; Sluice puts an item into a table's stand-in for each step. " +
      "Stored steps: from the call of the handler after a suspension until it has gone through all of them; what reads " +
      "them before that call is in none of the figures.",
  );
  out.save();
}

/** From the npm registry, without their install scripts. */
function install(): void {
  if (Object.keys(PACKAGES).every((name) => existsSync(join(FOLDER, "node_modules", name)))) return;
  say(`installing ${Object.keys(PACKAGES).join(", ")} into ${FOLDER} …`);
  mkdirSync(FOLDER, { recursive: true });
  const manifest = { private: true, type: "module", dependencies: PACKAGES };
  writeFileSync(join(FOLDER, "package.json"), JSON.stringify(manifest));
  const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"];
  const { status, stderr } = spawnSync("npm", args, { cwd: FOLDER, encoding: "utf8" });
  if (status !== 0) throw new Error(`the engines could not be installed: ${stderr}`);
}

function versionOf(name: string): string {
  const file = join(FOLDER, "node_modules", name, "package.json");
  return z.object({ version: z.string() }).parse(JSON.parse(readFileSync(file, "utf8"))).version;
}

/** Runs an engine's program where its packages are; the last line that it prints is what it has measured. */
function run(name: "durable" | "restate", work: Work): Measured {
  const file = `${name}.mjs`;
  copyFileSync(join(import.meta.dirname, "engines", file), join(FOLDER, file));
  const options = { cwd: FOLDER, encoding: "utf8", timeout: WITHIN_MS, maxBuffer: 2 ** 26 } as const;
  const { stdout, stderr, status } = spawnSync(process.execPath, [file, JSON.stringify(work)], options);
  const last = stdout.trimEnd().split("\n").at(-1) ?? "";
  if (status === 0) return measured.parse(JSON.parse(last));
  const said = `its program has not ended as it should (${status ?? "too late"}): ${stderr.slice(-300)}`;
  return { step: [], parallel: null, replay: null, said: [said] };
}
