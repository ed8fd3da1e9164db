import type { NatsConnection } from "@nats-io/transport-node";
import { type ControlKind, controlMessage, type TaskEvent } from "../shared/wire/index.ts";
import { CliError, EXIT } from "./errors.ts";
import { type Feed, openEvents, readEventsOfTask } from "./events.ts";
import { foldTasks, type TaskView } from "./fold.ts";
import { resolveTask } from "./resolve.ts";
import { publish } from "./task.ts";
import { cleanLine } from "./text.ts";

/** A task that is to be told something: how it stands, and what it does from then on. */
export interface Subject extends AsyncDisposable {
  readonly view: TaskView;
  /** What it has asked so far. */
  readonly prompts: readonly string[];
  /** Opened before the past was read, so that no event falls in between. */
  readonly feed: Feed;
}

/**
 * Finds a task by its events.
 *
 * @param id the task's id, or how it begins
 * @param from whose task it is; anybody's without it
 * @throws CliError `failed` when no event tells of it
 */
export async function findTask(nc: NatsConnection, id: string, from?: string): Promise<Subject> {
  const taskId = await resolveTask(nc, id);
  const feed = await openEvents(nc, [`a2a.v1.event.*.${from ?? "*"}.${taskId}.>`]);
  const seen = await readEventsOfTask(nc, taskId, from);
  const [view] = foldTasks(seen);
  const prompts = seen.flatMap(({ event }) => (isQuestion(event) ? [event.content] : []));
  if (view !== undefined)
    return { view, prompts, feed, [Symbol.asyncDispose]: () => feed[Symbol.asyncDispose]() };
  await feed[Symbol.asyncDispose]();
  throw new CliError(EXIT.failed, `task ${taskId}: ${await whyUnknown(nc, taskId, from)}`);
}

async function whyUnknown(nc: NatsConnection, taskId: string, from: string | undefined): Promise<string> {
  const [others] = from === undefined ? [] : foldTasks(await readEventsOfTask(nc, taskId));
  if (others !== undefined) return `it is ${cleanLine(others.delegator)}'s task, not ${from}'s`;
  return "nobody has accepted it yet, or its events are gone; ./sluice status lists the recent ones";
}

/**
 * Publishes a control as the task's own sender, with the revision after the last that was seen.
 *
 * @returns whether the stream had one of this kind and revision already: then this one is not on it
 */
export function sendControl(
  nc: NatsConnection,
  { task, delegator, executor, revision }: Pick<TaskView, "task" | "delegator" | "executor" | "revision">,
  of: { readonly kind: ControlKind; readonly a2a?: unknown; readonly reason?: string },
): Promise<boolean> {
  const createdAt = new Date().toISOString();
  const parties = { from: delegator, to: executor, taskId: task };
  return publish(nc, controlMessage({ ...parties, ...of, revision: revision + 1, createdAt }));
}

/** What is written as JSON where no control is sent, for the task is over or does not ask for it. */
export function notSent({ task, state }: TaskView): Pick<TaskView, "task" | "state"> {
  return { task, state };
}

/** Whether a task, or an event of it, asks for something. An artifact tells the task's state, but asks nothing. */
export function isQuestion({ state, kind }: Pick<TaskEvent, "state"> & Partial<TaskEvent>): boolean {
  if (kind === "artifact") return false;
  return state === "TASK_STATE_INPUT_REQUIRED" || state === "TASK_STATE_AUTH_REQUIRED";
}
