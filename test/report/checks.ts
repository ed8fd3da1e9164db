import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { markdownTable } from "./markdown.ts";

/** What finds faults rather than figures, and leaves a file for each of its runs. */
interface Check {
  readonly title: string;
  /** Below `.cache`. */
  readonly folder: string;
  readonly what: string;
  readonly repeat: string;
}

const CHECKS: readonly Check[] = [
  {
    title: "Faults",
    folder: "faults",
    what:
      "The whole product on real parts, while processes are killed and frozen and answers dropped, delayed and repeated; " +
      "at the end a ledger of what was published is compared with what came back.",
    repeat: "npm run faults -- --minutes 6 --seed N",
  },
  {
    title: "Simulation",
    folder: "simulation",
    what: "The functions over simulated parts, every interleaving and fault chosen by a seed; and the changes that it must catch.",
    repeat: "npm run simulate -- --minutes 10",
  },
  {
    title: "Model",
    folder: "model",
    what: "The protocol of admission, claim, commit and publishing as a Quint specification, and its invariants.",
    repeat: "npm test -- test/model/model.test.ts",
  },
];

const MAX_COLUMNS = 10;
const run = z.record(z.string(), z.unknown());

/** Sections about these; of one that has left no file, that it has not. */
export function checkSections(cache: string): string[] {
  return CHECKS.flatMap(({ title, folder, what, repeat }) => [
    `## ${title}`,
    "",
    what,
    "",
    ...runsIn(join(cache, folder)),
    "",
    "```sh",
    repeat,
    "```",
    "",
  ]);
}

function runsIn(folder: string): string[] {
  const files = existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith(".json"))
        .sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
    : [];
  if (files.length === 0)
    return ["Not run on this machine: there is no file of a run, and so no figures here."];
  const rows = files.map((name) => {
    const file = join(folder, name);
    const when = statSync(file).mtime.toISOString().slice(0, 16);
    return {
      file: name.replace(/\.json$/, ""),
      when,
      ...factsOf(run.parse(JSON.parse(readFileSync(file, "utf8")))),
    };
  });
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, MAX_COLUMNS);
  return markdownTable(
    columns,
    rows.map((row) => columns.map((column) => new Map(Object.entries(row)).get(column) ?? "")),
  );
}

const small = z.union([
  z.string().max(60),
  z.number(),
  z.boolean().transform((value) => (value ? "yes" : "no")),
]);
const counts = z.record(z.string(), z.number());

/** What can stand in a table: single values; of a list its length, of counts each by name. */
function factsOf(of: Record<string, unknown>): Record<string, string | number> {
  const facts: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(of)) {
    const single = small.safeParse(value);
    const counted = counts.safeParse(value);
    if (single.success) facts[name] = single.data;
    else if (Array.isArray(value)) facts[name] = value.length;
    else if (counted.success)
      facts[name] = Object.entries(counted.data)
        .map(([what, count]) => `${count} ${what}`)
        .join(", ");
  }
  return facts;
}
