import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import * as z from "zod";
import { shellQuoted } from "./repeat.ts";
import { cleanLine } from "./text.ts";

export const USUAL_START = "npm start";

/** Whose script that is, and whose deployment it starts unless it is told another. */
export const CLONE = resolve(import.meta.dirname, "..");

/** What the host writes down when it is up, and leaves there (infra/local/main.ts). */
const lastStart = z.object({ arguments: z.array(z.string().max(4_096)).max(100) });

/**
 * The command that starts the local host as it was last started on a data folder; where that is not known, for the
 * deployment beside it.
 *
 * @returns what holds wherever it is called
 */
export function startCommand(dataDir: string): string {
  const start = withOptions(lastArguments(dataDir) ?? startOptions(dataDir));
  return process.cwd() === CLONE ? start : `cd ${shellQuoted(CLONE)} && ${start}`;
}

/** The command that starts, in the clone, the deployment of a folder. */
export function startOf(folder: string): string {
  return withOptions(startOptions(join(folder, ".sluice")));
}

function withOptions(args: readonly string[]): string {
  return [USUAL_START, ...(args.length > 0 ? ["--"] : []), ...args.map(shellQuoted)].join(" ");
}

/** What names a data folder and the files beside it, as far as there are any; nothing in the clone, for it is the usual. */
function startOptions(dataDir: string): string[] {
  const folder = dirname(dataDir);
  const isBeside = basename(dataDir) === ".sluice";
  if (isBeside && folder === CLONE) return [];
  const beside = { "--config": join(folder, "agents.yaml"), "--agents-dir": join(folder, "agents") };
  const there = Object.entries(beside).filter(([, path]) => isBeside && existsSync(path));
  return [...there.flat(), "--data", dataDir];
}

function lastArguments(dataDir: string): string[] | undefined {
  try {
    const told: unknown = JSON.parse(readFileSync(join(dataDir, "start.json"), "utf8"));
    return lastStart.safeParse(told).data?.arguments.map((text) => cleanLine(text, 4_096));
  } catch {
    return undefined;
  }
}
