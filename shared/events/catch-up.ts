import { fold } from "../tasks/fold.ts";
import { type HandOnDeps, handOn } from "../tasks/hand-on.ts";
import type { Entry, Head } from "../tasks/items.ts";
import { cancelChildren } from "./cancel-children.ts";
import { firstEvent } from "./drafts.ts";
import { bidFarewell, type FarewellDeps } from "./farewell.ts";
import type { Messenger } from "./messenger.ts";
import type { Publisher } from "./publisher.ts";

/**
 * Publishes what of a task is not on the stream yet, the lowest first, and records it. If the task is over, what it has
 * handed on is cancelled, its remote agent is told, and its slot is given to the next. For those who find a task as others
 * have left it.
 *
 * @param entries the whole journal, in order
 * @returns how many events were not there
 * @throws when NATS or the table cannot be reached
 */
export async function catchUp(
  deps: HandOnDeps & FarewellDeps & { readonly publisher: Publisher; readonly messenger: Messenger },
  head: Head,
  entries: readonly Entry[],
): Promise<number> {
  const { store, publisher } = deps;
  const onStream = Math.max(head.published, await publisher.lastRevision(head));
  const events = [firstEvent(head), ...entries.flatMap((entry) => entry.events ?? [])];
  const missing = events.filter(({ revision }) => revision > onStream);
  for (const event of missing) await publisher.publish(head, event);
  const last = entries.at(-1);
  if (last === undefined) return missing.length;
  if (last.end !== undefined) {
    const view = fold(entries);
    await cancelChildren(deps, head, view);
    if (!(await bidFarewell(deps, head, view, last.at))) return missing.length;
  }
  if (await store.settle(head, last.revision, last.end?.state)) await handOn(deps, head.to);
  return missing.length;
}
