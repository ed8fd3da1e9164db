import type { View } from "../../tasks/fold.ts";
import type { Values } from "../../tasks/values.ts";
import { type Exchange, RemoteError, type RemoteErrorCode } from "../exchange/index.ts";
import type { Front } from "./front.ts";
import { TELL_END_MS, UNDER_WAY_MS } from "./limits.ts";
import { type Called, isOpen, journaled, standingOf } from "./open.ts";

/**
 * What may be otherwise at the next attempt: who we are to it (credentials change, and not on both sides at once), what may
 * be reached, and what stands between us and it that answers in its place. Otherwise the remote would work on for nobody.
 */
const PASSING: ReadonlySet<RemoteErrorCode> = new Set(["refused", "not_allowed", "protocol", "too_large"]);

/** How long one attempt to tell the remote may take, in milliseconds: whoever ends a task has little time left. */
const ATTEMPT_MS = 8_000;

/**
 * What came of telling the remote that its task is not wanted any more:
 *
 * - `nothing`: it has none, or is done with it
 * - `told`: it knows
 * - `refused`: it does not cancel this task, or has no such thing
 * - `unknown`: whether it has the message cannot be found out
 * - `gave_up`: it could not be told for so long that nobody tries any more
 * - `later`: it could not be told, and is to be told again
 */
export type Release = "nothing" | "told" | "refused" | "unknown" | "gave_up" | "later";

/** What the journal of a task says that is over here. */
export interface Ended {
  readonly view: Pick<View, "steps">;
  /** In milliseconds since 1970. */
  readonly endedAt: number;
}

/**
 * Tells a remote agent that a task is over here which it may still be at work on: cancels it there. It may be repeated, by
 * several at once.
 *
 * @throws when the bucket cannot be read
 */
export async function release(
  { values, front }: { readonly values: Pick<Values, "text">; readonly front: Front },
  { view, endedAt }: Ended,
): Promise<Release> {
  const told = journaled(view);
  if (told === undefined) return "nothing";
  const standing = told.last === undefined ? {} : standingOf(await values.text(told.last));
  if (!told.underWay && !isOpen(standing)) return "nothing";
  const age = (front.now() - endedAt) * front.scale;
  try {
    const signal = AbortSignal.timeout(ATTEMPT_MS);
    return await front.ask(async (exchange) => {
      const taskId = standing.taskId ?? (await find(exchange, told.called, signal));
      if (taskId === "unknown") return "unknown";
      // A message that was under way when its task ended may arrive later.
      if (taskId === "none") return age < UNDER_WAY_MS ? "later" : "nothing";
      const { outcome } = await exchange.cancel(taskId, signal);
      if (outcome === "unsupported") return "refused";
      return outcome === "over" || outcome === "gone" ? "nothing" : "told";
    });
  } catch (error) {
    if (error instanceof RemoteError && !error.retryable && !PASSING.has(error.code)) return "refused";
    return age < TELL_END_MS ? "later" : "gave_up";
  }
}

/** The id of the task that a message has made of which nobody knows whether it has arrived. */
async function find(
  exchange: Exchange,
  called: Called | undefined,
  signal: AbortSignal,
): Promise<string | "none" | "unknown"> {
  const found = called === undefined ? "unknown" : await exchange.find(called, signal);
  return typeof found === "string" ? found : (found.taskId ?? "none");
}
