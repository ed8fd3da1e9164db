import * as z from "zod";
import { failureOf } from "../shared/steps/kinds/delegate-outcome.ts";
import { outcome } from "../shared/tasks/delegation.ts";
import type { Waiting } from "../shared/tasks/fold.ts";
import type { Entry, StoredStep } from "../shared/tasks/items.ts";
import { isTerminal } from "../shared/wire/index.ts";
import type { TaskRecord } from "./record.ts";

/** How a step stands. `dropped` is one that the task ended without, or that its handler no longer asks. */
export type StepState = "done" | "failed" | "asked" | "waiting" | "running" | "dropped";

/** A step of a task. Times are milliseconds since 1970. */
export interface StepLine {
  readonly name: string;
  readonly kind: StoredStep["kind"];
  readonly state: StepState;
  /** When it began, as far as that was written down. */
  readonly beganAt: number | null;
  /** When it was over; nothing while it is not. */
  readonly endedAt: number | null;
  /** How many times it was tried, the present attempt included. */
  readonly attempts: number;
  /** When its waiting is over at the latest. */
  readonly until: number | null;
  /** The runtime that must answer or work. */
  readonly waitsFor: string | null;
  /** For a delegation the skill that was asked for. */
  readonly skill: string | null;
  /** How it failed for good, or how its last attempt did. */
  readonly error: {
    readonly name: string;
    readonly message: string;
    readonly code?: string | undefined;
  } | null;
}

const approval = z.object({ approve: z.boolean(), denyReason: z.string().optional() });

/**
 * The steps of a task in the order in which they began.
 *
 * @param now by which it is told what is over
 */
export async function timelineOf(record: TaskRecord, now: number): Promise<StepLine[]> {
  const { view, entries } = record;
  const opened = firstOpened(entries);
  const failed = await failures(record);
  const lines = [
    ...[...view.steps.values()].map((step) => storedLine(step, opened.get(step.name))),
    ...[...view.open.values()].map((step) => openLine(record, step, { now, opened, failed })),
    ...runningLine(record),
  ];
  const last = Number.POSITIVE_INFINITY;
  return lines.sort((one, other) => (one.beganAt ?? last) - (other.beganAt ?? last) || 0);
}

/** When each step that has waited began to. */
function firstOpened(entries: readonly Entry[]): Map<string, number> {
  const first = new Map<string, number>();
  for (const { at, opens = [] } of entries)
    for (const { name } of opens) if (!first.has(name)) first.set(name, at);
  return first;
}

const BLANK = { attempts: 1, until: null, waitsFor: null, skill: null, error: null, endedAt: null } as const;

function storedLine(step: StoredStep & { readonly at: number }, openedAt: number | undefined): StepLine {
  const { name, kind, at, ms, attempts = 1, error } = step;
  return {
    ...BLANK,
    name,
    kind,
    state: error === undefined ? "done" : "failed",
    beganAt: Math.min(openedAt ?? at, at - ms),
    endedAt: at,
    attempts,
    error: error ?? null,
  };
}

interface Known {
  readonly now: number;
  readonly opened: ReadonlyMap<string, number>;
  /** How those have failed whose failure is no entry of its own. */
  readonly failed: ReadonlyMap<string, StepLine["error"]>;
}

function openLine(record: TaskRecord, step: Waiting, { now, opened, failed }: Known): StepLine {
  const { view, head } = record;
  const { name, kind, until, child } = step;
  const over = overAt(record, step, now);
  const line: StepLine = {
    ...BLANK,
    name,
    kind,
    state: "waiting",
    beganAt: opened.get(name) ?? step.since,
    attempts: step.attempts ?? 1,
    until: until ?? null,
    error: step.error ?? null,
  };
  if (over !== undefined) {
    const error = failed.get(name) ?? null;
    return { ...line, state: error === null ? "done" : "failed", endedAt: over, until: null, error };
  }
  const asks = kind === "ask" || kind === "approve";
  if (isEnded(record) || (asks && view.question?.name !== name))
    return { ...line, state: "dropped", until: null };
  if (asks) return { ...line, state: "asked", waitsFor: head.from };
  if (child !== undefined) return { ...line, waitsFor: child.to, skill: child.skill };
  if (kind === "run" && head.waiting !== true && (until ?? 0) <= now)
    return { ...line, state: "running", until: null, attempts: line.attempts + 1 };
  return line;
}

/** When the waiting of a step was over: its answer came, its executor's last word, or its time. */
function overAt(record: TaskRecord, step: Waiting, now: number): number | undefined {
  const { view } = record;
  const answer = view.answers.get(step.name);
  if (answer !== undefined) return answer.at;
  const told = view.heard.get(step.name);
  if (told?.outcome !== undefined) return told.at;
  return step.kind === "sleep" && isOver(record, step, now) ? step.until : undefined;
}

/** That a sleep is over is written down nowhere; somebody must have gone on since, or be at it. */
function isOver(record: TaskRecord, { until }: Waiting, now: number): boolean {
  if (until === undefined || until > now) return false;
  const isHeld = record.head.waiting !== true && !isEnded(record);
  return isHeld || (record.entries.at(-1)?.at ?? 0) >= until;
}

/** The step that a worker which has taken over says that it runs (docs/table.md, head). */
function runningLine({ head, view }: TaskRecord): StepLine[] {
  const { running, waiting } = head;
  if (running === undefined || waiting === true || isTerminal(head.state)) return [];
  if (view.end !== undefined || view.steps.has(running) || view.open.has(running)) return [];
  return [{ ...BLANK, name: running, kind: "run", state: "running", beganAt: null }];
}

/** Whether nothing more comes: its end is put, if perhaps not published yet. */
export function isEnded({ head, view }: Pick<TaskRecord, "head" | "view">): boolean {
  return view.end !== undefined || isTerminal(head.state);
}

/** The approvals that were denied, and the delegations that came to nothing, with what their handler is thrown. */
async function failures({ view, text }: TaskRecord): Promise<Map<string, StepLine["error"]>> {
  const failed = new Map<string, StepLine["error"]>();
  for (const { name, kind, child } of view.open.values()) {
    const answer = view.answers.get(name);
    const told = view.heard.get(name)?.outcome;
    if (kind === "approve" && answer !== undefined) {
      const read = approval.safeParse(JSON.parse((await text(answer.value)) ?? "null")).data;
      if (read?.approve === false)
        failed.set(name, { name: "ApprovalDenied", message: read.denyReason || "approval was denied" });
    }
    if (child !== undefined && told !== undefined) {
      const read = outcome.safeParse(JSON.parse((await text(told)) ?? "null")).data;
      const error = read && failureOf(name, child, read);
      if (error !== undefined)
        failed.set(name, { name: error.name, code: error.code, message: error.message });
    }
  }
  return failed;
}
