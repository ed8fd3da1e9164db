import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import * as z from "zod";
import { digestOf, type Regression } from "./regressions.ts";

/** Where the last run of each fault is left, for `npm run report`. */
const SEEN = resolve(import.meta.dirname, "../../.cache/regressions");

const seen = z.object({
  name: z.string(),
  at: z.iso.datetime(),
  /** Of the patch that was applied. */
  digest: z.string(),
  verdict: z.enum(["fails", "PASSES", "UNEXPECTED", "NOT RUN"]),
  why: z.string(),
  seconds: z.number(),
});

/** How a fault's test came out with the fault brought back. */
export type Seen = z.infer<typeof seen>;

/** Keeps it until the next run. */
export function keep(run: Seen, folder = SEEN): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${run.name}.json`), `${JSON.stringify(run, null, 2)}\n`);
}

/** The last run with the patch as it is now. */
export function lastSeen(regression: Pick<Regression, "name" | "path">, folder = SEEN): Seen | undefined {
  const file = join(folder, `${regression.name}.json`);
  if (!existsSync(file)) return undefined;
  const last = seen.parse(JSON.parse(readFileSync(file, "utf8")));
  return last.digest === digestOf(regression) ? last : undefined;
}
