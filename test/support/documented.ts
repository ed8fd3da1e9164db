import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Usage } from "./meter.ts";

const PAGE = resolve(import.meta.dirname, "../../docs/table.md");

/** What docs/table.md says that something costs at the table. */
export type Documented = Pick<Usage, "requests" | "writes" | "reads">;

/** The rows of docs/table.md that give requests, write units and read units, by what they speak of. */
export function documentedCosts(): ReadonlyMap<string, Documented> {
  const costs = new Map<string, Documented>();
  for (const line of readFileSync(PAGE, "utf8").split("\n")) {
    const [, what, ...cells] = line.split("|").map((cell) => cell.trim());
    const [requests, writes, reads] = cells.map((cell) => (cell === "" ? Number.NaN : Number(cell)));
    if (what === undefined || reads === undefined || [requests, writes, reads].some(Number.isNaN)) continue;
    costs.set(what, { requests: requests ?? 0, writes: writes ?? 0, reads });
  }
  return costs;
}
