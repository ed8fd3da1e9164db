import { isTerminal, type TaskEvent, type TaskState } from "../shared/wire/index.ts";
import { findTask, isQuestion, notSent, type Subject, sendControl } from "./control.ts";
import { CliError, EXIT } from "./errors.ts";
import type { TaskView } from "./fold.ts";
import type { Common } from "./options.ts";
import type { Output } from "./output.ts";
import { endText, eventLine, stateName, viewWaitText, waitText } from "./render.ts";
import { inSession } from "./session.ts";
import { awaitEvent, type Following } from "./task.ts";

/** An answer to a task's question, as a control carries it (docs/wire.md §9). */
export type Answering =
  | { readonly kind: "input_reply"; readonly a2a: { readonly input: unknown } }
  | {
      readonly kind: "auth_reply";
      readonly a2a: { readonly approve: boolean; readonly denyReason?: string };
    };

const ANSWERS: Readonly<Record<Answering["kind"], TaskState>> = {
  input_reply: "TASK_STATE_INPUT_REQUIRED",
  auth_reply: "TASK_STATE_AUTH_REQUIRED",
};

/** How long an executor that has said that it has the answer may take to say that it cannot use it. */
const SETTLE_MS = 2_000;

/** Sends an answer as the task's sender, and waits until the executor has taken it or asks again. */
export async function answer(
  id: string,
  answering: Answering,
  { from, timeout, ...given }: Common & { readonly from?: string | undefined; readonly timeout: number },
): Promise<number> {
  return inSession(given, async ({ nc, out, interrupted }) => {
    await using task = await findTask(nc, id, from);
    const { view } = task;
    refuseIfNotAsked(view, answering, out);
    const known = await sendControl(nc, view, answering);
    out.line(`${"sent".padEnd(10)} ${answering.kind} to ${view.executor}`);
    if (known)
      out.note("an answer to this question was on its way already; it counts, and this one does not");
    out.waitingFor(`waiting for ${view.executor}`);
    const showEffect = (event: TaskEvent) => {
      out.line(isTerminal(event.state) ? endText(event, out.colours) : eventLine(event, out.colours));
      if (isQuestion(event)) out.line(waitText(event));
    };
    const effects = await effectsOf(task, answering, {
      timeoutMs: timeout * 1_000,
      signal: interrupted,
      onEvent: (event) => out.record(event),
      onEffect: showEffect,
    });
    out.done();
    return exitCodeOf(effects, answering, task.prompts);
  });
}

/**
 * What the executor says to an answer. Some say at once that they have it, and only then look whether it will do, so
 * the event after that is waited for as well, for a while.
 */
async function effectsOf(
  { view, feed }: Subject,
  { kind }: Answering,
  { onEffect, ...following }: Following & { readonly onEffect: (event: TaskEvent) => void },
): Promise<TaskEvent[]> {
  const effects: TaskEvent[] = [];
  const settled = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const wanted = (event: TaskEvent) => {
    if (event.revision <= view.revision || event.kind === "artifact") return false;
    effects.push(event);
    onEffect(event);
    const mayAskAgain = kind === "input_reply" && event.state === "TASK_STATE_WORKING";
    if (effects.length > 1 || !mayAskAgain) return true;
    timer = setTimeout(() => settled.abort(), SETTLE_MS);
    return false;
  };
  const signal = AbortSignal.any([settled.signal, ...(following.signal ? [following.signal] : [])]);
  try {
    await awaitEvent(
      feed,
      { taskId: view.task },
      { ...following, signal, wanted, what: "did not take the answer" },
    );
  } catch (error) {
    if (effects.length === 0) throw error;
  } finally {
    clearTimeout(timer);
  }
  return effects;
}

/** @throws CliError `failed` when the task does not ask for such an answer; programs are told its state */
function refuseIfNotAsked(view: TaskView, { kind }: Answering, out: Pick<Output, "record">): void {
  const { task, state } = view;
  if (state === ANSWERS[kind]) return;
  out.record(notSent(view));
  if (isTerminal(state)) throw new CliError(EXIT.failed, `task ${task} is over already: ${stateName(state)}`);
  if (!isQuestion(view))
    throw new CliError(EXIT.failed, `task ${task} asks nothing now: ${stateName(state)}`);
  throw new CliError(EXIT.failed, `task ${task}: ${viewWaitText(view)}`);
}

/** Whether the answer was taken. A denial has no event of its own: what it leads to tells. */
function exitCodeOf(
  [effect, next]: readonly TaskEvent[],
  { kind, a2a }: Answering,
  prompts: readonly string[],
): number {
  if (next !== undefined && isAskedAgain(next, prompts)) return EXIT.failed;
  if (effect?.state === "TASK_STATE_WORKING" || effect?.state === "TASK_STATE_COMPLETED") return EXIT.ok;
  const denied = kind === "auth_reply" && !a2a.approve && effect?.error?.code === "auth_not_satisfied";
  return denied ? EXIT.ok : EXIT.failed;
}

/** Whether a question is an old one with a reason before it (docs/wire.md §9), and not the handler's next. */
function isAskedAgain(event: TaskEvent, prompts: readonly string[]): boolean {
  return isQuestion(event) && prompts.some((prompt) => event.content.endsWith(`\n\n${prompt}`));
}
