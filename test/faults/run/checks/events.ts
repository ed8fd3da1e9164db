import { foldTask, type TaskView } from "../../../../cli/fold.ts";
import { firstEvent } from "../../../../shared/events/drafts.ts";
import { addressOf } from "../../../../shared/events/publisher.ts";
import { fold, stateOf } from "../../../../shared/tasks/fold.ts";
import type { StoredEvent } from "../../../../shared/tasks/items.ts";
import { isTerminal, readEvent, type TaskEvent } from "../../../../shared/wire/index.ts";
import type { EventRecord, TaskRecord, Violation } from "../ledger.ts";

/** An event with what it says. */
export interface Told extends EventRecord {
  readonly event: TaskEvent;
}

/** The events of a task as on the stream. @throws when one cannot be read */
export function toldOf({ events }: Pick<TaskRecord, "events">): Told[] {
  return events.map((record) => {
    const read = readEvent(record.subject, Buffer.from(record.body));
    if (!read.ok) throw new Error(`${record.subject}: ${read.reason}`);
    return { ...record, event: read.value };
  });
}

/** What an event says, in a few words. */
export function inWords({ event }: Told): string {
  return `${event.revision} ${event.kind} ${event.state.replace("TASK_STATE_", "")}`;
}

/** What the events of a task say by themselves: `one-end`, `revisions`, `same-answer`. */
export function checkEvents(task: TaskRecord): Violation[] {
  const told = toldOf(task);
  const violation = (invariant: Violation["invariant"], what: string): Violation => ({
    invariant,
    taskId: task.taskId,
    what: `${what}; on the stream: ${told.map(inWords).join(", ")}`,
  });
  const found: Violation[] = [];
  const firsts = new Map<number, Told>();
  for (const one of told) {
    const { revision } = one.event;
    const known = firsts.get(revision);
    if (known === undefined) {
      if (revision !== firsts.size + 1)
        found.push(violation("revisions", `expected revision ${firsts.size + 1} next, got ${revision}`));
      firsts.set(revision, one);
    } else if (known.body !== one.body)
      found.push(violation("same-answer", `revision ${revision} comes again with other bytes`));
  }
  const ends = [...firsts.values()].filter(({ event }) => isTerminal(event.state));
  if (ends.length > 1) found.push(violation("one-end", `expected one end, got ${ends.length}`));
  const [end] = ends;
  const later = [...firsts.values()].filter(({ seq }) => end !== undefined && seq > end.seq);
  if (later.length > 0) found.push(violation("one-end", `${later.length} events follow the end`));
  return found;
}

/** The events that the table holds, the first made anew from the head. */
function storedEvents({ head, entries }: TaskRecord): StoredEvent[] {
  if (head === undefined) return [];
  return [firstEvent(head), ...entries.flatMap(({ events = [] }) => events)];
}

/** What the stream holds against what the table holds: `committed-first` and `fold`. */
export function checkAgainstJournal(task: TaskRecord): Violation[] {
  const { taskId, head, bodies } = task;
  const told = toldOf(task);
  const violation = (invariant: Violation["invariant"], what: string): Violation => ({
    invariant,
    taskId,
    what,
  });
  if (head === undefined)
    return told.length === 0 ? [] : [violation("committed-first", "it has events, but no head")];
  const stored = storedEvents(task);
  const bodyOf = ({ revision, body }: StoredEvent) => ("text" in body ? body.text : (bodies[revision] ?? ""));
  const found: Violation[] = [];
  for (const one of told) {
    const { revision } = one.event;
    const own = stored.find((event) => event.revision === revision);
    if (own === undefined)
      found.push(violation("committed-first", `the journal does not hold ${inWords(one)}`));
    else if (bodyOf(own) !== one.body)
      found.push(violation("committed-first", `${inWords(one)} has other bytes than the journal`));
    else if (addressOf(head, own).subject !== one.subject)
      found.push(violation("committed-first", `${inWords(one)} has another subject: ${one.subject}`));
  }
  const onStream = viewOf(told);
  const inTable = viewOf(
    stored.map((event) => {
      const record = { ...addressOf(head, event), seq: 0, at: 0, body: bodyOf(event) };
      return toldOf({ events: [record] })[0];
    }),
  );
  if (JSON.stringify(onStream) !== JSON.stringify(inTable))
    found.push(
      violation(
        "fold",
        `on the stream ${JSON.stringify(onStream)}, in the journal ${JSON.stringify(inTable)}`,
      ),
    );
  const state = head.reject === undefined ? stateOf(fold(task.entries)) : "TASK_STATE_REJECTED";
  if (onStream !== undefined && onStream.state !== state)
    found.push(violation("fold", `on the stream it is ${onStream.state}, by its journal ${state}`));
  return found;
}

/** What events add up to, without the time at which they were seen. */
function viewOf(told: readonly (Told | undefined)[]): Omit<TaskView, "updatedAt"> | undefined {
  const seen = told.flatMap((one) => (one === undefined ? [] : [{ event: one.event, at: new Date(0) }]));
  const view = foldTask(seen.map((one, index) => ({ ...one, seq: index + 1 })));
  if (view === null) return undefined;
  const { updatedAt: _, ...rest } = view;
  return rest;
}
