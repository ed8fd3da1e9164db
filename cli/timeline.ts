import * as z from "zod";
import { kindOf, TELLING } from "../shared/remotes/front/names.ts";
import type { Waiting } from "../shared/tasks/fold.ts";
import type { Child, Entry, StoredStep } from "../shared/tasks/items.ts";
import { isTerminal } from "../shared/wire/index.ts";
import { outcomesOf, type StepOutcome } from "./outcomes.ts";
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
  /** The runtime, or `the operator`, that must answer or work; of a delegation also afterwards. */
  readonly waitsFor: string | null;
  /** For a delegation the skill that was asked for. */
  readonly skill: string | null;
  /** How it failed for good, or how its last attempt did; of a step of a remote agent's that is done, why it was in vain. */
  readonly error: {
    readonly name: string;
    readonly message: string;
    readonly code?: string | undefined;
  } | null;
}

/**
 * The steps of a task in the order in which they began.
 *
 * @param now by which it is told what is over
 */
export async function timelineOf(record: TaskRecord, now: number): Promise<StepLine[]> {
  const { view, entries } = record;
  const opened = firstOpened(entries);
  const outcomes = await outcomesOf(record);
  const lines = [
    ...[...view.steps.values()].map((step) => storedLine(step, opened.get(step.name))),
    ...[...view.open.values()].map((step) => openLine(record, step, { now, opened, outcomes })),
    ...runningLine(record),
  ];
  const last = Number.POSITIVE_INFINITY;
  return lines.sort((one, other) => (one.beganAt ?? last) - (other.beganAt ?? last) || 0);
}

/** When a step that has waited began, and for whom it waited. */
interface Opened {
  readonly at: number;
  readonly child?: Child | undefined;
}

/** The beginnings of the steps that have waited. */
function firstOpened(entries: readonly Entry[]): Map<string, Opened> {
  const first = new Map<string, Opened>();
  for (const { at, opens = [] } of entries)
    for (const { name, child, began = at } of opens)
      if (!first.has(name)) first.set(name, { at: began, child });
  return first;
}

const BLANK = { attempts: 1, until: null, waitsFor: null, skill: null, error: null, endedAt: null } as const;

function ofChild({ to, skill }: Child): Pick<StepLine, "waitsFor" | "skill"> {
  return { waitsFor: to, skill };
}

function storedLine(step: StoredStep & { readonly at: number }, opened: Opened | undefined): StepLine {
  const { name, kind, at, ms, attempts = 1, error } = step;
  const came = error ?? troubleIn(step);
  return {
    ...BLANK,
    ...(opened?.child && ofChild(opened.child)),
    name,
    kind,
    state: error === undefined ? "done" : "failed",
    beganAt: Math.min(opened?.at ?? at, at - ms),
    endedAt: at,
    attempts,
    error: came ?? null,
  };
}

const troubled = z.object({ trouble: z.object({ code: z.string().optional(), reason: z.string() }) });

/**
 * Why an exchange with a remote agent has come to nothing: such a step is done, for its result says so and another step
 * tries again (docs/remotes.md, "An agent that is a remote one").
 */
function troubleIn({ name, kind, value }: StoredStep): StepLine["error"] | undefined {
  if (kind !== "run" || !TELLING.includes(kindOf(name) ?? "")) return undefined;
  if (value === undefined || !("text" in value)) return undefined;
  const { code, reason: message } = troubled.safeParse(JSON.parse(value.text || "{}")).data?.trouble ?? {};
  return message === undefined ? undefined : { name: "RemoteTrouble", message, code };
}

interface Known {
  readonly now: number;
  readonly opened: ReadonlyMap<string, Opened>;
  readonly outcomes: ReadonlyMap<string, StepOutcome>;
}

function openLine(record: TaskRecord, step: Waiting, { now, opened, outcomes }: Known): StepLine {
  const { view, head } = record;
  const { name, kind, until, child } = step;
  const line: StepLine = {
    ...BLANK,
    name,
    kind,
    state: "waiting",
    beganAt: opened.get(name)?.at ?? step.since,
    attempts: step.attempts ?? 1,
    until: until ?? null,
    error: step.error ?? null,
    ...(child && ofChild(child)),
  };
  const slept = kind === "sleep" && isOver(record, step, now) ? until : undefined;
  const outcome = outcomes.get(name) ?? (slept === undefined ? undefined : { at: slept });
  if (outcome !== undefined) return over(line, outcome);
  const asks = kind === "ask" || kind === "approve";
  if (isEnded(record) || (asks && view.question?.name !== name))
    return { ...line, state: "dropped", until: null };
  if (asks) return { ...line, state: "asked", waitsFor: whoAnswers(record) };
  if (kind === "run" && head.waiting !== true && (until ?? 0) <= now)
    return { ...line, state: "running", until: null, attempts: line.attempts + 1 };
  return line;
}

/** Who must answer the open question: the task's sender, or `the operator`, which is no runtime's id. */
export function whoAnswers({ head, view }: Pick<TaskRecord, "head" | "view">): string {
  return view.question?.by === "operator" ? "the operator" : head.from;
}

function over(line: StepLine, { at, error }: StepOutcome): StepLine {
  const state = error === undefined ? "done" : "failed";
  return { ...line, state, endedAt: at, until: null, error: error ?? null };
}

/** That a sleep is over is written down nowhere; somebody must have gone on since, or be at it. */
function isOver(record: TaskRecord, { until }: Waiting, now: number): boolean {
  if (until === undefined || until > now) return false;
  const isHeld = record.head.waiting !== true && !isEnded(record);
  return isHeld || (record.entries.at(-1)?.at ?? 0) >= until;
}

/** The step that a worker which has taken over says that it runs, or was about to at the end (docs/table.md, head). */
function runningLine({ head, view }: TaskRecord): StepLine[] {
  const { running, waiting } = head;
  if (running === undefined || waiting === true) return [];
  if (view.steps.has(running) || view.open.has(running)) return [];
  const state = isEnded({ head, view }) ? "dropped" : "running";
  return [{ ...BLANK, name: running, kind: "run", state, beganAt: null }];
}

/** Whether nothing more comes: its end is put, if perhaps not published yet. */
export function isEnded({ head, view }: Pick<TaskRecord, "head" | "view">): boolean {
  return view.end !== undefined || isTerminal(head.state);
}
