import type { View } from "../../tasks/fold.ts";
import type { Kept } from "../../tasks/items.ts";
import { taskState } from "../../wire/states.ts";
import * as z from "../../zod.ts";
import { kindOf, STEPS, TELLING } from "./names.ts";
import { isOver } from "./told.ts";

/** What of an exchange's result tells how it stands at the remote; see `Told`. */
const standing = z.whenUsed(() =>
  z.object({
    taskId: z.optional(z.string()),
    contextId: z.optional(z.string()),
    state: z.optional(taskState()),
    whole: z.optional(z.literal(true)),
    trouble: z.optional(z.object({ unsure: z.optional(z.boolean()) })),
  }),
);
export type Standing = z.Used<typeof standing>;

/** How a message can be looked for: what is stored before it is sent. */
export const called = z.whenUsed(() => z.object({ messageId: z.string(), contextId: z.string() }));
export type Called = z.Used<typeof called>;

/** What a journal tells of its task at the remote agent. */
export interface Journaled {
  /** A message was about to be sent, and nothing is stored of what became of it. */
  readonly underWay: boolean;
  /** The last message. */
  readonly called: Called | undefined;
  /** The result of the last exchange. */
  readonly last: Kept | undefined;
}

/** Whether a journal tells of a message to a remote agent at all, and of the last thing that came back. */
export function journaled({ steps }: Pick<View, "steps">): Journaled | undefined {
  let underWay = false;
  let last: Kept | undefined;
  let call: Kept | undefined;
  for (const { name, value, error } of steps.values()) {
    const kind = kindOf(name);
    if (kind === STEPS.call) {
      underWay = true;
      if (error === undefined) call = value;
    }
    // An exchange that was cut off tells nothing: what was told before it holds, and its message may have arrived.
    if (error !== undefined) continue;
    if (kind === STEPS.send || kind === STEPS.reply) underWay = false;
    if (kind !== undefined && TELLING.includes(kind)) last = value;
  }
  if (call === undefined) return undefined;
  const message = "text" in call ? called().safeParse(JSON.parse(call.text || "{}")).data : undefined;
  return { underWay, called: message, last };
}

/** Reads the result of an exchange. */
export function standingOf(text: string): Standing {
  return standing().safeParse(JSON.parse(text || "{}")).data ?? {};
}

/**
 * Whether the remote may still be at work on a task that is over here, as far as the journal itself tells: what lies in the
 * bucket is not read for it.
 */
export function mayBeOpen(view: Pick<View, "steps">): boolean {
  const told = journaled(view);
  if (told === undefined) return false;
  if (told.underWay || told.last === undefined || !("text" in told.last)) return true;
  return isOpen(standingOf(told.last.text));
}

/** Whether there is a task at the remote, or may be, that is not over. */
export function isOpen({ taskId, state, whole, trouble }: Standing): boolean {
  if (isOver({ ...(state !== undefined && { state }), ...(whole !== undefined && { whole }) })) return false;
  return taskId !== undefined || trouble?.unsure === true;
}
