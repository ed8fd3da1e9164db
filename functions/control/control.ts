import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import { catchUp } from "../../shared/events/catch-up.ts";
import { type EventDraft, firstEvent, storedEvents } from "../../shared/events/drafts.ts";
import { type At, ClaimLost, type Draft, Journal, TaskEnded } from "../../shared/events/journal.ts";
import type { Messenger } from "../../shared/events/messenger.ts";
import type { Publisher } from "../../shared/events/publisher.ts";
import { type Delivery, nakDelay, type Verdict } from "../../shared/nats/delivery.ts";
import type { Policies } from "../../shared/policy/runtime-policy.ts";
import type { Entry, Head } from "../../shared/tasks/items.ts";
import type { Values } from "../../shared/tasks/values.ts";
import type { Telemetry } from "../../shared/telemetry/index.ts";
import { tellResult } from "../../shared/telemetry/result.ts";
import { type Control, cutToFit, isTerminal, readControl, readEnvelope } from "../../shared/wire/index.ts";
import * as z from "../../shared/zod.ts";
import { isSeen, type WakeDeps, wake } from "../wake.ts";
import { type Change, type Decision, decide, entryOf, isCausedBy, isKnownKind, promptOf } from "./decide.ts";

/** What a question asked anew may hold, in bytes as JSON: an event has room for more (docs/wire.md §10). */
const MAX_CONTENT_BYTES = 900_000;

/** What `control` needs besides the message. */
export interface ControlDeps extends WakeDeps {
  readonly values: Values;
  readonly publisher: Publisher;
  /** Cancels what the task has handed on. */
  readonly messenger: Messenger;
  readonly deployment: DeploymentConfig;
  readonly policies: Policies;
  readonly telemetry: Telemetry;
}

/**
 * Answers a control of a task's own sender (docs/wire.md §9): `cancel` ends the task, `status` asks for a status
 * event, `input_reply` and `auth_reply` answer the open question; for a task that is over each is answered by the
 * last event again.
 *
 * @throws when the table, the bucket, the queue or NATS cannot be reached
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
  if (!isKnownKind(asked)) return { term: "unknown control" };
  const head = await store.head(asked.taskId);
  if (head === undefined) {
    if (now() - message.storedAt > timing.controlGraceMs) return { term: "no such task" };
    return { nakMs: Math.min(nakDelay(message.deliveries, timing), timing.controlGraceMs) };
  }
  if (head.from !== asked.from || head.to !== asked.to) return { term: "control ownership mismatch" };
  return answer(deps, head, asked);
}

const ACK = { ack: true } as const;

async function answer(deps: ControlDeps, head: Head, asked: Control): Promise<Verdict> {
  if (isTerminal(head.state)) {
    await repeatLast(deps, head, asked);
    return ACK;
  }
  const entries: Entry[] = [];
  try {
    const decision = await take(deps, head, asked, entries);
    if (decision.kind === "refuse") return { term: decision.reason };
    note(deps, head, asked, decision);
    if (decision.kind === "replay") return ACK;
    await catchUp(deps, head, entries);
    if (decision.kind === "put" && decision.end !== undefined) tellResult(deps.telemetry, head, deps.now());
    await wakeFor(deps, head, entries, asked);
  } catch (error) {
    // Somebody has claimed the task since we have read its head.
    if (error instanceof ClaimLost) return answer(deps, (await deps.store.head(head.taskId)) ?? head, asked);
    if (!(error instanceof TaskEnded)) throw error;
    await catchUp(deps, head, entries);
    if (entryOf(entries, asked) === undefined) await repeatLast(deps, head, asked);
    else await wakeFor(deps, head, entries, asked);
  }
  return ACK;
}

/**
 * Decides a control, and puts what it changes.
 *
 * @param entries gets the whole journal
 * @throws TaskEnded, ClaimLost
 */
async function take(deps: ControlDeps, head: Head, asked: Control, entries: Entry[]): Promise<Decision> {
  const { store, now } = deps;
  const journal = new Journal({ store, head, now, found: (entry) => entries.push(entry) });
  await journal.refresh();
  let decision: Decision = { kind: "known" };
  const put = await journal.append(async (at) => {
    // Decided anew at each place: what was found there may have closed the question.
    decision = decide(entries, asked);
    return decision.kind === "put" ? await draftOf(deps, head, asked, decision, entries, at) : undefined;
  });
  if (put !== undefined) entries.push(put);
  return decision;
}

async function draftOf(
  { values }: ControlDeps,
  head: Head,
  asked: Control,
  { event, answer, opens, end }: Change,
  entries: readonly Entry[],
  at: At,
): Promise<Draft> {
  const events: EventDraft[] = [];
  if (event !== undefined) {
    const { prompt: prompted, content, ...rest } = event;
    const prompt = prompted === true ? await promptText(values, entries) : undefined;
    const text = [content, prompt].filter((part) => part !== undefined && part !== "").join("\n\n");
    events.push({ kind: "status", ...rest, content: cutToFit(text, MAX_CONTENT_BYTES) });
  }
  return {
    control: { kind: asked.kind, messageId: asked.messageId, revision: asked.revision },
    events: await storedEvents(values, head, events, at),
    ...(answer && {
      answer: { step: answer.step, value: await values.keep(head.taskId, answer.value) },
    }),
    ...(opens && { opens }),
    ...(end && { end }),
  };
}

const stored = z.whenUsed(() => z.object({ payload: z.object({ content: z.optional(z.string()) }) }));

/** What the open question asks, as its requester was told. */
async function promptText(values: Values, entries: readonly Entry[]): Promise<string | undefined> {
  const event = promptOf(entries);
  if (event === undefined) return undefined;
  return stored().parse(JSON.parse(await values.text(event.body))).payload.content;
}

/** Lets a worker know what a control has put, unless one knows it already. */
async function wakeFor(
  deps: ControlDeps,
  { taskId }: Head,
  entries: readonly Entry[],
  asked: Control,
): Promise<void> {
  const own = entryOf(entries, asked);
  if ((own?.end === undefined && own?.answer === undefined) || isSeen(entries, own.place)) return;
  if (own.end !== undefined) await deps.tell(taskId);
  else await wake(deps, taskId, own.place);
}

function note({ telemetry }: ControlDeps, head: Head, asked: Control, decision: Decision): void {
  const { taskId, from, to, epoch } = head;
  const fields = { taskId, from, to, epoch, control: asked.kind, messageId: asked.messageId };
  if (decision.kind === "replay")
    telemetry.info("a copy of an earlier answer changes nothing", { ...fields, revision: asked.revision });
  if (decision.kind !== "put") return;
  if (decision.end !== undefined) {
    telemetry.info("a task is cancelled", fields);
    telemetry.count("TasksEnded", 1, { runtime: to, outcome: "canceled" });
  }
  if (decision.answer !== undefined) {
    telemetry.info("a question is answered", { ...fields, step: decision.answer.step });
    telemetry.count("QuestionsAnswered", 1, { runtime: to });
  }
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
  if (isCausedBy(last, asked)) return publisher.repeat(head, event, last.at);
  await publisher.publish(head, event, asked.messageId);
}
