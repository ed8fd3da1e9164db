import { isTerminal, type TaskEvent, type TaskState } from "../shared/wire/index.ts";
import { findTask, isQuestion, sendControl } from "./control.ts";
import { CliError, EXIT } from "./errors.ts";
import type { TaskView } from "./fold.ts";
import type { Common } from "./options.ts";
import { endText, eventLine, stateName, waitText } from "./render.ts";
import { inSession } from "./session.ts";
import { awaitEvent } from "./task.ts";

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

/** Sends an answer as the task's sender, and waits until the executor has taken it or asks again. */
export async function answer(
  taskId: string,
  answering: Answering,
  { from, timeout, ...given }: Common & { readonly from?: string | undefined; readonly timeout: number },
): Promise<number> {
  return inSession(given, async ({ nc, out, interrupted }) => {
    await using task = await findTask(nc, taskId, from);
    const { view, feed } = task;
    refuseIfNotAsked(view, answering);
    const known = await sendControl(nc, view, answering);
    out.line(`${"sent".padEnd(10)} ${answering.kind} to ${view.executor}`);
    if (known)
      out.note("an answer to this question was on its way already; it counts, and this one does not");
    out.waitingFor(`waiting for ${view.executor}`);
    const effect = await awaitEvent(
      feed,
      { taskId },
      {
        timeoutMs: timeout * 1_000,
        signal: interrupted,
        wanted: (event) => event.revision > view.revision && event.kind !== "artifact",
        what: "did not take the answer",
        onEvent: (event) => out.record(event),
      },
    );
    out.done();
    out.line(isTerminal(effect.state) ? endText(effect, out.colours) : eventLine(effect, out.colours));
    if (isQuestion(effect)) out.line(waitText(effect));
    return exitCodeOf(effect, answering);
  });
}

/** @throws CliError `failed` when the task does not ask for such an answer */
function refuseIfNotAsked(view: TaskView, { kind }: Answering): void {
  const { task, state } = view;
  if (state === ANSWERS[kind]) return;
  if (isTerminal(state)) throw new CliError(EXIT.failed, `task ${task} is over already: ${stateName(state)}`);
  if (!isQuestion(view))
    throw new CliError(EXIT.failed, `task ${task} asks nothing now: ${stateName(state)}`);
  throw new CliError(EXIT.failed, `task ${task}: ${waitText({ state, taskKey: task, to: view.delegator })}`);
}

/** Whether the answer was taken. A denial has no event of its own: what it leads to tells. */
function exitCodeOf({ state, error }: TaskEvent, { kind, a2a }: Answering): number {
  if (state === "TASK_STATE_WORKING" || state === "TASK_STATE_COMPLETED") return EXIT.ok;
  const denied = kind === "auth_reply" && !a2a.approve && error?.code === "auth_not_satisfied";
  return denied ? EXIT.ok : EXIT.failed;
}
