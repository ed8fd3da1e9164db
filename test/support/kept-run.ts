import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const CACHE = resolve(import.meta.dirname, "../../.cache");

/**
 * Leaves what a run has shown for `npm run report`, in the place of an earlier run of the same name.
 *
 * @param folder below `.cache`: the kind of run
 * @returns the file
 */
export function keepRun(folder: string, name: string, facts: Readonly<Record<string, unknown>>): string {
  mkdirSync(join(CACHE, folder), { recursive: true });
  const kept = { at: new Date().toISOString(), ...facts };
  const file = join(CACHE, folder, `${name}.json`);
  writeFileSync(file, `${JSON.stringify(kept, null, 2)}\n`);
  return file;
}
