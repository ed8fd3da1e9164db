import * as z from "zod";
import type { Outcome, Step } from "../../agents/types.ts";
import type { Part } from "../../wire/index.ts";
import { hold } from "../hitl/hold.ts";
import { Observing, progressOf } from "../observed/observing.ts";
import { ownPart } from "./artifacts.ts";
import { Conversation, RemoteTaskError } from "./conversation.ts";
import type { Front, FrontTask } from "./front.ts";
import { MAX_QUESTION, MAX_STALE_QUESTIONS } from "./limits.ts";
import { STEPS, TALK } from "./names.ts";
import { outcomeOf } from "./outcome.ts";
import { shownOf } from "./terms.ts";
import { asks, isOver, isSameQuestion, type Told } from "./told.ts";
import { words } from "./words.ts";

/**
 * Does a task by having a remote agent do it (docs/remotes.md, "An agent that is a remote one"): sends it, passes on what comes
 * of it, and what either side asks of the other. If the task ends in another way than the remote's, the remote is told by
 * whoever settles it (release.ts).
 *
 * @throws RemoteTaskError, ApprovalDenied, ReplyTimeout
 */
export async function runFront(task: FrontTask, step: Step, front: Front): Promise<Outcome> {
  const talk = step.branch(TALK);
  const progress = (text: string) => {
    const plain = words(text, MAX_QUESTION);
    if (plain !== "") step.status(plain);
  };
  const { approvalMs, ...held } = await talk.run(STEPS.plan, () => front.terms(task.skill));
  const conversation = new Conversation({ task, talk, front, held, progress });
  const observing = new Observing();
  let checkpoint = 0;
  /** Nothing is sent that somebody must agree to, before that is so. */
  const agreed = async (parts: readonly Part[]) => {
    const { remote, scale } = front;
    const about = { remote, scale, skill: task.skill, what: shownOf(parts), checkpoint: ++checkpoint };
    await hold(talk, { ...held, ...about, ...(approvalMs !== undefined && { approvalMs }) });
    return parts;
  };
  try {
    let told = await conversation.send(await agreed(task.message.parts));
    for (let answered: Told | undefined, stale = 0; ; ) {
      await giveOut(step, told);
      observe(step, observing, told);
      if (isOver(told)) return outcomeOf(front.remote, told, conversation, observing.metrics);
      if (!asks(told)) {
        if (told.says !== undefined) progress(told.says.text);
        told = await conversation.look();
      } else if (answered !== undefined && stale < MAX_STALE_QUESTIONS && isSame(told, answered)) {
        stale++;
        told = await conversation.look();
      } else {
        const asked = told;
        const answer = await answerTo(talk, front.remote, asked);
        told = await conversation.reply(await agreed(answer), asked);
        answered = asked;
        stale = 0;
      }
    }
  } catch (error) {
    if (error instanceof RemoteTaskError) error.metrics ??= observing.metrics;
    throw error;
  } finally {
    const { notes } = observing;
    if (notes.length > 0) step.log("values of extensions could not be read", { remote: front.remote, notes });
    await conversation.close();
  }
}

/** Each value once, however often the handler is run; what is new of tools and changes is told at once. */
function observe(step: Step, observing: Observing, { observed }: Told): void {
  const news = progressOf(observing.take(observed));
  if (news !== undefined) step.status(words(news.text, MAX_QUESTION), news.data);
}

/** Each piece once, however often the handler is run. */
async function giveOut(step: Step, { artifacts }: Told): Promise<void> {
  for (const { as, parts, grows } of artifacts)
    await step.artifact(as, parts.map(ownPart), { append: grows });
}

function isSame({ state, says }: Told, answered: Told): boolean {
  return isSameQuestion({ ...(state !== undefined && { state }), ...(says && { message: says }) }, answered);
}

/**
 * Asks our requester what the remote asks.
 *
 * @throws ApprovalDenied, ReplyTimeout
 */
async function answerTo(talk: Step, remote: string, { state, says }: Told): Promise<readonly Part[]> {
  const prompt = words(says?.text ?? "", MAX_QUESTION);
  if (state === "TASK_STATE_AUTH_REQUIRED") {
    await talk.approve(STEPS.authorization, prompt || `${remote} asks for an authorization.`);
    return [{ text: "approved" }];
  }
  const answer = await talk.ask(STEPS.question, prompt || `${remote} asks for more.`, {
    schema: z.unknown(),
  });
  return [typeof answer === "object" && answer !== null ? { data: answer } : { text: String(answer) }];
}
