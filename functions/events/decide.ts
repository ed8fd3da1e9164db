import { errorMessage } from "../../shared/events/drafts.ts";
import type { Result } from "../../shared/policy/choosing/outcomes.ts";
import { type ChildOutcome, MAX_CHILD_ARTIFACTS, resultOf } from "../../shared/tasks/delegation.ts";
import { fold, type Told } from "../../shared/tasks/fold.ts";
import type { Child, Entry, Heard } from "../../shared/tasks/items.ts";
import { isTerminal, type TaskEvent } from "../../shared/wire/index.ts";

/** The longest text about a child's progress that is kept, in characters: what `step.status` takes. */
const MAX_TEXT = 2_000;
/** The longest code of an error, in characters: executors may use codes of their own. */
const MAX_CODE = 100;
/** The largest reference to an artifact that is kept, in bytes as JSON: each run reads them all. */
export const MAX_REF_BYTES = 4_096;
/** How close texts about the progress may follow each other, in milliseconds. */
const MIN_PAUSE_MS = 1_000;
/** And as a part of the time for which the child has been at work: a year of progress is then some 1,400 texts. */
const PAUSE_SHARE = 0.01;

const NO_ANSWER = "questions of delegated tasks are not answered";

/** What an event puts into the journal of the parent, its texts not kept yet. */
export type Hearing = Pick<Heard, "step" | "revision" | "taskId"> & {
  readonly text?: string;
  readonly artifact?: string;
  readonly outcome?: string;
};

/** What becomes of an event. */
export type Decision =
  | {
      /** `known`: the journal has it already, or need not have it. */
      readonly kind: "put" | "known";
      readonly step: string;
      readonly heard?: Hearing;
      /** What it tells of the executor, where that was chosen for its skill. */
      readonly result?: Result;
      /** Why the executor is to stop. */
      readonly cancel?: string;
    }
  /** It is to be terminated. */
  | { readonly kind: "refuse"; readonly reason: string };

/** A step that has handed a task on, as it was opened. */
interface Delegation {
  readonly step: string;
  readonly child: Child;
  readonly since: number;
}

/**
 * Decides what an event of an executor means to the task that has delegated (docs/tasks.md, delegation).
 *
 * @param entries the parent's journal, whole and in order
 * @param of.at the time at which it would be put
 * @param of.step the step that the executor's task is bound to, where the event does not carry the message's id
 */
export function decide(
  entries: readonly Entry[],
  event: TaskEvent,
  of: { readonly at: number; readonly step?: string | undefined },
): Decision {
  const delegation = delegationOf(entries, event, of.step);
  if (delegation === undefined) return { kind: "refuse", reason: "no such delegation" };
  const { step, child } = delegation;
  const view = fold(entries);
  const told = view.heard.get(step);
  const reason = problem(event, child, told);
  if (reason !== undefined) return { kind: "refuse", reason };
  const over = view.end !== undefined || view.steps.has(step);
  if (over || told?.outcome !== undefined) return late(event, step, told);
  const news = newsOf(event, delegation, told, of.at);
  if (news === undefined) return { kind: "known", step };
  const { taskId } = event;
  const heard = { step, revision: Math.max(1, event.revision), ...(taskId !== undefined && { taskId }) };
  const asks = isQuestion(event) && !isEnd(event);
  const result =
    news.outcome === undefined || child.bySkill !== true ? undefined : resultOf(outcomeOf(event));
  return {
    kind: "put",
    step,
    heard: { ...heard, ...news },
    ...(result && { result }),
    ...(asks && { cancel: NO_ANSWER }),
  };
}

function delegationOf(
  entries: readonly Entry[],
  { messageId }: TaskEvent,
  step: string | undefined,
): Delegation | undefined {
  for (const { opens = [], at } of entries)
    for (const { name, child } of opens)
      if (child !== undefined && (step === undefined ? child.messageId === messageId : name === step))
        return { step: name, child, since: at };
  return undefined;
}

/** Why an event is not one of this delegation. */
function problem(event: TaskEvent, child: Child, told: Told | undefined): string | undefined {
  if (event.from !== child.to) return `expected an event of ${child.to}, the executor of this delegation`;
  if (event.kind === "rejected") {
    if (event.taskKey !== `msg_${child.messageId}`) return "rejected: expected the key of the message";
    return told?.taskId === undefined ? undefined : "rejected: the task has been accepted";
  }
  if (event.taskId === undefined || event.taskId !== event.taskKey)
    return `${event.kind}: expected the task's id as its key`;
  if (told?.taskId !== undefined && event.taskId !== told.taskId)
    return "expected the id under which the task was accepted";
  return undefined;
}

/** A child that asks cannot be answered, so that is its end for us. */
function isQuestion({ state }: TaskEvent): boolean {
  return state === "TASK_STATE_INPUT_REQUIRED" || state === "TASK_STATE_AUTH_REQUIRED";
}

/** A `result` is the end, whatever state it names. */
function isEnd({ kind, state }: TaskEvent): boolean {
  return kind === "rejected" || kind === "result" || isTerminal(state);
}

/** What comes when nobody waits any more: a child that is still at work is to stop. */
function late(event: TaskEvent, step: string, told: Told | undefined): Decision {
  if (isEnd(event)) return { kind: "known", step };
  if (isQuestion(event)) return { kind: "known", step, cancel: NO_ANSWER };
  // One that has rejected the task before may be at work on it all the same.
  const works = event.kind === "accepted" && (told?.outcome === undefined || told.taskId === undefined);
  return { kind: "known", step, ...(works && { cancel: "nobody waits for it any more" }) };
}

/** What an event tells that the journal has not. */
function newsOf(
  event: TaskEvent,
  { child, since }: Delegation,
  told: Told | undefined,
  at: number,
): Omit<Hearing, "step" | "revision" | "taskId"> | undefined {
  // Whatever its revision: existing executors give artifacts higher ones than the result that follows them.
  if (isEnd(event) || isQuestion(event)) return { outcome: JSON.stringify(outcomeOf(event)) };
  switch (event.kind) {
    case "accepted":
      return told?.taskId === undefined ? {} : undefined;
    case "artifact": {
      if (event.artifact === undefined || told?.artifacts.has(Math.max(1, event.revision))) return undefined;
      if ((told?.artifacts.size ?? 0) >= MAX_CHILD_ARTIFACTS) return undefined;
      const artifact = JSON.stringify(event.artifact);
      return Buffer.byteLength(artifact) > MAX_REF_BYTES ? undefined : { artifact };
    }
    default: {
      if (child.progress !== true || event.content === "") return undefined;
      if (event.revision <= (told?.text?.revision ?? 0)) return undefined;
      const pause = Math.max(MIN_PAUSE_MS, (at - since) * PAUSE_SHARE);
      if (told?.text !== undefined && at - told.text.at < pause) return undefined;
      return { text: event.content.slice(0, MAX_TEXT).toWellFormed() };
    }
  }
}

function outcomeOf({ state, content, error, result }: TaskEvent): ChildOutcome {
  return {
    state,
    text: content,
    artifacts: [...(result?.artifacts ?? [])],
    metrics: result?.metrics ?? {},
    ...(error !== null && {
      error: { code: error.code.slice(0, MAX_CODE).toWellFormed(), message: errorMessage(error.message) },
    }),
  };
}
