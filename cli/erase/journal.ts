import { wireEvent } from "../../shared/events/drafts.ts";
import type { Eraser } from "../../shared/tasks/erasing.ts";
import type { Entry, Head } from "../../shared/tasks/items.ts";
import type { TaskRecord } from "../record.ts";

/** Entries that are emptied at once. */
const AT_ONCE = 8;
/** What a peer is told of an error whose message is gone. */
const ERASED = "erased by the operator";

/** Takes the contents out of the journal, and then deletes the payload: the end first, for repeated messages need it. */
export async function eraseTable(eraser: Eraser, { head, entries }: TaskRecord): Promise<void> {
  const last = entries.at(-1);
  if (last?.end !== undefined) await eraser.emptyEntry(head.taskId, last.place, endOf(head, last));
  const others = entries.filter(({ end }) => end === undefined).values();
  const work = async () => {
    for (const { place } of others) await eraser.emptyEntry(head.taskId, place);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  await eraser.deleteInputs(head.taskId);
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
