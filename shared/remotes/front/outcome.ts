import type { Outcome } from "../../agents/types.ts";
import { ownPart } from "./artifacts.ts";
import { RemoteTaskError } from "./conversation.ts";
import { MAX_LAST_WORDS } from "./limits.ts";
import type { Told } from "./told.ts";
import { words } from "./words.ts";

/**
 * What a remote task that is over comes to for our requester: what the remote has said last, unless the artifacts that were
 * given out can be read in the result themselves; files of a message are given out with it.
 *
 * @param metrics what the remote has told of the task's cost and its course
 * @param of.readable whether artifacts speak for themselves
 * @throws RemoteTaskError when the remote has not completed the task, in its own words; one that was cancelled there is
 *   no success
 */
export function outcomeOf(
  remote: string,
  told: Told,
  of: { readonly readable: boolean },
  metrics: Readonly<Record<string, number>> = {},
): Outcome {
  const { state, says, whole } = told;
  if (whole !== true && state !== "TASK_STATE_COMPLETED") {
    const last = words(says?.text ?? "", MAX_LAST_WORDS);
    throw new RemoteTaskError(`${remote} has ended the task as ${state}${last === "" ? "" : `: ${last}`}`);
  }
  const parts = says?.parts ?? [];
  const data = parts.find((part) => "data" in part);
  const files = parts.filter((part) => "raw" in part || "url" in part);
  const text = says?.text ?? "";
  return {
    ...(text !== "" && !(of.readable && whole !== true) && { text }),
    ...(data !== undefined && "data" in data && { data: data.data }),
    metrics,
    artifacts: files.map((part, at) => ({ name: `file-${at + 1}`, parts: ownPart(part) })),
  };
}
