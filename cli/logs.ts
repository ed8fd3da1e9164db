import { setTimeout as pause } from "node:timers/promises";
import { Command } from "commander";
import * as z from "zod";
import { CliError, EXIT } from "./errors.ts";
import type { LogLine } from "./logs/line.ts";
import type { NamedTasks } from "./logs/named.ts";
import { count, DATA_FOLDER, STACK, taskKey } from "./options.ts";
import { type Output, processOutput } from "./output.ts";
import { currentHome } from "./session.ts";
import { cleanLine, localTime } from "./text.ts";

/** How far back is looked for a task of which the table tells nothing. */
const DEFAULT_HOURS = 24;
const HOUR_MS = 3_600_000;
/** How often it is looked for news: CloudWatch takes few requests a second (CloudWatch Logs quotas, FilterLogEvents). */
const LOCAL_PAUSE_MS = 500;
const DEPLOYED_PAUSE_MS = 5_000;
/** What was said a little before the task was accepted belongs to it. */
const BEFORE_MS = 60_000;
const MAX_MESSAGE = 2_000;
const MAX_FIELD = 500;

const options = z.object({
  stack: z.string().optional(),
  dataFolder: z.string().optional(),
  follow: z.boolean().default(false),
  hours: z.number().optional(),
  json: z.boolean().default(false),
});
type Options = z.infer<typeof options>;

export function logsCommand(): Command {
  return new Command("logs")
    .description("bring together what the functions have logged of one task")
    .argument("<task>", "its id, or how it begins", taskKey)
    .option("--follow", "go on until Ctrl-C")
    .option("--hours <n>", "how far back (default: to when the task was accepted, or 24)", count)
    .option(...STACK)
    .option(...DATA_FOLDER)
    .option("--json", "one JSON object a line, for programs")
    .action(async (task: string, given: unknown) => {
      process.exitCode = await logs(task, options.parse(given));
    });
}

async function logs(text: string, given: Options): Promise<number> {
  const out = processOutput(given.json);
  // The clients of AWS take long to load.
  const [{ findPlace }, { openPlace }, { openLogs }, { linesAbout }, { NamedTasks, withPrefix }] =
    await Promise.all([
      import("./place.ts"),
      import("./stack.ts"),
      import("./logs/source.ts"),
      import("./logs/task.ts"),
      import("./logs/named.ts"),
    ]);
  const task = withPrefix(text);
  const place = await findPlace(currentHome(given), given.stack);
  using opened = openPlace(place);
  // Before it is decided a message is known by its subject alone. The table may be out of reach: the logs are not.
  const head = await opened.store.head(task).catch(() => undefined);
  const texts = [
    task,
    ...(head === undefined ? [] : [`a2a.v1.task.${head.from}.${head.to}.${head.messageId}`]),
  ];
  using found = await openLogs(place);
  const since = sinceWhen(given, head?.decidedAt);
  const named = new NamedTasks(task);
  const tail = linesAbout(found, texts, since, named.take);
  out.waitingFor("reading the logs");
  let seen = print(await tail.next(), named, out);
  if (seen === 0 && !given.follow)
    throw new CliError(
      EXIT.failed,
      `task ${task}: no line of it in ${found.where} since ${localTime(new Date(since))}; --hours looks further back`,
    );
  if (!given.follow) return EXIT.ok;
  const interruption = new AbortController();
  process.on("SIGINT", () => interruption.abort());
  const { signal } = interruption;
  while (!signal.aborted) {
    out.waitingFor(seen === 0 ? "waiting for the first line; Ctrl-C ends it" : "following; Ctrl-C ends it");
    await pause(place.local ? LOCAL_PAUSE_MS : DEPLOYED_PAUSE_MS, undefined, { signal }).catch(() => {});
    if (!signal.aborted) seen += print(await tail.next(), named, out);
  }
  out.done();
  return EXIT.ok;
}

function sinceWhen({ hours }: Options, decidedAt: number | undefined): number {
  if (hours === undefined && decidedAt !== undefined) return decidedAt - BEFORE_MS;
  return Date.now() - (hours ?? DEFAULT_HOURS) * HOUR_MS;
}

/** @returns how many lines there were */
function print(lines: readonly LogLine[], named: NamedTasks, out: Output): number {
  if (lines.length > 0) out.done();
  for (const line of lines) {
    out.record(recordOf(line));
    out.line(textOf(line, named.of(line), out));
  }
  return lines.length;
}

function recordOf({ at, function: name, level, message, requestId, fields }: LogLine): object {
  const time = new Date(at).toISOString();
  return { at: time, function: name, level, message, requestId: requestId ?? null, fields };
}

function textOf(
  { at, function: name, level, message, fields }: LogLine,
  tasks: readonly string[],
  { colours: c }: Output,
): string {
  const time = new Date(at);
  const millis = String(time.getMilliseconds()).padStart(3, "0");
  const shade = { ERROR: c.red, WARN: c.yellow, "": c.red }[level] ?? ((text: string) => text);
  const rest = [...tasks.map((task) => ["taskId", task] as const), ...Object.entries(fields)]
    .filter(([key], index) => key !== "taskId" || index < tasks.length)
    .map(([key, value]) => c.dim(`${cleanLine(key, 50)}=${fieldText(value)}`));
  const words = [
    c.dim(`${localTime(time)}.${millis}`),
    cleanLine(name).padEnd(7),
    shade(cleanLine(level).padEnd(5)),
    shade(cleanLine(message, MAX_MESSAGE)),
  ];
  return [...words, ...rest].join("  ").trimEnd();
}

function fieldText(value: unknown): string {
  if (typeof value !== "string") return cleanLine(JSON.stringify(value), MAX_FIELD);
  const text = cleanLine(value, MAX_FIELD);
  return /[\s"]/.test(text) ? JSON.stringify(text) : text;
}
