import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import { ClaimLost, type Draft, Journal, TaskEnded } from "../../shared/events/journal.ts";
import type { Messenger } from "../../shared/events/messenger.ts";
import { type Delivery, nakDelay, type Verdict } from "../../shared/nats/delivery.ts";
import type { OutcomeBook } from "../../shared/policy/choosing/outcomes.ts";
import type { Policies } from "../../shared/policy/runtime-policy.ts";
import { cancelMessage, MAX_CHILD_ARTIFACTS, parentTaskId } from "../../shared/tasks/delegation.ts";
import { fold } from "../../shared/tasks/fold.ts";
import type { Entry, Head } from "../../shared/tasks/items.ts";
import type { Values } from "../../shared/tasks/values.ts";
import { errorFields, type Telemetry } from "../../shared/telemetry/index.ts";
import type { TaskEvent } from "../../shared/wire/index.ts";
import { isSeen, type WakeDeps, wake } from "../wake.ts";
import { type Decision, decide, type Hearing } from "./decide.ts";
import { readTold } from "./read.ts";

/** What `events` needs besides the message. */
export interface EventsDeps extends WakeDeps {
  readonly values: Values;
  /** Cancels what nobody waits for any more. */
  readonly messenger: Messenger;
  readonly deployment: DeploymentConfig;
  readonly policies: Policies;
  /** Where it is kept how what was handed on has come out. */
  readonly outcomes: () => Promise<Pick<OutcomeBook, "note">>;
  readonly telemetry: Telemetry;
}

/** A task that has delegated, and the step where that is known. */
interface Found {
  readonly head: Head;
  readonly step?: string;
}

const ACK = { ack: true } as const;

/**
 * Takes an event of a task that one of our agents has handed on into that agent's own task (docs/tasks.md,
 * delegation). One that comes before `accepted` has told whose it is waits for that.
 *
 * @throws when the table, the bucket, the queue or NATS cannot be reached
 */
export async function events(deps: EventsDeps, message: Delivery): Promise<Verdict> {
  const { deployment, now, timing } = deps;
  if (message.body === null) return ACK;
  const read = readTold(message.subject, message.body);
  if (!read.ok) return { term: read.reason };
  const event = read.value;
  if (!deployment.agents.some(({ runtime }) => runtime === event.to))
    return { term: `${event.to} is not hosted here` };
  const found = await parentOf(deps, event);
  const patient = now() - message.storedAt <= timing.controlGraceMs;
  const later = { nakMs: Math.min(nakDelay(message.deliveries, timing), timing.controlGraceMs) };
  if (found === undefined) {
    // What waits counts among the few that may be unacknowledged: nobody may fill that with events of nothing.
    return patient && (await mayBeFound(deps, event)) ? later : { term: "no such delegation" };
  }
  // Those that are missing may be waiting for as long.
  if (patient && (await isEarly(deps, found, event))) return later;
  return take(deps, found, event, message.storedAt);
}

/**
 * Whether an end comes before artifacts that were told of before it, and that it does not list itself: several
 * invocations take a task's events at once, and after the end none counts.
 */
async function isEarly(
  { store, messenger, now }: EventsDeps,
  { head, step }: Found,
  event: TaskEvent,
): Promise<boolean> {
  const { from: executor, to: delegator, taskId: childTaskId, result } = event;
  if (event.state !== "TASK_STATE_COMPLETED" || childTaskId === undefined) return false;
  if (result !== undefined && result.artifacts.length > 0) return false;
  const told = await messenger.countArtifacts({ executor, delegator, childTaskId });
  if (told === 0) return false;
  const entries = await store.entries(head.taskId, 1);
  const decision = decide(entries, event, { at: now(), step });
  if (decision.kind !== "put") return false;
  const known = fold(entries).heard.get(decision.step)?.artifacts.size ?? 0;
  return known < Math.min(told, MAX_CHILD_ARTIFACTS);
}

/** By the message's id, which the first and the last event carry; otherwise by what the first has bound. */
async function parentOf({ store }: EventsDeps, event: TaskEvent): Promise<Found | undefined> {
  const named = parentTaskId(event.messageId);
  const head = named === undefined ? undefined : await store.head(named);
  if (head?.to === event.to) return { head };
  const { taskId: childTaskId } = event;
  if (childTaskId === undefined) return undefined;
  const bound = await store.parentOf({ delegator: event.to, executor: event.from, childTaskId });
  if (bound === undefined) return undefined;
  const parent = await store.head(bound.taskId);
  return parent === undefined ? undefined : { head: parent, step: bound.step };
}

/**
 * Whether an event of which no delegation is known may have overtaken the one that tells it. What tells it names the
 * message, whose task is there before it is sent; and whoever is no target of the agent has been handed nothing.
 */
