import type { TaskState } from "../wire/index.ts";
import type { Answer, Entry, Head, Heard, Kept, OpenedStep, StoredEvent, StoredStep } from "./items.ts";

/** A step that waits, with the time at which it began to. */
export type Waiting = OpenedStep & { readonly since: number };

/** What the executor of a delegated task has told so far. */
export interface Told {
  /** The highest revision that was applied. */
  readonly revision: number;
  /** When the last of it was put. */
  readonly at: number;
  /** The task's id at its executor. */
  readonly taskId?: string;
  /** The newest text about the progress. */
  readonly text?: { readonly kept: Kept; readonly revision: number; readonly at: number };
  /** References to artifacts as JSON texts, by the revisions of their events. */
  readonly artifacts: ReadonlyMap<number, Kept>;
  /** How it has ended; see `outcome` in delegation.ts. */
  readonly outcome?: Kept;
}

/** What a journal says of its task, up to a place. Made by {@link emptyView} and {@link foldEntry}. */
export interface View {
  /** The steps that are done, with the time at which each was stored. */
  readonly steps: Map<string, StoredStep & { readonly at: number }>;
  /** The steps that wait, in the order in which they began to. */
  readonly open: Map<string, Waiting>;
  /** What was answered to questions whose steps are not asked anew, by the step's name. */
  readonly answers: Map<string, Answer & { readonly at: number }>;
  /** What was told to steps that have delegated and whose failure is not stored, by the step's name. */
  readonly heard: Map<string, Told>;
  /** The question that is open: asked, and neither answered nor given up. */
  question: Waiting | undefined;
  /** How long persons have had the task, questions that are closed alone, in milliseconds. */
  personsMs: number;
  /** The last status event, and when it went into the journal. */
  lastStatus: { readonly at: number; readonly event: StoredEvent } | undefined;
  /** Takeovers since a step was last stored, opened, answered or done by another: the epoch of each. */
  claims: number[];
  /** Whether any step was stored, opened, answered or done by another. */
  begun: boolean;
  end: Entry["end"];
}

export function emptyView(): View {
  return {
    steps: new Map(),
    open: new Map(),
    answers: new Map(),
    heard: new Map(),
    question: undefined,
    personsMs: 0,
    lastStatus: undefined,
    claims: [],
    begun: false,
    end: undefined,
  };
}

/** Takes an entry into the view. Entries come in order of their places. */
export function foldEntry(view: View, entry: Entry): void {
  for (const step of entry.steps ?? []) {
    if (!view.steps.has(step.name)) view.steps.set(step.name, { ...step, at: entry.at });
    view.open.delete(step.name);
    view.answers.delete(step.name);
    view.heard.delete(step.name);
    if (view.question?.name === step.name) closeQuestion(view, entry.at);
  }
  for (const opened of entry.opens ?? []) {
    const waiting = { ...opened, since: entry.at };
    view.open.delete(opened.name);
    view.open.set(opened.name, waiting);
    view.answers.delete(opened.name);
    if (opened.asked !== undefined) {
      closeQuestion(view, entry.at);
      view.question = waiting;
    }
  }
  if (entry.answer !== undefined) {
    view.answers.set(entry.answer.step, { ...entry.answer, at: entry.at });
    if (view.question?.name === entry.answer.step) closeQuestion(view, entry.at);
  }
  if (entry.heard !== undefined && !view.steps.has(entry.heard.step)) hear(view, entry.heard, entry.at);
  const further = entry.answer ?? entry.heard?.outcome;
  if (entry.steps !== undefined || entry.opens !== undefined || further !== undefined) {
    view.begun = true;
    view.claims = [];
  }
  if (entry.claim === true) view.claims.push(entry.epoch);
  const event = entry.events?.findLast(({ kind }) => kind === "status");
  if (event !== undefined) view.lastStatus = { at: entry.at, event };
  view.end ??= entry.end;
}

function hear(view: View, { step, revision, taskId, text, artifact, outcome }: Heard, at: number): void {
  const told = view.heard.get(step);
  const artifacts = new Map(told?.artifacts);
  if (artifact !== undefined) artifacts.set(revision, artifact);
  view.heard.set(step, {
    ...told,
    revision: Math.max(revision, told?.revision ?? 0),
    at,
    artifacts,
    ...(told?.taskId === undefined && taskId !== undefined && { taskId }),
    ...(text !== undefined && { text: { kept: text, revision, at } }),
    ...(told?.outcome === undefined && outcome !== undefined && { outcome }),
  });
}

function closeQuestion(view: View, at: number): void {
  if (view.question !== undefined) view.personsMs += Math.max(0, at - view.question.since);
  view.question = undefined;
}

/** The view of a whole journal. */
export function fold(entries: Iterable<Entry>): View {
  const view = emptyView();
  for (const entry of entries) foldEntry(view, entry);
  return view;
}

const DAY_MS = 24 * 60 * 60 * 1_000;

/** The last time at which a task may live: a day before its items are deleted, for its end must still be told. */
export function lifeEnd({ expiresAt }: Pick<Head, "expiresAt">): number {
  return expiresAt * 1_000 - DAY_MS;
}

/**
 * When the task is over at the latest, in milliseconds since 1970: what persons take is not the task's time, so while
 * a question is open there is no such time (docs/tasks.md, deadlines).
 */
export function deadlineOf(head: Pick<Head, "deadline" | "expiresAt">, view: View): number {
  if (view.question !== undefined) return Number.POSITIVE_INFINITY;
  return Math.min(head.deadline + view.personsMs, Math.max(head.deadline, lifeEnd(head)));
}

/** The state that a live task is in, as its requester knows it. */
export function stateOf(view: View): TaskState {
  if (view.end !== undefined) return view.end.state;
  if (view.question === undefined) return "TASK_STATE_WORKING";
  return view.question.kind === "approve" ? "TASK_STATE_AUTH_REQUIRED" : "TASK_STATE_INPUT_REQUIRED";
}

/**
 * How many claims in a row, up to the one in force, have brought the task no further. A worker that left it in good
 * order has not failed.
 */
export function fruitlessClaims(head: Pick<Head, "calm">, view: View): number {
  const calm = head.calm ?? 0;
  const claims = view.claims.filter((epoch) => epoch > calm).length;
  // The first claim of a task leaves no entry.
  return claims + (!view.begun && calm === 0 ? 1 : 0);
}
