import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { type Cell, markdownTable } from "./markdown.ts";

type Row = Readonly<Record<string, Cell>>;

/** What finds faults rather than figures, and leaves a file for each of its runs. */
interface Check {
  readonly title: string;
  /** Below `.cache`. */
  readonly folder: string;
  readonly what: string;
  readonly repeat: string;
  /** The row of a run; nothing for one that is not told. */
  readonly row: (run: unknown) => Row | undefined;
  /** Columns that are added up in a last row. */
  readonly sums?: readonly string[];
}

/** Shorter fault runs are those of `npm test`. */
const MIN_FAULTS_MS = 60_000;
/** What the adversary notes without having done it. */
const NOTES = /^(left out|trouble told|message given back)/;

const at = z.string().transform((text) => text.slice(0, 16));
const faultRun = z.object({
  at: at.default(""),
  seed: z.int(),
  lengthMs: z.number(),
  tookMs: z.number(),
  tasks: z.int(),
  kills: z.int(),
  toll: z.record(z.string(), z.number()),
  late: z.array(z.unknown()),
  dead: z.array(z.unknown()),
  violations: z.array(z.unknown()),
});
const simulation = z.object({
  at,
  seed: z.int(),
  threads: z.int(),
  histories: z.int(),
  steps: z.int(),
  seconds: z.number(),
  broken: z.string().optional(),
});
const mutation = z.object({
  at,
  name: z.string(),
  invariant: z.string().optional(),
  histories: z.int(),
  seconds: z.number(),
});
const model = z.object({ at, seed: z.int(), what: z.string(), outcome: z.string() });

const CHECKS: readonly Check[] = [
  {
    title: "## Faults",
    folder: "faults",
    what:
      "The whole product on real parts, while processes are killed and frozen and answers dropped, delayed and repeated; " +
      "at the end a ledger of what was published is compared with what came back ([faults.md](faults.md)).",
    repeat: "npm run faults -- --minutes 6 --seed N",
    row: (run) => {
      const of = faultRun.parse(run);
      if (of.lengthMs < MIN_FAULTS_MS) return undefined;
      const toll = Object.entries(of.toll).filter(([kind]) => !NOTES.test(kind));
      return {
        when: of.at,
        seed: of.seed,
        minutes: of.lengthMs / 60_000,
        tasks: of.tasks,
        kills: of.kills,
        "other faults": toll.reduce((sum, [, count]) => sum + count, 0) - of.kills,
        "runs after a lost claim": of.late.length,
        "dead letters, explained": of.dead.length,
        violations: of.violations.length,
        "s in all": Math.round(of.tookMs / 1_000),
      };
    },
    sums: ["tasks", "kills", "other faults", "violations"],
  },
  {
    title: "## Simulation",
    folder: "simulation",
    what: "The functions over simulated parts, every interleaving and fault chosen by a seed ([simulation.md](simulation.md)).",
    repeat: "npm run simulate -- --minutes 10",
    row: (run) => {
      const of = simulation.parse(run);
      return {
        when: of.at,
        seed: of.seed,
        threads: of.threads,
        histories: of.histories,
        "things that happened": of.steps,
        seconds: Math.round(of.seconds),
        "a second": Math.round(of.histories / of.seconds),
        broken: of.broken ?? "nothing",
      };
    },
  },
  {
    title: "### Mutations",
    folder: "mutations",
    what: "Faults that are put into a copy of the functions one at a time, and which invariant the simulation then finds broken.",
    repeat: "npm run mutations",
    row: (run) => {
      const { at: when, name, invariant = "NOT CAUGHT", histories, seconds } = mutation.parse(run);
      return { mutation: name, breaks: invariant, histories, seconds, when };
    },
  },
  {
    title: "## Model",
    folder: "model",
    what: "The protocol of admission, claim, commit and publishing as a Quint specification, and its invariants ([model.md](model.md)).",
    repeat: "npm run model\nnpm run model -- --mutations",
    row: (run) => {
      const { at: when, seed, what, outcome } = model.parse(run);
      return { when, seed, "what was run": what, outcome };
    },
  },
];

/**
 * Sections about these; of one that has left no file, that it has not.
 *
 * @throws ZodError when a file is none that its program has left
 */
export function checkSections(cache: string): string[] {
  return CHECKS.flatMap((check) => [
    check.title,
    "",
    check.what,
    "",
    ...runsIn(join(cache, check.folder), check),
    "",
    "```sh",
    ...check.repeat.split("\n"),
    "```",
    "",
  ]);
}

function runsIn(folder: string, { row, sums }: Check): string[] {
  const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
  const rows = files
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
    .map((file) => row(JSON.parse(readFileSync(join(folder, file), "utf8"))))
    .filter((of) => of !== undefined);
  const [first] = rows;
  if (first === undefined)
    return ["Not run on this machine: there is no file of a run, and so no figures here."];
  const columns = Object.keys(first);
  if (sums !== undefined && rows.length > 1) rows.push(sumOf(rows, columns, sums));
  return markdownTable(
    columns,
    rows.map((of) => columns.map((column) => of[column] ?? "")),
  );
}

function sumOf(rows: readonly Row[], columns: readonly string[], sums: readonly string[]): Row {
  const sum = (column: string) => rows.reduce((total, row) => total + Number(row[column]), 0);
  const cells = columns.map((column, i) => [
    column,
    sums.includes(column) ? sum(column) : i === 0 ? "all" : "",
  ]);
  return Object.fromEntries(cells);
}
