import type { FilterLogEventsCommandOutput } from "@aws-sdk/client-cloudwatch-logs";
import { resourcesOf } from "../deployed.ts";
import { AWS_CLIENT, reach } from "../place.ts";
import { type LogLine, lineOf } from "./line.ts";
import { inOrder, type LogQuery, type Logs, MAX_LINES, type Tail } from "./source.ts";

/** The longest filter pattern that CloudWatch takes (API reference, FilterLogEvents). */
const MAX_PATTERN = 1_024;
/** How long one reading of a log group may take, in milliseconds. */
const READ_MS = 60_000;
/** What was written may be found a little later than what was written after it, in milliseconds. */
const LATE_MS = 30_000;

interface Group {
  readonly name: string;
  /** The function whose log it is. */
  readonly function: string;
}

type Read = (input: {
  logGroupName: string;
  filterPattern: string;
  startTime: number;
  nextToken?: string;
}) => Promise<FilterLogEventsCommandOutput>;

/**
 * The logs of a deployed stack, in the log groups that it has made.
 *
 * @throws CliError `unreachable` when CloudFormation does not tell them
 */
export async function cloudWatchLogs(stack: string): Promise<Logs> {
  const resources = await resourcesOf(stack);
  const groups = resources
    .filter(({ type }) => type === "AWS::Logs::LogGroup")
    .map(({ id, name }) => ({ name, function: functionOf(id) }));
  const { CloudWatchLogsClient, FilterLogEventsCommand } = await import("@aws-sdk/client-cloudwatch-logs");
  const client = new CloudWatchLogsClient(AWS_CLIENT);
  const read: Read = (input) =>
    reach(`the logs of the stack ${stack}`, client.send(new FilterLogEventsCommand(input)));
  return {
    where: `the log groups of the stack ${stack}`,
    tail: (query) => new GroupsTail(read, groups, query),
    [Symbol.dispose]: () => client.destroy(),
  };
}

/** The construct of a function holds that of its log group: `admitLogs4B0E95CF` (infra/functions.ts). */
function functionOf(logicalId: string): string {
  return logicalId.replace(/Logs[0-9A-F]{8}$/, "");
}

class GroupsTail implements Tail {
  readonly #read: Read;
  readonly #groups: readonly Group[];
  readonly #query: LogQuery;
  readonly #seen = new Set<string>();
  #since: number;

  constructor(read: Read, groups: readonly Group[], query: LogQuery) {
    this.#read = read;
    this.#groups = groups;
    this.#query = query;
    this.#since = query.since;
  }

  async next(): Promise<LogLine[]> {
    const startedAt = Date.now();
    const lines: LogLine[] = [];
    for (const filterPattern of patternsOf(this.#query.of)) {
      const found = await Promise.all(this.#groups.map((group) => this.#readGroup(group, filterPattern)));
      lines.push(...found.flat());
    }
    this.#since = Math.max(this.#since, startedAt - LATE_MS);
    const fresh = lines.filter(({ id }) => !this.#seen.has(id));
    for (const { id } of fresh) this.#seen.add(id);
    return inOrder(fresh).slice(-MAX_LINES);
  }

  async #readGroup(group: Group, filterPattern: string): Promise<LogLine[]> {
    const lines: LogLine[] = [];
    const endsAt = Date.now() + READ_MS;
    const input = { logGroupName: group.name, filterPattern, startTime: this.#since };
    let nextToken: string | undefined;
    do {
      const page = await this.#read({ ...input, ...(nextToken !== undefined && { nextToken }) });
      for (const { eventId = "", message = "", timestamp = 0 } of page.events ?? []) {
        const line = lineOf({ id: eventId, text: message, function: group.function, at: timestamp });
        if (line !== undefined) lines.push(line);
      }
      nextToken = page.nextToken;
    } while (nextToken !== undefined && lines.length < MAX_LINES && Date.now() < endsAt);
    return lines;
  }
}

/** Patterns for lines with any of the texts (CloudWatch Logs User Guide, "Filter pattern syntax"). */
export function patternsOf(of: LogQuery["of"]): string[] {
  if (of === "trouble") return ['{ $.level = "WARN" || $.level = "ERROR" }'];
  const quoted = of.map((text) => `"${text.replaceAll(/["\\]/g, "")}"`);
  if (quoted.length === 1) return quoted;
  const patterns: string[] = [];
  for (const term of quoted.map((text) => `?${text}`)) {
    const last = patterns.at(-1);
    if (last === undefined || last.length + 1 + term.length > MAX_PATTERN) patterns.push(term);
    else patterns[patterns.length - 1] = `${last} ${term}`;
  }
  return patterns;
}
