import { readFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { join, resolve } from "node:path";
import * as z from "zod";
import { table } from "../../cli/table.ts";

const ROOT = resolve(import.meta.dirname, "../..");

/** Says what is being done, beside the tables. */
export const say = (text: string): void => void process.stderr.write(`${text}\n`);

/** Prints a table; columns of numbers to the right. */
export function print(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  const cells = [
    [...head],
    ...rows.map((row) => row.map((cell) => (typeof cell === "number" ? short(cell) : cell))),
  ];
  const widths = head.map((_, column) =>
    rows.every((row) => typeof row[column] === "number" || row[column] === "")
      ? Math.max(...cells.map((row) => row[column]?.length ?? 0))
      : 0,
  );
  const [first = [], ...rest] = cells.map((row) =>
    row.map((cell, column) => cell.padStart(widths[column] ?? 0)),
  );
  console.log(`\n${table(first, rest).join("\n")}`);
}

/** A number with as many digits as tell something. */
export function short(value: number): string {
  if (value >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return value.toFixed(value < 0.1 ? 3 : value < 10 ? 2 : 1);
}

/** The value below which a share of them lies (nearest rank). */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** When, on what machine and with which versions it is measured. */
export function header(nats: string | undefined): void {
  const [cpu] = cpus();
  console.log(new Date().toISOString());
  console.log(
    `${cpus().length} × ${cpu?.model ?? "unknown"}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()}`,
  );
  // Where others compute too, times are theirs as well.
  console.log(`load average ${short(loadavg()[0] ?? Number.NaN)} before it began`);
  const parts = [version("@dynoxide/linux-x64"), version("fauxqs")];
  console.log(`Node.js ${process.versions.node}, nats-server ${nats ?? "unknown"}, ${parts.join(", ")}`);
}

function version(name: string): string {
  const file = join(ROOT, "node_modules", name, "package.json");
  return `${name} ${z.object({ version: z.string() }).parse(JSON.parse(readFileSync(file, "utf8"))).version}`;
}
