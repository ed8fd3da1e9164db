import { isDeepStrictEqual } from "node:util";
import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import type { Timing } from "../../shared/config/timing.ts";
import { catchUp } from "../../shared/events/catch-up.ts";
import { type EventDraft, errorMessage, firstEvent, storedEvents } from "../../shared/events/drafts.ts";
import { Journal, TaskEnded } from "../../shared/events/journal.ts";
import type { Publisher } from "../../shared/events/publisher.ts";
import { type Delivery, nakDelay, type Verdict } from "../../shared/nats/delivery.ts";
import type { Entry, Head } from "../../shared/tasks/items.ts";
import type { Store } from "../../shared/tasks/store.ts";
import type { Values } from "../../shared/tasks/values.ts";
import type { Telemetry } from "../../shared/telemetry/index.ts";
import { type Control, isTerminal, readControl, readEnvelope } from "../../shared/wire/index.ts";

/** What `control` needs besides the message. */
export interface ControlDeps {
  readonly store: Store;
  readonly values: Values;
  readonly publisher: Publisher;
  readonly deployment: DeploymentConfig;
  readonly telemetry: Telemetry;
  readonly timing: Timing;
  readonly now: () => number;
  /** Tells a running worker that its task has ended; a worker that is not told finds out by itself. */
  readonly tell: (taskId: string) => Promise<void>;
}

/**
 * Answers a control of a task's own sender (docs/wire.md, controls): `cancel` ends the task, `status` asks for a
 * status event, and for a task that is over each is answered by the last event again.
 *
 * @throws when the table or NATS cannot be reached
 */
export async function control(deps: ControlDeps, message: Delivery): Promise<Verdict> {
  const { deployment, now, store, timing } = deps;
  if (message.body === null) return { ack: true };
  const read = readEnvelope(message.subject, message.body, now());
  if (!read.ok) return { term: read.reason };
  const { envelope, subject } = read.value;
  if (subject.kind !== "control") return { term: "expected a control subject" };
  if (!deployment.agents.some(({ runtime }) => runtime === subject.to))
    return { term: `${subject.to} is not hosted here` };
  const asked = readControl(envelope, subject);
  const head = await store.head(asked.taskId);
  if (head === undefined) {
    if (now() - message.storedAt > timing.controlGraceMs) return { term: "no such task" };
    return { nakMs: Math.min(nakDelay(message.deliveries, timing), timing.controlGraceMs) };
  }
  if (head.from !== asked.from || head.to !== asked.to) return { term: "control ownership mismatch" };
  if (asked.kind !== "cancel" && asked.kind !== "status") {
    const known = asked.kind === "input_reply" || asked.kind === "auth_reply";
    if (!known) return { term: "unknown control" };
    if (!isTerminal(head.state)) return { term: "no question is open" };
  }
  await answer(deps, head, asked);
  return { ack: true };
}

async function answer(deps: ControlDeps, head: Head, asked: Control): Promise<void> {
  if (isTerminal(head.state)) return repeatLast(deps, head, asked);
  const entries: Entry[] = [];
  const journal = new Journal({
    store: deps.store,
    head,
    now: deps.now,
    found: (entry) => entries.push(entry),
  });
  try {
    await journal.refresh();
    if (!entries.some((entry) => causedBy(entry, asked)))
      entries.push(await journal.append((at) => draftOf(deps, head, asked, at)));
  } catch (error) {
    if (!(error instanceof TaskEnded)) throw error;
    if (!causedBy(entries.at(-1), asked)) {
      await catchUp(deps, head, entries);
      return repeatLast(deps, head, asked);
    }
  }
  await catchUp(deps, head, entries);
  if (entries.at(-1)?.end !== undefined) {
    deps.telemetry.info("a task is cancelled", { taskId: head.taskId, from: head.from, to: head.to });
    deps.telemetry.count("TasksEnded", 1, { runtime: head.to, outcome: "canceled" });
    await deps.tell(head.taskId);
  }
}

/** What tells a control from another: peers may use a message id for several. */
function identityOf({ kind, messageId, revision }: Control): NonNullable<Entry["control"]> {
  return { kind, messageId, revision };
}

function causedBy(entry: Entry | undefined, asked: Control): boolean {
  return isDeepStrictEqual(entry?.control, identityOf(asked));
}

async function draftOf(
  { values }: ControlDeps,
  head: Head,
  asked: Control,
  at: { readonly revision: number; readonly at: number },
): Promise<Pick<Entry, "control" | "end" | "events">> {
  const control = identityOf(asked);
  if (asked.kind === "status") {
    const event: EventDraft = { kind: "status", state: "TASK_STATE_WORKING" };
    return { control, events: await storedEvents(values, head, [event], at) };
  }
  const error = { code: "canceled" as const, message: errorMessage(asked.reason ?? "cancel requested") };
  const event: EventDraft = { kind: "status", state: "TASK_STATE_CANCELED", error };
  const events = await storedEvents(values, head, [event], at);
  return { control, events, end: { state: "TASK_STATE_CANCELED", ...error } };
}

/**
 * The same bytes once more, under an id of their own so that they are delivered. Only to a control that has not
 * caused the end itself: its own redelivery gets what it has already got.
 */
async function repeatLast({ store, publisher }: ControlDeps, head: Head, asked: Control): Promise<void> {
  if (head.reject !== undefined) return publisher.publish(head, firstEvent(head), asked.messageId);
  const last = await store.last(head.taskId);
  const event = last?.events?.at(-1);
  if (last === undefined || event === undefined) return;
  if (causedBy(last, asked)) return publisher.repeat(head, event, last.at);
  await publisher.publish(head, event, asked.messageId);
}
