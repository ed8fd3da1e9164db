import { randomUUID } from "node:crypto";
import { fold, type Waiting } from "../tasks/fold.ts";
import type { Entry, Head } from "../tasks/items.ts";
import type { Store } from "../tasks/store.ts";
import type { Values } from "../tasks/values.ts";
import { isTerminal } from "../wire/index.ts";
import { type EventDraft, errorMessage, storedEvents } from "./drafts.ts";
import { ClaimLost, Journal, TaskEnded } from "./journal.ts";

/** How often an answer is tried again of a task that workers take up meanwhile. */
const MAX_ANSWER_TRIES = 5;

/** The operator's word on what a task asks to be approved. */
export interface Verdict {
  readonly approve: boolean;
  readonly denyReason?: string | undefined;
  /** The name of the step that asks; another's question is not answered then. Whichever it is unless said otherwise. */
  readonly step?: string | undefined;
}

/** What became of it: which step was answered, or why none was. */
export type Answered =
  | { readonly step: string }
  /** Another step asks: the one of this name. */
  | { readonly asks: string }
  | { readonly none: "unknown" | "over" | "asks nothing" | "asks its requester" };

/** What it takes to answer. */
export interface OperatorDeps {
  readonly store: Store;
  readonly values: Values;
  readonly now: () => number;
  /** Puts a hint at the task on its agent's queue. */
  readonly hint: (head: Head) => Promise<void>;
}

/**
 * Answers a question that only the operator may answer: in the task's journal, to which the operator has access and a
 * requester has not. The events that it causes are published by the worker that goes on.
 *
 * @throws what the table or the queue throws; it may be repeated: a second answer finds that nothing is asked any more
 */
export async function answerAsOperator(
  deps: OperatorDeps,
  taskId: string,
  verdict: Verdict,
): Promise<Answered> {
  for (let tries = 1; ; tries++) {
    const head = await deps.store.head(taskId);
    if (head === undefined) return { none: "unknown" };
    if (isTerminal(head.state)) return { none: "over" };
    try {
      return await answer(deps, head, verdict);
    } catch (error) {
      if (error instanceof TaskEnded) return { none: "over" };
      // Somebody has claimed the task since its head was read.
      if (!(error instanceof ClaimLost) || tries >= MAX_ANSWER_TRIES) throw error;
    }
  }
}

async function answer(deps: OperatorDeps, head: Head, verdict: Verdict): Promise<Answered> {
  const { store, values, now } = deps;
  const entries: Entry[] = [];
  const journal = new Journal({ store, head, now, took: (entry) => void entries.push(entry) });
  await journal.refresh();
  let found: Answered = { none: "asks nothing" };
  const put = await journal.append(async (at) => {
    const { question } = fold(entries);
    found = answerable(question, verdict);
    if (question === undefined || !("step" in found)) return undefined;
    return {
      control: { kind: "auth_reply", messageId: `operator_${randomUUID()}`, revision: at.revision + 1 },
      events: await storedEvents(values, head, eventsOf(verdict), at),
      answer: { step: question.name, value: await values.keep(head.taskId, answerOf(verdict)) },
    };
  });
  if (put !== undefined) await wake(deps, head.taskId, put.place);
  return found;
}

function answerable(question: Waiting | undefined, { step }: Verdict): Answered {
  if (question === undefined) return { none: "asks nothing" };
  if (question.by !== "operator") return { none: "asks its requester" };
  return step === undefined || step === question.name ? { step: question.name } : { asks: question.name };
}

/** A denial has no event of its own: what it leads to tells. */
function eventsOf({ approve }: Verdict): EventDraft[] {
  if (!approve) return [];
  return [{ kind: "status", state: "TASK_STATE_WORKING", content: "authorization received" }];
}

function answerOf({ approve, denyReason }: Verdict): string {
  const why = denyReason?.trim();
  return JSON.stringify(approve || !why ? { approve } : { approve, denyReason: errorMessage(why) });
}

/** A worker that is there finds it at its next beat; of a task that waits another takes it up. */
async function wake({ store, hint, now }: OperatorDeps, taskId: string, place: number): Promise<void> {
  const head = await store.news(taskId, place);
  if (head?.waiting !== true || isTerminal(head.state)) return;
  const { epoch, beat } = head;
  // Should the hint be lost, `sweep` finds the task.
  await store.postpone(head, now(), head.seen ?? { epoch, beat, times: 0 });
  await hint(head);
}
