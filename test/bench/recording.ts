import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { join, resolve } from "node:path";
import * as z from "zod";
import { print, short } from "./print.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** Where each program leaves what it has measured last, for `npm run report`. */
export const RESULTS = process.env.BENCH_RESULTS ?? join(ROOT, ".cache/bench");

const cell = z.union([z.string(), z.number().nullable()]);
const point = z.object({ x: z.number(), y: z.number().nullable() });

/** What a program has measured, as it is kept. */
export const recorded = z.object({
  name: z.string(),
  command: z.string(),
  at: z.string(),
  machine: z.object({
    cpus: z.string(),
    memoryGib: z.number(),
    system: z.string(),
    loadBefore: z.number(),
    versions: z.record(z.string(), z.string()),
  }),
  tables: z.array(z.object({ head: z.array(z.string()), rows: z.array(z.array(cell)) })),
  notes: z.array(z.string()),
  /** Single figures by name, by which others can compare runs. */
  figures: z.record(z.string(), z.number().nullable()),
  series: z.array(z.object({ plot: z.string(), name: z.string(), points: z.array(point) })),
});
export type Recorded = z.infer<typeof recorded>;

type Row = readonly (string | number)[];

/** One run of a program: prints what is measured as it comes, and keeps it. */
export class Recording {
  readonly #kept: Recorded;

  /**
   * Says when, on what machine and with which versions it is measured.
   *
   * @param nats the version of nats-server, where it takes part
   */
  constructor(name: string, nats?: string) {
    const [cpu] = cpus();
    this.#kept = {
      name,
      command: `npm run bench -- ${process.argv.slice(2).join(" ") || name}`,
      at: new Date().toISOString(),
      machine: {
        cpus: `${cpus().length} × ${cpu?.model.trim() ?? "unknown"}`,
        memoryGib: Math.round(totalmem() / 2 ** 30),
        system: `${type()} ${release()}`,
        loadBefore: loadavg()[0] ?? Number.NaN,
        versions: {
          "Node.js": process.versions.node,
          ...(nats === undefined ? {} : { "nats-server": nats }),
          dynoxide: versionOf("@dynoxide/linux-x64"),
          fauxqs: versionOf("fauxqs"),
        },
      },
      tables: [],
      notes: [],
      figures: {},
      series: [],
    };
    const { at, machine } = this.#kept;
    console.log(at);
    console.log(`${machine.cpus}, ${machine.memoryGib} GiB, ${machine.system}`);
    // Where others compute too, times are theirs as well.
    console.log(`load average ${short(machine.loadBefore)} before it began`);
    console.log(
      Object.entries(machine.versions)
        .map(([part, version]) => `${part} ${version}`)
        .join(", "),
    );
  }

  /** A table; columns of numbers to the right. */
  table(head: readonly string[], rows: readonly Row[]): void {
    print(head, rows);
    this.#kept.tables.push({ head: [...head], rows: rows.map((row) => [...row]) });
  }

  /** What is to be known of the figures. */
  note(text: string): void {
    console.log(`\n${text}`);
    this.#kept.notes.push(text);
  }

  figure(name: string, value: number): void {
    this.#kept.figures[name] = value;
  }

  /** A line of a plot. */
  line(plot: string, name: string, points: readonly { readonly x: number; readonly y: number }[]): void {
    this.#kept.series.push({ plot, name, points: [...points] });
  }

  /** Keeps what was measured in place of the last run's. */
  save(): void {
    mkdirSync(RESULTS, { recursive: true });
    writeFileSync(join(RESULTS, `${this.#kept.name}.json`), `${JSON.stringify(this.#kept, null, 2)}\n`);
  }
}

function versionOf(name: string): string {
  const file = join(ROOT, "node_modules", name, "package.json");
  return z.object({ version: z.string() }).parse(JSON.parse(readFileSync(file, "utf8"))).version;
}
