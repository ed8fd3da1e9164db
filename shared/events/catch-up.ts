import { fold } from "../tasks/fold.ts";
import type { Entry, Head } from "../tasks/items.ts";
import type { Store } from "../tasks/store.ts";
import { cancelChildren } from "./cancel-children.ts";
import { firstEvent } from "./drafts.ts";
import type { Messenger } from "./messenger.ts";
import type { Publisher } from "./publisher.ts";

/**
 * Publishes what of a task is not on the stream yet, the lowest first, and records it; what a task that is over has
 * handed on is cancelled. For those who find a task as others have left it.
 *
 * @param entries the whole journal, in order
 * @throws when NATS or the table cannot be reached
 */
export async function catchUp(
  { store, publisher, messenger }: { store: Store; publisher: Publisher; messenger: Messenger },
  head: Head,
  entries: readonly Entry[],
): Promise<void> {
  const onStream = Math.max(head.published, await publisher.lastRevision(head));
  const events = [firstEvent(head), ...entries.flatMap((entry) => entry.events ?? [])];
  for (const event of events) if (event.revision > onStream) await publisher.publish(head, event);
  const last = entries.at(-1);
  if (last?.end !== undefined) await cancelChildren({ messenger }, head, fold(entries));
  if (last !== undefined) await store.settle(head.taskId, last.revision, last.end?.state);
}
