import { cancelMessage, openChildren } from "../tasks/delegation.ts";
import type { View } from "../tasks/fold.ts";
import type { Head } from "../tasks/items.ts";
import type { Messenger } from "./messenger.ts";

/**
 * Cancels what a task that is over has handed on and not got back. What its executor has not accepted by now is
 * cancelled when that tells of it (functions/events). To be done before the head is settled: nobody looks after
 * a task that is.
 *
 * @throws when NATS cannot be reached; it may be repeated
 */
export async function cancelChildren(
  { messenger }: { messenger: Messenger },
  head: Head,
  view: View,
): Promise<void> {
  for (const { child, told } of openChildren(view)) {
    if (told?.taskId === undefined) continue;
    const of = { to: child.to, taskId: told.taskId };
    await messenger.send(
      cancelMessage(head, of, told, "the task that has delegated it is over"),
      head.traceparent,
    );
  }
}
