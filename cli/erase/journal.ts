import { wireEvent } from "../../shared/events/drafts.ts";
import type { Eraser } from "../../shared/tasks/erasing.ts";
import { childKey, type Entry, type Head } from "../../shared/tasks/items.ts";
import type { ChildKey } from "../../shared/tasks/store.ts";
import { taskIdOf } from "../../shared/wire/index.ts";
import type { TaskRecord } from "../record.ts";

/** Entries that are emptied at once. */
const AT_ONCE = 8;
/** What a peer is told of an error whose message is gone. */
const ERASED = "erased by the operator";

/**
 * Takes the contents out of the journal, and then deletes the payload: first the notes that the journal names, then the
 * end, for repeated messages need it.
 */
export async function eraseTable(eraser: Eraser, { head, entries }: TaskRecord): Promise<void> {
  for (const child of childrenOf(head, entries)) await eraser.deleteChild(child);
  const last = entries.at(-1);
  if (last?.end !== undefined) await eraser.emptyEntry(head.taskId, last.place, endOf(head, last));
  const others = entries.filter(({ end }) => end === undefined).values();
  const work = async () => {
    for (const { place } of others) await eraser.emptyEntry(head.taskId, place);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  await eraser.deleteInputs(head.taskId);
}

/**
 * The tasks that were handed on: under the ids that their executors have told, and, for an executor whose first event
 * came when nobody waited any more, under those that follow from the message (docs/wire.md §1).
 */
function childrenOf({ to: delegator }: Head, entries: readonly Entry[]): readonly ChildKey[] {
  const executors = new Map<string, string>();
  const children: ChildKey[] = [];
  for (const { opens = [], heard } of entries) {
    for (const { name, child } of opens) {
      if (child === undefined) continue;
      const { to: executor, messageId } = child;
      executors.set(name, executor);
      children.push({ delegator, executor, childTaskId: taskIdOf(delegator, executor, messageId) });
    }
    const executor = executors.get(heard?.step ?? "");
    if (heard?.taskId !== undefined && executor !== undefined)
      children.push({ delegator, executor, childTaskId: heard.taskId });
  }
  return [...new Map(children.map((child) => [childKey(child), child])).values()];
}

/** What is left of an end: its state and code, and the event that tells no more, under the id that it has. */
function endOf(head: Head, { end, events = [], revision, at }: Entry): Pick<Entry, "end" | "events"> {
  if (end === undefined) return {};
  const { state, code } = end;
  const error = code === undefined ? {} : { error: { code, message: `${code}: ${ERASED}` } };
  const kind = events.at(-1)?.kind === "status" ? "status" : "result";
  const draft =
    kind === "status"
      ? ({ kind, state, ...error } as const)
      : ({ kind, state, ...error, metrics: { elapsed_ms: Math.max(0, at - head.decidedAt) } } as const);
  const { body } = wireEvent(head, draft, revision, at);
  return {
    end: { state, ...(code === undefined ? {} : { code }) },
    events: [{ kind, revision, body: { text: body } }],
  };
}
