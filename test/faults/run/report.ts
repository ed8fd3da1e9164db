import { join } from "node:path";
import { table } from "../../../cli/table.ts";
import { keepRun } from "../../support/kept-run.ts";
import { inWords, toldOf } from "./checks/events.ts";
import type { LateRun } from "./checks/journal.ts";
import { linesWith } from "./collect.ts";
import type { Ledger, TaskRecord, Violation } from "./ledger.ts";
import type { Action } from "./plan.ts";
import type { Left } from "./settle.ts";

/** How a fault run came out. */
export interface Outcome {
  readonly seed: number;
  readonly lengthMs: number;
  readonly rate: number;
  readonly timeScale: number;
  readonly plan: readonly Action[];
  readonly tookMs: number;
  /** What the adversary has done, by kind. */
  readonly toll: Readonly<Record<string, number>>;
  readonly kills: number;
  /** What went wrong in the adversary itself. */
  readonly troubled: readonly string[];
  /** What the host has said that it copes with. */
  readonly told: readonly string[];
  readonly left: Left;
  readonly late: readonly LateRun[];
  readonly violations: readonly Violation[];
  readonly ledger: Ledger;
  /** Where everything lies that the run has left; only when it was not clean. */
  readonly folder: string | undefined;
}

/** How a task's end is told: state, and code if there is one. */
function endOf(task: TaskRecord): string {
  const last = toldOf(task).findLast(({ event }) => event.revision > 0)?.event;
  if (last === undefined) return "never answered";
  return [last.state.replace("TASK_STATE_", ""), last.error?.code].filter(Boolean).join(" ");
}

function counted(names: readonly string[]): [string, string][] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => a.localeCompare(b)).map(([name, count]) => [name, String(count)]);
}

/** The tables at a run's end. */
export function summary(outcome: Outcome): string[] {
  const { ledger, toll, late, violations, kills } = outcome;
  const handedOn = ledger.tasks.filter(({ what }) => what.startsWith("child of ")).length;
  const events = ledger.tasks.reduce((sum, task) => sum + task.events.length, 0);
  const entries = ledger.tasks.reduce((sum, task) => sum + task.entries.length, 0);
  const takeovers = ledger.tasks.reduce(
    (sum, { entries }) => sum + entries.filter(({ claim }) => claim).length,
    0,
  );
  const totals: [string, string][] = [
    ["tasks published", String(ledger.tasks.length - handedOn)],
    ["tasks handed on by agents", String(handedOn)],
    ["events on the stream", String(events)],
    ["entries in journals", String(entries)],
    ["takeovers and resumptions", String(takeovers)],
    ["kills", String(kills)],
    ["runs of steps by workers that had lost their claim", String(late.length)],
    ["dead letters, explained", String(ledger.dead.length)],
    ["violations", String(violations.length)],
  ];
  const tolls = Object.entries(toll).sort(([a], [b]) => a.localeCompare(b));
  return [
    ...table(["THE RUN", ""], totals),
    "",
    ...table(["TASKS BY THEIR LAST EVENT", "COUNT"], counted(ledger.tasks.map(endOf))),
    "",
    ...table(
      ["FAULTS MADE", "COUNT"],
      tolls.map(([name, count]) => [name, String(count)]),
    ),
  ];
}

/** The violations, each task's with its history. */
export function complaints({ violations, ledger, folder }: Outcome): string[] {
  const lines: string[] = [];
  const tasks = new Map(ledger.tasks.map((task) => [task.taskId, task]));
  for (const { invariant, taskId, what } of violations) lines.push(`${invariant}: ${taskId ?? ""} ${what}`);
  for (const taskId of new Set(violations.flatMap(({ taskId }) => taskId ?? []))) {
    const task = tasks.get(taskId);
    if (task === undefined) continue;
    lines.push("", `${taskId} (${task.what}, to ${task.to}, message ${task.messageId})`);
    lines.push(...historyOf(task).map((line) => `  ${line}`));
    if (folder !== undefined)
      lines.push(...linesWith(join(folder, "data"), taskId).map((line) => `  ${line}`));
  }
  return lines;
}

function historyOf(task: TaskRecord): string[] {
  const time = (at: number) => new Date(at).toISOString();
  const head = task.head === undefined ? "none" : JSON.stringify({ ...task.head, input: undefined });
  return [
    `published ${task.published} times, on the stream: ${task.onStream}`,
    `head: ${head}`,
    ...task.entries.map(({ events = [], steps = [], ...entry }) =>
      [
        `entry ${entry.place}: epoch ${entry.epoch}, revision ${entry.revision}, ${time(entry.at)}`,
        steps.length > 0 ? `, steps ${steps.map(({ name }) => name).join(" ")}` : "",
        events.length > 0
          ? `, events ${events.map(({ kind, revision }) => `${revision} ${kind}`).join(" ")}`
          : "",
        entry.claim ? ", takeover" : "",
        entry.opens ? `, opens ${JSON.stringify(entry.opens)}` : "",
        entry.answer ? ", answer" : "",
        entry.control ? `, control ${JSON.stringify(entry.control)}` : "",
        entry.end ? `, end ${JSON.stringify(entry.end)}` : "",
        task.confirmed[entry.place] === undefined
          ? ""
          : ` (confirmed ${time(task.confirmed[entry.place] ?? 0)})`,
      ].join(""),
    ),
    ...toldOf(task).map((told) => `event ${told.seq}: ${inWords(told)}, ${time(told.at)}, ${told.msgId}`),
    ...task.controls.map((control) => `control ${JSON.stringify(control)}`),
    ...task.claims.map(({ epoch, pid, at }) => `claim ${epoch} by ${pid}, ${time(at)}`),
    ...task.runs.map(({ step, run, pid, at }) => `run of ${step}: ${run} by ${pid}, ${time(at)}`),
    ...task.acked.map((at) => `acknowledged ${time(at)}`),
  ];
}

/** Keeps a run's outcome under a name; gives the file. */
export function keep(outcome: Outcome, name: string): string {
  const { ledger, ...rest } = outcome;
  const ends = Object.fromEntries(counted(ledger.tasks.map(endOf)));
  const suspects = new Set(outcome.violations.map(({ taskId }) => taskId));
  const tasks = ledger.tasks.filter(({ taskId }) => suspects.has(taskId));
  const kept = { ...rest, tasks: ledger.tasks.length, ends, dead: ledger.dead, suspects: tasks };
  return keepRun("faults", name, kept);
}
