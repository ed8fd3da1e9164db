import { isTerminal } from "../../../../shared/wire/index.ts";
import type { Ledger, SlotsRecord, TaskRecord, Violation } from "../ledger.ts";
import { waitsForPerson } from "./fate.ts";

/** What a task has left in the table: `settled`. */
function checkHead(task: TaskRecord): Violation[] {
  const { taskId, head, entries } = task;
  if (head === undefined) return [];
  const violation = (what: string): Violation => ({ invariant: "settled", taskId, what });
  const found: Violation[] = [];
  if (head.reject !== undefined)
    return head.dueAt === undefined ? [] : [violation("it is rejected, and due")];
  const last = entries.at(-1)?.revision ?? 1;
  if (isTerminal(head.state)) {
    if (head.dueAt !== undefined) found.push(violation("it is over, and due"));
    if (head.published !== last)
      found.push(violation(`its last revision is ${last}, published is ${head.published}`));
    return found;
  }
  if (entries.at(-1)?.end !== undefined)
    return [violation(`its journal has an end, its head is ${head.state}`)];
  if (!waitsForPerson(task)) return []; // `no-loss` says so
  if (head.waiting !== true) found.push(violation("it waits for a person, and is held by a worker"));
  if (head.published !== last)
    found.push(violation(`it waits; its last revision is ${last}, published is ${head.published}`));
  return found;
}

/** The slots of agents with a limit: `slots`. */
function checkSlots({ runtime, max, mostLive, live, queued, inLine }: SlotsRecord): Violation[] {
  const violation = (what: string): Violation => ({ invariant: "slots", what: `${runtime}: ${what}` });
  return [
    ...(mostLive > max ? [violation(`${mostLive} tasks were worked on at once, allowed are ${max}`)] : []),
    ...(live.length > 0 ? [violation(`${live.join(", ")} still hold slots`)] : []),
    ...(queued !== 0 ? [violation(`${queued} tasks are counted as waiting`)] : []),
    ...(inLine ? [violation("somebody stands in the line")] : []),
  ];
}

/** What is left when all is over: `settled`, `slots`. */
export function checkSettled(ledger: Ledger): Violation[] {
  const found = [...ledger.tasks.flatMap(checkHead), ...ledger.slots.flatMap(checkSlots)];
  const violation = (what: string) => void found.push({ invariant: "settled", what });
  const mayBeDue = new Set(ledger.tasks.filter(waitsForPerson).map(({ taskId }) => taskId));
  for (const taskId of ledger.due) if (!mayBeDue.has(taskId)) violation(`${taskId} is due`);
  for (const [queue, count] of Object.entries(ledger.queues))
    if (count > 0) violation(`queue ${queue} holds ${count} messages`);
  for (const [name, count] of Object.entries(ledger.consumers))
    if (count > 0) violation(`JetStream waits for ${count} messages of ${name}`);
  for (const { queue, body, cause } of ledger.dead)
    if (cause === undefined) violation(`a dead letter in ${queue}: ${body}`);
  for (const what of ledger.changed) violation(`the stream is not what it was: ${what}`);
  return found;
}
