import * as z from "zod";
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
  const denied = await denials(record);
  const lines = [
    ...[...view.steps.values()].map((step) => storedLine(step, opened.get(step.name))),
    ...[...view.open.values()].map((step) => openLine(record, step, { now, opened, denied })),
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
  readonly denied: ReadonlyMap<string, string>;
}

function openLine(record: TaskRecord, step: Waiting, { now, opened, denied }: Known): StepLine {
  const { view, head } = record;
  const { name, kind, until, child } = step;
  const answer = view.answers.get(name);
  const denial = denied.get(name);
  const over = answer?.at ?? (kind === "sleep" && isOver(record, step, now) ? until : undefined);
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
  if (over !== undefined && denial === undefined)
    return { ...line, state: "done", endedAt: over, until: null };
  if (over !== undefined)
    return {
      ...line,
      state: "failed",
      endedAt: over,
      until: null,
      error: { name: "ApprovalDenied", message: denial ?? "" },
    };
  const asks = kind === "ask" || kind === "approve";
  if (isEnded(record) || (asks && view.question?.name !== name))
    return { ...line, state: "dropped", until: null };
  if (asks) return { ...line, state: "asked", waitsFor: head.from };
  if (child !== undefined) return { ...line, waitsFor: child.to, skill: child.skill };
  if (kind === "run" && head.waiting !== true && (until ?? 0) <= now)
    return { ...line, state: "running", until: null, attempts: line.attempts + 1 };
  return line;
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

/** The approvals that were denied, and why. */
async function denials({ view, text }: TaskRecord): Promise<Map<string, string>> {
  const denied = new Map<string, string>();
  for (const [name, { value }] of view.answers) {
    if (view.open.get(name)?.kind !== "approve") continue;
    const answer = approval.safeParse(JSON.parse((await text(value)) ?? "null")).data;
    if (answer?.approve === false) denied.set(name, answer.denyReason || "approval was denied");
  }
  return denied;
}
