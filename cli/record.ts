import { addressOf } from "../shared/events/publisher.ts";
import { fold, type View } from "../shared/tasks/fold.ts";
import type { Entry, Head, Kept, StoredEvent } from "../shared/tasks/items.ts";
import { ValueGone } from "../shared/tasks/values.ts";
import { readEvent, type TaskEvent } from "../shared/wire/index.ts";
import { CliError, EXIT } from "./errors.ts";
import { reach } from "./place.ts";
import type { OpenStack } from "./stack.ts";

/** Of the ids that our executors choose (docs/wire.md, ids). */
const TASK_ID_LENGTH = "task_".length + 24;

/** What a stack has written down of a task (docs/table.md). */
export interface TaskRecord {
  readonly head: Head;
  readonly entries: readonly Entry[];
  /** What the entries add up to. */
  readonly view: View;
  /** How things stand at its agent, when the task waits in the line for one of its slots. */
  readonly line?: { readonly taken: number; readonly waiting: number };
  /** A text that is kept in its item or in the bucket; nothing when it is no longer there. */
  text(kept: Kept): Promise<string | undefined>;
}

/**
 * Reads a task's head and journal.
 *
 * @throws CliError `failed` when the table does not know it or the id is not whole, `unreachable` when it cannot be read
 */
export async function readRecord(stack: Omit<OpenStack, "pauses">, taskId: string): Promise<TaskRecord> {
  const { label, store, values } = stack;
  const head = await reach(label, store.head(taskId));
  if (head === undefined) throw noRecord(label, taskId);
  const entries = await reach(label, store.entries(taskId, 1));
  const text = async (kept: Kept) => {
    const gone = (error: unknown) => {
      if (error instanceof ValueGone) return undefined;
      throw error;
    };
    return reach(label, values.text(kept).catch(gone));
  };
  const line = head.queued === undefined ? undefined : await reach(label, store.slots(head.to));
  return {
    head,
    entries,
    view: fold(entries),
    ...(line && { line: { taken: line.live.size, waiting: line.queued } }),
    text,
  };
}

/**
 * That a table does not know a task. A shorter text is the beginning of an id at most: the table finds tasks by their whole
 * ids alone.
 */
export function noRecord(label: string, taskId: string): CliError {
  return new CliError(
    EXIT.failed,
    taskId.length < TASK_ID_LENGTH
      ? `task ${taskId}: expected the whole id, task_ and 24 hex digits; ./sluice status shows those of recent tasks`
      : `task ${taskId}: ${label} has no record of it; records are kept for 30 days after a task's deadline`,
  );
}

/** A stored event as its delegator reads it. */
export async function eventOf(record: TaskRecord, stored: StoredEvent): Promise<TaskEvent | undefined> {
  const body = await record.text(stored.body);
  if (body === undefined) return undefined;
  const read = readEvent(addressOf(record.head, stored).subject, Buffer.from(body));
  return read.ok ? read.value : undefined;
}
