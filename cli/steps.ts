import { Command } from "commander";
import * as z from "zod";
import { deadlineOf, fruitlessClaims, stateOf } from "../shared/tasks/fold.ts";
import type { Pause } from "../shared/tasks/pauses.ts";
import type { TaskEvent, TaskState } from "../shared/wire/index.ts";
import { EXIT } from "./errors.ts";
import { DATA_FOLDER, STACK, taskKey } from "./options.ts";
import { type Output, processOutput } from "./output.ts";
import type { TaskRecord } from "./record.ts";
import { errorText, questionText, stateText, waitText } from "./render.ts";
import { withPlace } from "./repeat.ts";
import { currentHome } from "./session.ts";
import { table } from "./table.ts";
import { cleanLine, durationText, localTime } from "./text.ts";
import { isEnded, type StepLine, timelineOf, whoAnswers } from "./timeline.ts";

/** A text that is longer is a mistake, or means harm. */
const MAX_ERROR = 4_000;

const options = z.object({
  stack: z.string().optional(),
  dataFolder: z.string().optional(),
  json: z.boolean().default(false),
});
type Options = z.infer<typeof options>;

export function stepsCommand(): Command {
  return new Command("steps")
    .description("show the steps of a task of our own deployment, out of its table")
    .argument("<task>", "its whole id", taskKey)
    .option(...STACK)
    .option(...DATA_FOLDER)
    .option("--json", "one JSON object a line, for programs")
    .action(async (task: string, given: unknown) => {
      process.exitCode = await steps(task, options.parse(given));
    });
}

async function steps(task: string, { stack: name, dataFolder, json }: Options): Promise<number> {
  const out = processOutput(json);
  // The clients of AWS take long to load, and no other verb needs them.
  const [{ openStack }, { readRecord, eventOf }, { reach }] = await Promise.all([
    import("./stack.ts"),
    import("./record.ts"),
    import("./place.ts"),
  ]);
  using opened = await openStack(currentHome({ stack: name, dataFolder }), name);
  const record = await readRecord(opened, task);
  const isOver = workerOf(record) === "over";
  const pause = isOver ? undefined : await reach(opened.label, opened.pauses.pauseOf(record.head.to));
  const lines = await timelineOf(record, Date.now());
  const { question } = record.view;
  const asking = record.entries
    .flatMap(({ events = [] }) => events)
    .find(({ revision }) => revision === question?.asked);
  const asked = isEnded(record) || asking === undefined ? undefined : await eventOf(record, asking);
  const shown = { record, pause, lines, asked };
  out.record(jsonOf(shown));
  for (const line of describe(shown, out)) out.line(line);
  return EXIT.ok;
}

/** What there is to be shown. */
interface Shown {
  readonly record: TaskRecord;
  /** That its agent is paused, of a task that is not over. */
  readonly pause: Pause | undefined;
  readonly lines: readonly StepLine[];
  readonly asked: TaskEvent | undefined;
}

/** The state as the journal has it, which is ahead of the head's. */
function stateNow({ head, view }: TaskRecord): TaskState {
  if (head.reject !== undefined) return "TASK_STATE_REJECTED";
  return head.epoch === 0 && view.end === undefined ? head.state : stateOf(view);
}

function endOf({ head, view }: TaskRecord): { code: string; message: string } | undefined {
  if (head.reject !== undefined) return head.reject;
  if (view.end?.code === undefined) return undefined;
  return { code: view.end.code, message: view.end.message ?? "" };
}

/** When the task is over at the latest; nothing while a question is open, whose time is not the task's. */
function deadline(record: TaskRecord): number | undefined {
  const at = deadlineOf(record.head, record.view);
  return Number.isFinite(at) ? at : undefined;
}

/** How many claims in a row, up to the one in force, have brought the task no further. */
function fruitlessOf({ head, view }: TaskRecord): number {
  return Math.min(head.epoch, fruitlessClaims(head, view));
}

/** Whether fruitless claims are worth a word: not those of a task that waits or is done, nor when erasing hides the steps. */
function saysFruitless(record: TaskRecord): boolean {
  const { head, view } = record;
  const worker = workerOf(record);
  if (worker === "over")
    return head.erased === undefined && (view.end?.state ?? head.state) !== "TASK_STATE_COMPLETED";
  return worker === "working";
}

/** Who works on the task. */
function workerOf(record: TaskRecord): "unclaimed" | "working" | "waiting" | "over" {
  if (record.head.reject !== undefined || isEnded(record)) return "over";
  if (record.head.waiting === true) return "waiting";
  return record.head.epoch === 0 ? "unclaimed" : "working";
}

function describe(
  { record, pause, lines, asked }: Shown,
  { colours: c, width }: Pick<Output, "colours" | "width">,
): string[] {
  const { head } = record;
  const end = endOf(record);
  return [
    `${head.taskId}  ${stateText(stateNow(record), c)}`,
    `${head.from} → ${head.to}${head.skill === undefined ? "" : `  ${cleanLine(head.skill)}`}`,
    ...[...facts(record), ...pauseFact(record, pause)].map(([name, fact]) => `${name.padEnd(10)} ${fact}`),
    "",
    ...(lines.length === 0
      ? [noSteps(record)]
      : table(["BEGAN", "STEP", "KIND", "STATE", "ATTEMPTS", "TOOK", "ERROR"], lines.map(rowOf), width)),
    ...wholeErrors(lines, width).map((line) => c.red(line)),
    ...(end === undefined ? [] : ["", c.red(errorText(end))]),
    ...(asked === undefined
      ? []
      : ["", questionText(asked, c), c.yellow(waitText(asked, record.view.question?.by === "operator"))]),
  ];
}

