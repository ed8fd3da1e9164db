/**
 * Writes `docs/proof.md` and its plots from what the last runs have left below `.cache`: `npm run report`. It runs
 * nothing itself.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import * as z from "zod";
import { RESULTS, type Recorded, recorded } from "../bench/recording.ts";
import { readOptions } from "../support/options.ts";
import { checkSections } from "./checks.ts";
import { markdownTable } from "./markdown.ts";
import { plotsOf } from "./plots.ts";
import { regressionSection } from "./regressions.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const PROOF = join(ROOT, "docs/proof.md");
const PLOTS = join(ROOT, "docs/plots");

const TITLES: readonly (readonly [name: string, title: string])[] = [
  ["floor", "The floor"],
  ["latency", "Latency"],
  ["tasks", "What a task costs"],
  ["steps", "Steps"],
  ["engines", "Other engines, on this machine"],
  ["cold", "Cold starts"],
  ["growth", "Growth"],
  ["profile", "Where the time goes"],
];

readOptions(z.object({}), {});
const runs = new Map(
  (existsSync(RESULTS) ? readdirSync(RESULTS) : [])
    .filter((file) => file.endsWith(".json"))
    .map((file) => recorded.parse(JSON.parse(readFileSync(join(RESULTS, file), "utf8"))))
    .map((run) => [run.name, run] as const),
);

const lines = [
  "# Proof",
  "",
  "Written by `npm run report` from the last runs on one machine; do not edit it. What the benchmarks measure and how to",
  "read them is in [benchmarks.md](benchmarks.md).",
  "",
  ...checkSections(join(ROOT, ".cache")),
  ...regressionSection(),
  "## Benchmarks",
  "",
  ...TITLES.flatMap(([name, title]) => section(title, name, runs.get(name))),
];
writeFileSync(PROOF, `${lines.join("\n").trimEnd()}\n`);
console.log(`written: ${PROOF}`);

function section(title: string, name: string, run: Recorded | undefined): string[] {
  const head = [`### ${title}`, ""];
  const repeat = ["```sh", run?.command ?? `npm run bench -- ${name}`, "```", ""];
  if (run === undefined) return [...head, "Not run on this machine.", "", ...repeat];
  const { machine, at, tables, notes } = run;
  const versions = Object.entries(machine.versions).map(([part, version]) => `${part} ${version}`);
  return [
    ...head,
    `${at.slice(0, 16)} UTC, ${machine.cpus}, ${machine.memoryGib} GiB, ${machine.system}; ${versions.join(", ")}; ` +
      `load average before it ${machine.loadBefore.toFixed(1)}.`,
    "",
    ...tables.flatMap((table) => [...markdownTable(table.head, table.rows), ""]),
    ...plotsOf(run).flatMap(({ title: plot, svg }) => {
      mkdirSync(PLOTS, { recursive: true });
      writeFileSync(join(PLOTS, `${plot}.svg`), svg);
      return [`![${title}](plots/${plot}.svg)`, ""];
    }),
    ...notes.flatMap((note) => [note, ""]),
    ...repeat,
  ];
}
