import type { NatsConnection } from "@nats-io/transport-node";
import type { Head } from "../../shared/tasks/items.ts";
import {
  isTerminal,
  readTaskPayload,
  type TaskState,
  taskIdOf,
  taskMessage,
} from "../../shared/wire/index.ts";
import { CliError, EXIT } from "../errors.ts";
import { readRecord, type TaskRecord } from "../record.ts";
import { stateName } from "../render.ts";
import type { OpenStack } from "../stack.ts";
import { publish } from "../task.ts";
import { cleanLine } from "../text.ts";
import { inputOf } from "./input.ts";

/** More retries of one task are a loop. */
const MAX_RETRIES = 1_000;
/** What the message ids of delegations begin with (docs/wire.md §12). */
const DELEGATED = "dlg_";

/** The new task. */
export interface Retried {
  readonly taskId: string;
  readonly messageId: string;
  readonly from: string;
  readonly to: string;
  /** Which retry of the task it is, from 1. */
  readonly attempt: number;
  /** Whether this command has sent it: it may be there from an earlier one. */
  readonly sent: boolean;
  /** How it stands, if the table knows it already. */
  readonly state?: TaskState;
}

/**
 * Sends the message of a task again under a message id that follows from the task's id and the retry's number; so the
 * same command twice makes one task.
 *
 * @param options.from as whom; else as the task's own sender
 * @param options.again makes a further retry of a task that has been retried
 * @throws CliError `failed` when the task is unknown, not over, has not failed, or its input is gone
 */
export async function retryTask(
  { nc, stack }: { readonly nc: NatsConnection; readonly stack: OpenStack },
  task: string,
  { from: as, again }: { readonly from?: string | undefined; readonly again: boolean },
): Promise<Retried> {
  const record = await readRecord(stack, task);
  const { head } = record;
  refuseUnlessFailed(record, as);
  const parties = { from: as ?? head.from, to: head.to };
  const known = await retriesOf(stack, task, parties);
  const last = known.at(-1);
  if (last !== undefined && !again) return { ...last, sent: false };
  if (last !== undefined && !isTerminal(last.state))
    throw new CliError(EXIT.failed, `task ${task}: its retry ${last.taskId} is not over yet`);
  const next = retryOf(task, parties, known.length + 1);
  const sent = await send(nc, next, await requestOf(stack, head, as));
  return { ...next, sent };
}

function refuseUnlessFailed({ head, view }: TaskRecord, as: string | undefined): void {
  const refuse = (why: string) => new CliError(EXIT.failed, `task ${head.taskId}: ${why}`);
  if (head.reject !== undefined)
    throw refuse("it was rejected, and its input is not kept: its sender may send it again");
  const state = view.end?.state ?? head.state;
  if (!isTerminal(state)) throw refuse(`it is not over; ./sluice cancel ${head.taskId} ends it`);
  if (state !== "TASK_STATE_FAILED" && state !== "TASK_STATE_CANCELED")
    throw refuse(`it has not failed: ${stateName(state)}`);
  if (head.messageId.startsWith(DELEGATED) && as === undefined)
    throw refuse(
      `task ${cleanLine(head.clientTaskRef ?? "of another agent")} had handed it on, and does not wait for it any more: retry that one, or this as somebody else with --from`,
    );
}

/** A message id is unique for its sender and receiver; it must tell which task it repeats. */
function retryOf(task: string, parties: { readonly from: string; readonly to: string }, attempt: number) {
  const messageId = `retry_${task.replace(/^task_/, "")}_${attempt}`;
  const { from, to } = parties;
  return { taskId: taskIdOf(from, to, messageId), messageId, from, to, attempt };
}

/** The retries that the table knows. */
async function retriesOf(
  { store }: OpenStack,
  task: string,
  parties: { readonly from: string; readonly to: string },
) {
  const known: (ReturnType<typeof retryOf> & { readonly state: TaskState })[] = [];
  while (known.length < MAX_RETRIES) {
    const retry = retryOf(task, parties, known.length + 1);
    const head = await store.head(retry.taskId);
    if (head === undefined) return known;
    known.push({ ...retry, state: head.state });
  }
  throw new CliError(EXIT.failed, `task ${task}: it has been retried ${MAX_RETRIES} times`);
}

/** The request as it was; whoever asks in another's place is its origin no more. */
async function requestOf(stack: OpenStack, head: Head, as: string | undefined) {
  const read = readTaskPayload(await inputOf(stack, head));
  if (!read.ok) throw new CliError(EXIT.failed, `task ${head.taskId}: its input is no task: ${read.reason}`);
  if (as === undefined || as === head.from) return read.value;
  const { originRuntimeRef: _, originRequester: __, ...request } = read.value;
  return request;
}

async function send(
  nc: NatsConnection,
  { from, to, messageId }: Pick<Retried, "from" | "to" | "messageId">,
  request: Parameters<typeof taskMessage>[0]["request"],
): Promise<boolean> {
  const message = taskMessage({ from, to, messageId, request, createdAt: new Date().toISOString() });
  try {
    return !(await publish(nc, message));
  } catch (cause) {
    if (cause instanceof CliError || nc.isClosed()) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(
      EXIT.unreachable,
      `cannot publish as ${from}: ${cleanLine(why, 200)}; if NATS lets you be another runtime only, name it with --from`,
      { cause },
    );
  }
}