async function mayBeFound(
  { deployment, policies }: EventsDeps,
  { kind, from, to }: TaskEvent,
): Promise<boolean> {
  if (kind === "accepted" || kind === "rejected") return false;
  const file = deployment.agents.find(({ runtime }) => runtime === to)?.policy;
  // What the file allows may just have been taken away in the table, with tasks still out.
  const targets = [file, await policies.of(to)].flatMap((policy) => policy?.delegateTargets ?? []);
  return targets.some(({ runtimeAgentId }) => runtimeAgentId === "*" || runtimeAgentId === from);
}

async function take(deps: EventsDeps, found: Found, event: TaskEvent, storedAt: number): Promise<Verdict> {
  const { store, messenger, now } = deps;
  const { head } = found;
  const entries: Entry[] = [];
  let decision: Decision;
  try {
    decision = await put(deps, found, event, entries);
  } catch (error) {
    // Somebody has claimed the task since we have read its head.
    if (error instanceof ClaimLost) {
      const later = await store.head(head.taskId);
      return take(deps, { ...found, head: later ?? head }, event, storedAt);
    }
    if (!(error instanceof TaskEnded)) throw error;
    decision = decide(entries, event, { at: now(), step: found.step });
  }
  if (decision.kind === "refuse") return { term: decision.reason };
  note(deps, head, event, decision);
  if (event.kind === "accepted" && event.taskId !== undefined) {
    const child = { delegator: event.to, executor: event.from, childTaskId: event.taskId };
    await store.bindChild(child, { taskId: head.taskId, step: decision.step }, head.expiresAt);
  }
  if (decision.cancel !== undefined && event.taskId !== undefined) {
    const child = { to: event.from, taskId: event.taskId };
    const seen = { revision: event.revision, at: storedAt };
    await messenger.send(cancelMessage(head, child, seen, decision.cancel), head.traceparent);
  }
  await wakeFor(deps, head, entries, decision.step);
  await remember(deps, event, decision);
  return ACK;
}

/**
 * Decides an event, and puts what it tells.
 *
 * @param entries gets the whole journal
 * @throws TaskEnded, ClaimLost
 */
async function put(
  { store, values, now }: EventsDeps,
  { head, step }: Found,
  event: TaskEvent,
  entries: Entry[],
): Promise<Decision> {
  const journal = new Journal({ store, head, now, found: (entry) => entries.push(entry) });
  await journal.refresh();
  let decision: Decision = { kind: "refuse", reason: "" };
  const made = await journal.append(async ({ at }) => {
    // Decided anew at each place: what was found there may have been the end of what it speaks of.
    decision = decide(entries, event, { at, step });
    return decision.kind === "put" && decision.heard !== undefined
      ? await draftOf(values, head, decision.heard)
      : undefined;
  });
  if (made !== undefined) entries.push(made);
  return decision;
}

async function draftOf(
  values: Values,
  { taskId }: Head,
  { text, artifact, outcome, ...heard }: Hearing,
): Promise<Draft> {
  return {
    heard: {
      ...heard,
      ...(text !== undefined && { text: await values.keep(taskId, text) }),
      ...(artifact !== undefined && { artifact: await values.keep(taskId, artifact) }),
      ...(outcome !== undefined && { outcome: await values.keep(taskId, outcome) }),
    },
  };
}

/** Wakes the task for the last thing that its step waits for, unless that is known: a repeated event does so, too. */
async function wakeFor(deps: EventsDeps, head: Head, entries: readonly Entry[], step: string): Promise<void> {
  if (entries.at(-1)?.end !== undefined) return;
  const news = entries.findLast(
    ({ heard }) => heard?.step === step && (heard.outcome !== undefined || heard.text !== undefined),
  );
  if (news !== undefined && !isSeen(entries, news.place)) await wake(deps, head.taskId, news.place);
}

function note({ telemetry }: EventsDeps, head: Head, event: TaskEvent, decision: Decision): void {
  if (decision.kind !== "put" || decision.heard?.outcome === undefined) return;
  const { taskId, to } = head;
  const { from: executor, taskId: child, state } = event;
  telemetry.info("a delegated task is over", { taskId, to, step: decision.step, executor, child, state });
  telemetry.count("DelegationsEnded", 1, {
    runtime: to,
    outcome: state.replace("TASK_STATE_", "").toLowerCase(),
  });
}

/**
 * Remembers how what an agent was chosen for has come out: by whoever has put it, so once however often it is told. To have
 * it forgotten is no reason to hear the event again.
 */
async function remember(
  { outcomes, telemetry }: EventsDeps,
  { from: executor }: TaskEvent,
  decision: Decision,
) {
  if (decision.kind !== "put" || decision.result === undefined) return;
  try {
    await (await outcomes()).note(executor, decision.result);
  } catch (error) {
    telemetry.warn("an outcome could not be noted", { executor, ...errorFields(error) });
  }
}
