import { join } from "node:path";
import type { Place } from "../place.ts";
import { cloudWatchLogs } from "./cloudwatch.ts";
import type { LogLine } from "./line.ts";
import { localLogs } from "./local.ts";

/** Which lines are wanted. */
export interface LogQuery {
  /** Those with one of these texts in them; `trouble`: the structured ones that are warnings or errors. */
  readonly of: readonly string[] | "trouble";
  /** Milliseconds since 1970. */
  readonly since: number;
}

/** Lines that are read as they come. */
export interface Tail {
  /** What was written since the last call, in order of time; at first all since the query's beginning. */
  next(): Promise<LogLine[]>;
}

/** The logs of a deployment's functions. */
export interface Logs extends Disposable {
  /** Where they are, for people. */
  readonly where: string;
  tail(query: LogQuery): Tail;
}

/** The most lines that are brought together; further ones are left out. */
export const MAX_LINES = 10_000;

/**
 * Opens the logs of a local host's functions, or of a deployed stack's.
 *
 * @throws CliError `unreachable` when the stack's log groups cannot be found
 */
export async function openLogs(place: Place): Promise<Logs> {
  const { deployed, local } = place;
  if (deployed !== undefined) return cloudWatchLogs(deployed.name);
  return localLogs(join(local?.dataDir ?? ".sluice", "logs"));
}

/** In order of time; lines of the same time stay as they are. */
export function inOrder(lines: readonly LogLine[]): LogLine[] {
  return lines.toSorted((a, b) => a.at - b.at);
}
