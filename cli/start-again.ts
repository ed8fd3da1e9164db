import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { shellQuoted } from "./repeat.ts";
import { cleanLine } from "./text.ts";

export const USUAL_START = "npm start";

/** What the host writes down when it is up, and leaves there (infra/local/main.ts). */
const lastStart = z.object({ arguments: z.array(z.string().max(4_096)).max(100) });

/**
 * The command that starts the local host as it was last started on a data folder; where that is not known the usual
 * one.
 *
 * @param named whether the folder is another than the usual one, so that it must be named
 */
export function startCommand(dataDir: string, named: boolean): string {
  const args = lastArguments(dataDir) ?? (named ? ["--data", dataDir] : []);
  return [USUAL_START, ...(args.length > 0 ? ["--"] : []), ...args.map(shellQuoted)].join(" ");
}

function lastArguments(dataDir: string): string[] | undefined {
  try {
    const told: unknown = JSON.parse(readFileSync(join(dataDir, "start.json"), "utf8"));
    return lastStart.safeParse(told).data?.arguments.map((text) => cleanLine(text, 4_096));
  } catch {
    return undefined;
  }
}
