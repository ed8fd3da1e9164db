import * as z from "zod";
import { fold, stateOf } from "../../shared/tasks/fold.ts";
import { SLOTS_KEY, slotsPartition } from "../../shared/tasks/slots.ts";
import { isTerminal } from "../../shared/wire/index.ts";
import type { Violation } from "./invariants.ts";
import type { Peers } from "./peers.ts";
import { HELPER, isOwn, seen } from "./program.ts";
import { MINUTE } from "./time.ts";
import type { Watch, Watched } from "./watch.ts";
import type { World } from "./world.ts";

/** What is due sooner is waited for. */
const PATIENCE_MS = 60 * MINUTE;

/** What is not over yet; nothing when everything is. */
export function whatIsOpen(world: World, watch: Watch, peers: Peers): Violation | undefined {
  if (!peers.done) return { invariant: "no-loss", text: "peers have more to do" };
  const [unsettled] = world.streams.unsettled;
  if (unsettled !== undefined && !isBuried(watch, unsettled.subject))
    return { invariant: "settled", text: `${unsettled.subject} is neither acknowledged nor terminated` };
  for (const queue of [world.queues.tasks, world.queues.controls, world.queues.events])
    if (queue.size > 0)
      return { invariant: "settled", text: `the queue ${queue.name} holds ${queue.bodies[0]}` };
  for (const { watched, messageId } of peers.asked) {
    if (watched.journal.head !== undefined || isBuried(watch, messageId)) continue;
    return { invariant: "no-loss", text: `the task ${watched.taskId} is not decided` };
  }
  for (const watched of watch.tasks.values()) {
    const open = openTask(world, watch, watched);
    if (open !== undefined) return open;
  }
  return openSlots(world);
}

/** Slots that somebody holds, or waits for, though every task is over or waits. */
function openSlots({ table }: World): Violation | undefined {
  for (const runtime of ["acme-worker", HELPER])
    for (const item of table.partition(slotsPartition(runtime))) {
      const { live, queued, sk } = slotsItem.parse(item);
      if (sk !== SLOTS_KEY) return { invariant: "settled", text: `${sk} is still in the line of ${runtime}` };
      if (live !== undefined)
        return { invariant: "settled", text: `${[...live].join(" ")} hold slots of ${runtime}` };
      if ((queued ?? 0) !== 0)
        return { invariant: "settled", text: `${queued} tasks wait for slots of ${runtime}` };
    }
  return undefined;
}

const slotsItem = z.object({
  sk: z.string(),
  live: z.set(z.string()).optional(),
  queued: z.number().optional(),
});

function openTask(world: World, watch: Watch, watched: Watched): Violation | undefined {
  const { journal, events, taskId } = watched;
  const { head } = journal;
  // What a message was to bring that lies in the dead letters is for whoever looks at them.
  if (head === undefined || isBuried(watch, taskId)) return undefined;
  if (waitsForPerson(watched, world.scheduler.clock.now())) return undefined;
  if (!events.ended) return { invariant: "no-loss", text: `the task ${taskId} has no terminal event` };
  if (head.dueAt !== undefined)
    return { invariant: "settled", text: `the ended task ${taskId} is still due` };
  return undefined;
}

/** Whether a message that names a task has ended its function on every receive: somebody must look at it. */
function isBuried(watch: Watch, name: string): boolean {
  return watch.buried.some((subject) => subject.includes(name));
}

/** Whether a task does nothing but wait for its requester, who knows of the question, and for longer than we wait. */
function waitsForPerson({ journal, events }: Watched, now: number): boolean {
  const { question } = fold(journal.entries);
  return (
    question?.asked !== undefined &&
    journal.end === undefined &&
    events.revision === journal.revision &&
    journal.head?.waiting === true &&
    (journal.head.dueAt ?? Number.NEGATIVE_INFINITY) > now + PATIENCE_MS
  );
}

/**
 * What must be so when a history is over.
 *
 * @param disturbed how many workers may have lost their claims by no fault of the core
 */
export function checkEnd(world: World, watch: Watch, peers: Peers, disturbed: number): void {
  for (const watched of watch.tasks.values()) {
    if (watched.journal.head === undefined || isBuried(watch, watched.taskId)) continue;
    checkFold(watch, watched);
    // A task that was handed on is cancelled by whoever has handed it on.
    const cancels = peers.asked.find((asked) => asked.watched === watched)?.cancels ?? true;
    if (watched.events.ended) checkOutcome(watch, watched, { cancels, disturbed });
  }
  // A hint may be lost; what is not a hint has been recorded by the function that died of it.
  for (const [name, queue] of Object.entries(world.queues))
    for (const { body } of queue.dead)
      if (name !== "work") world.scheduler.say(() => `in the dead letters: ${body}`);
}

function checkFold(watch: Watch, { journal, events, taskId }: Watched): void {
  const last = events.last;
  if (last === undefined) {
    watch.broken("fold", `nothing is published of ${taskId}`);
    return;
  }
  const stored = journal.head?.reject === undefined ? stateOf(fold(journal.entries)) : "TASK_STATE_REJECTED";
  if (events.revision !== journal.revision)
    watch.broken(
      "settled",
      `${taskId}: the stream has revision ${events.revision}, the journal ${journal.revision}`,
    );
  if (last.state !== stored)
    watch.broken("fold", `${taskId} is ${last.state} by its events, and ${stored} by its journal`);
  if (isTerminal(stored) && journal.head?.state !== stored)
    watch.broken("fold", `${taskId} is ${stored} by its journal, and ${journal.head?.state} by its head`);
}

/** A task ends by its handler, by its requester, or because its time is over. */
function checkOutcome(
  watch: Watch,
  watched: Watched,
  { cancels, disturbed }: { readonly cancels: boolean; readonly disturbed: number },
): void {
  const { events, taskId } = watched;
  const { last } = events;
  if (last === undefined) return;
  const { Code: code = "", Message: message = "" } = last.error ?? {};
  if (last.state === "TASK_STATE_COMPLETED") {
    checkResult(watch, watched, last.content);
    return;
  }
  if (last.state === "TASK_STATE_CANCELED" && !cancels)
    watch.broken("crash", `${taskId} is cancelled, and nobody has asked for that`);
  if (code !== "internal" || isOwn(message)) return;
  const died = /^the worker died (\d+) times/.exec(message)?.[1];
  if (died === undefined) watch.broken("crash", `${taskId} has failed: ${message}`);
  else if (Number(died) > disturbed)
    watch.broken("crash", `${taskId} has failed (${message}), and only ${disturbed} workers were disturbed`);
}

/** What the handler has seen of its steps is what is stored. */
function checkResult(watch: Watch, { journal, taskId }: Watched, content: string): void {
  const { steps } = fold(journal.entries);
  if (content === "") return;
  for (const [name, value] of seen.parse(JSON.parse(content))) {
    const stored = steps.get(name);
    if (stored?.kind !== "run" || !("text" in stored.value)) continue;
    if (stored.error === undefined && JSON.stringify(value) !== stored.value.text)
      watch.broken(
        "once",
        `${taskId}: the handler has seen ${value} of ${name}, and stored is ${stored.value.text}`,
      );
  }
}