/** Why there is no step to be shown. */
function noSteps({ head, view }: TaskRecord): string {
  if (head.reject !== undefined) return "it was rejected before any step";
  if (head.erased !== undefined) return "its steps are erased";
  return isEnded({ head, view }) ? "it has ended without a step" : "no step is stored yet";
}

function facts(record: TaskRecord): [name: string, fact: string][] {
  const { head, view } = record;
  const worker = workerOf(record);
  const { erased } = head;
  const erasure: [string, string][] =
    erased === undefined
      ? []
      : [["erased", `${localTime(new Date(erased.at))} by ${cleanLine(erased.by, 64)}`]];
  if (head.reject !== undefined) return [["rejected", localTime(new Date(head.decidedAt))], ...erasure];
  const at = deadline(record);
  const fruitless = fruitlessOf(record);
  const inVain = saysFruitless(record) && fruitless > 1 ? `, the last ${fruitless} without a new step` : "";
  const dueAt =
    head.dueAt === undefined ? "" : `, to be woken at ${localTime(new Date(head.dueAt))} at the latest`;
  const says = {
    unclaimed: "none has claimed it yet",
    working: "one holds the claim",
    waiting: `none: the task waits${dueAt}`,
    over:
      view.end !== undefined && head.state !== view.end.state ? "none; the end is not published yet" : "none",
  };
  return [
    ["accepted", localTime(new Date(head.decidedAt))],
    ["deadline", at === undefined ? "stands still while the question is open" : localTime(new Date(at))],
    ["claims", `${head.epoch} (epoch ${head.epoch})${inVain}`],
    ["worker", lineText(record) ?? says[worker]],
    ...erasure,
  ];
}

/** Nobody takes up a task of an agent that is paused, whatever the task waits for otherwise. */
function pauseFact({ head }: TaskRecord, pause: Pause | undefined): [name: string, fact: string][] {
  if (pause === undefined) return [];
  const since = `paused since ${localTime(new Date(pause.at))} by ${cleanLine(pause.by, 64)}`;
  return [["agent", `${since}; go on with ${withPlace(`./sluice resume ${head.to}`)}`]];
}

/** That a task waits for a slot of its agent, and among how many. */
function lineText({ line }: TaskRecord): string | undefined {
  if (line === undefined) return undefined;
  const tasks = line.waiting === 1 ? "1 task waits" : `${line.waiting} tasks wait`;
  return `none: waits for a slot of its agent (${line.taken} taken, ${tasks} in the line)`;
}

function rowOf(step: StepLine): string[] {
  const { name, kind, beganAt, endedAt, attempts } = step;
  return [
    beganAt === null ? "" : localTime(new Date(beganAt)),
    cleanLine(name),
    kind,
    cleanLine(stateOfStep(step)),
    String(attempts),
    beganAt === null || endedAt === null ? "" : durationText(endedAt - beganAt),
    errorOf(step),
  ];
}

function errorOf({ error }: StepLine): string {
  if (error === null) return "";
  const code = error.code === undefined ? "" : `${error.code}: `;
  return cleanLine(`${error.name}: ${code}${error.message}`, MAX_ERROR);
}

/** The errors once more, where a terminal may be too narrow for the table. */
function wholeErrors(lines: readonly StepLine[], width: number): string[] {
  const failed = lines.filter(({ error }) => error !== null);
  if (width === Number.POSITIVE_INFINITY || failed.length === 0) return [];
  return ["", ...failed.map((step) => `${cleanLine(step.name)}: ${errorOf(step)}`)];
}

function stateOfStep({ kind, state, until, waitsFor, skill, beganAt }: StepLine): string {
  const time = until === null ? "" : ` until ${localTime(new Date(until))}`;
  if (state === "asked") return `asks ${waitsFor}${time}`;
  if (state === "running" && beganAt !== null) return `running since ${localTime(new Date(beganAt))}`;
  if (state !== "waiting") return state;
  if (waitsFor !== null) return `waits for ${waitsFor}${skill === null ? "" : ` (${skill})`}${time}`;
  if (kind === "run") return `tries again${until === null ? "" : ` at ${localTime(new Date(until))}`}`;
  return `waits${time}`;
}

const iso = (at: number | null | undefined) =>
  at === null || at === undefined ? null : new Date(at).toISOString();

/** What `--json` writes (docs/command.md). */
function jsonOf({ record, pause, lines, asked }: Shown): object {
  const { head, view } = record;
  return {
    task: head.taskId,
    executor: head.to,
    delegator: head.from,
    skill: head.skill ?? null,
    state: stateNow(record),
    error: endOf(record) ?? null,
    erased: head.erased === undefined ? null : { at: iso(head.erased.at), by: head.erased.by },
    acceptedAt: head.reject === undefined ? iso(head.decidedAt) : null,
    deadline: head.reject === undefined ? iso(deadline(record)) : null,
    epoch: head.epoch,
    fruitlessClaims: fruitlessOf(record),
    worker: workerOf(record),
    waitsForSlot: record.line ?? null,
    paused: pause === undefined ? null : { since: iso(pause.at), by: pause.by, refuse: pause.refuse },
    dueAt: iso(head.dueAt),
    question:
      view.question === undefined || isEnded(record)
        ? null
        : {
            step: view.question.name,
            kind: view.question.kind,
            prompt: asked?.content ?? null,
            mustAnswer: whoAnswers(record),
            until: iso(view.question.until),
          },
    steps: lines.map(({ beganAt, endedAt, until, ...line }) => ({
      ...line,
      beganAt: iso(beganAt),
      endedAt: iso(endedAt),
      ms: beganAt === null || endedAt === null ? null : endedAt - beganAt,
      until: iso(until),
    })),
  };
}
