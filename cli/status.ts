import { Command } from "commander";
import * as z from "zod";
import { isErased } from "./erased.ts";
import { CliError, EXIT } from "./errors.ts";
import { readEvents, readEventsOfTask, type Seen } from "./events.ts";
import { foldTasks, type TaskView } from "./fold.ts";
import { common, count, runtime, taskKey, withCommon } from "./options.ts";
import { isListenedFor } from "./peers.ts";
import {
  artifactHint,
  artifactText,
  errorText,
  eventLine,
  labelWidth,
  stateName,
  stateText,
  viewWaitText,
} from "./render.ts";
import { resolveTask } from "./resolve.ts";
import { inSession, ownRuntime, type Session } from "./session.ts";
import { table } from "./table.ts";
import { clean, cleanLine, localTime } from "./text.ts";
import { findUnanswered, readUnanswered, type Unanswered } from "./unanswered.ts";

const DEFAULT_HOURS = 24;
const DEFAULT_LIMIT = 20;
/** A result may be long, and a line is a line. */
const MAX_LAST_WORD = 1_000;

const options = common.extend({ from: z.string().optional(), hours: z.number(), limit: z.number() });
type Options = z.infer<typeof options>;

export function statusCommand(): Command {
  return withCommon(new Command("status"))
    .description("show the recent tasks, or one task with all its events")
    .argument("[task]", "a task's id", taskKey)
    .option("--from <runtime>", "whose tasks (default: <deployment>-cli; with a task: anybody's)", runtime)
    .option("--hours <n>", "how far back to look", count, DEFAULT_HOURS)
    .option("--limit <n>", "how many tasks to show", count, DEFAULT_LIMIT)
    .action(async (task: string | undefined, given: unknown) => {
      process.exitCode = await status(task, options.parse(given));
    });
}

async function status(task: string | undefined, given: Options): Promise<number> {
  return inSession(given, (session) =>
    task === undefined ? showRecent(session, given) : showTask(session, task, given),
  );
}

const sinceOf = (hours: number) => new Date(Date.now() - hours * 3_600_000);

async function showRecent({ nc, home, out }: Session, { from, hours, limit }: Options): Promise<number> {
  const delegator = from ?? ownRuntime(home);
  const since = sinceOf(hours);
  const seen = await readEvents(nc, [`a2a.v1.event.*.${delegator}.>`], since);
  const sent = await readUnanswered(nc, { from: delegator, since, seen });
  const all = [...foldTasks(seen), ...sent].sort((a, b) => a.updatedAt.getTime() - b.updatedAt.getTime());
  // What waits for somebody is shown however old it is.
  const tasks = all.filter((task, index) => index >= all.length - limit || waitOf(task) !== "");

  for (const task of tasks) out.record("state" in task ? task : { ...task, state: null });
  if (tasks.length === 0) out.line(`no tasks of ${delegator} in the last ${hours} h`);
  else
    for (const line of table(["TASK", "STATE", "AGENT", "LAST EVENT", ""], tasks.map(rowOf), out.width))
      out.line(line);
  const waits = tasks.map(waitOf);
  for (const wait of waits.filter((text) => text !== "")) out.line(wait);
  return EXIT.ok;
}

function rowOf(task: TaskView | Unanswered): string[] {
  const state = "state" in task ? stateName(task.state) : "sent";
  return [
    task.task,
    state,
    task.executor,
    localTime(task.updatedAt),
    "state" in task ? lastWord(task) : "no answer yet",
  ];
}

function waitOf(task: TaskView | Unanswered): string {
  return "state" in task ? viewWaitText(task) : "";
}

function lastWord({ error, content }: TaskView): string {
  return cleanLine(error === null ? content : errorText(error), MAX_LAST_WORD);
}

async function showTask(session: Session, id: string, given: Options): Promise<number> {
  const { nc, out } = session;
  const task = await resolveTask(nc, id);
  const seen = await readEventsOfTask(nc, task, given.from);
  const views = foldTasks(seen);
  if (views.length === 0) return showSent(session, task, given);
  for (const view of views) {
    const own = seen.filter(({ event }) => event.from === view.executor && event.to === view.delegator);
    out.record({ ...view, events: own.map(({ event }) => event) });
    const erased = await Promise.all(view.artifacts.map((artifact) => isErased(nc, artifact)));
    for (const line of describe(view, own, erased, out.colours)) out.line(line);
  }
  return EXIT.ok;
}

/** Shows a task that was sent, and of which no event tells: nobody has taken it, or its message was none of a task. */
async function showSent({ nc, out }: Session, id: string, { from, hours }: Options): Promise<number> {
  const since = sinceOf(hours);
  const sent = await findUnanswered(nc, id, { since, ...(from !== undefined && { from }) });
  if (sent === undefined)
    throw new CliError(
      EXIT.failed,
      `task ${id}: no event tells of it, and it was not sent in the last ${hours} h (./sluice status lists the recent ones)`,
    );
  out.record({ ...sent, state: null, events: [] });
  const { task, delegator, executor, updatedAt } = sent;
  for (const line of [
    `${task}  sent`,
    `${delegator} → ${executor}`,
    "",
    `${out.colours.dim(localTime(updatedAt))}  no answer yet`,
    "",
    (await isListenedFor(nc, executor))
      ? `somebody listens for ${executor}; what its deployment has made of the message: ./sluice logs ${task}`
      : `nobody listens for ${executor} now; the task waits until somebody does`,
  ])
    out.line(line);
  return EXIT.ok;
}

/** @param erased of each artifact whether it is gone */
function describe(
  view: TaskView,
  seen: readonly Seen[],
  erased: readonly boolean[],
  c: Session["out"]["colours"],
): string[] {
  const isAnyLeft = erased.includes(false);
  const width = labelWidth(seen.map(({ event }) => event));
  return [
    `${view.task}  ${stateText(view.state, c)}`,
    `${view.delegator} → ${view.executor}`,
    "",
    ...seen.map(
      ({ event, at }) =>
        `${c.dim(localTime(at))}  ${String(event.revision).padStart(3)}  ${eventLine(event, c, width)}`,
    ),
    ...(view.artifacts.length === 0 ? [] : ["", "artifacts:"]),
    ...view.artifacts.map(
      (artifact, index) => `  ${artifactText(artifact)}${erased[index] ? "  erased" : ""}`,
    ),
    ...(isAnyLeft ? [`  ${artifactHint(view.task, view.artifacts.length)}`] : []),
    ...(view.error === null ? [] : ["", c.red(errorText(view.error))]),
    ...(view.content.trim() === "" ? [] : ["", clean(view.content).trimEnd()]),
    ...(waitOf(view) === "" ? [] : ["", c.yellow(waitOf(view))]),
  ];
}
