import { table } from "../../cli/table.ts";

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
