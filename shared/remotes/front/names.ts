/**
 * The steps by which a task goes to a remote agent and comes back. Who looks at a journal from outside (whether the remote
 * must be told that a task is over) knows them by these names.
 */

/** The branch that they are in: artifacts are given out outside it, under names of the remote's. */
export const TALK = "remote";

export const STEPS = {
  /** What holds for the whole task. */
  plan: "plan",
  /** A message is about to be sent: it is stored before, so that nobody sends it again who does not know what became of it. */
  call: "call",
  /** The first message. */
  send: "send",
  /** An answer to what the remote has asked. */
  reply: "reply",
  /** A look at how it stands. */
  look: "look",
  pause: "pause",
  question: "question",
  authorization: "authorization",
} as const;

/** The steps whose results tell how it stands at the remote. */
export const TELLING: readonly string[] = [STEPS.send, STEPS.reply, STEPS.look];

/** Which of the names a step's identity is a use of; nothing, of other steps. */
export function kindOf(id: string): string | undefined {
  return id.startsWith(`${TALK}/`) ? id.slice(TALK.length + 1).replace(/#\d+$/, "") : undefined;
}
