import type { ArtifactRef } from "./artifacts.ts";
import { BINDING, VERSION } from "./envelope.ts";
import { rejectionKey } from "./ids.ts";
import { msgIdOf } from "./msg-ids.ts";
import { cutToFit } from "./sizes.ts";
import type { ErrorCode, TaskState, WireError } from "./states.ts";
import { type EventKind, eventSubject } from "./subjects.ts";

/** What of an error's message goes on the wire, in bytes as JSON; a result carries it twice. */
const MAX_ERROR_MESSAGE_BYTES = 8_192;

/** The task that events speak of. */
export interface TaskRef {
  readonly taskId: string;
  /** Of the message that asked for the task. */
  readonly messageId: string;
  /** The delegator. */
  readonly from: string;
  /** The executor. */
  readonly to: string;
}

/** An event that is ready to be published, and to be stored until it is. */
export interface WireEvent {
  readonly kind: EventKind;
  readonly revision: number;
  readonly subject: string;
  readonly msgId: string;
  readonly body: string;
}

/** The first event of an accepted task; its revision is 1. `createdAt` is RFC 3339, here and below. */
export function acceptedEvent(task: TaskRef, createdAt: string): WireEvent {
  const { taskId, messageId } = task;
  return taskEvent("accepted", task, createdAt, {
    messageId,
    revision: 1,
    msgId: msgIdOf({ kind: "accepted", ...partsOf(task) }),
    payload: { messageId, taskId, state: "TASK_STATE_WORKING", error: wireError(), revision: 1 },
  });
}

/** The only event of a task that is not accepted. `clientTaskRef` is echoed as it came: peers refuse another. */
export function rejectedEvent(
  task: TaskRef,
  rejection: { readonly clientTaskRef?: string; readonly code: ErrorCode; readonly message: string },
  createdAt: string,
): WireEvent {
  const { messageId } = task;
  const key = rejectionKey(messageId);
  const { clientTaskRef, ...error } = rejection;
  return envelop("rejected", task, createdAt, key, {
    messageId,
    revision: 1,
    msgId: msgIdOf({ kind: "rejected", executor: task.to, delegator: task.from, messageId }),
    payload: {
      messageId,
      clientTaskRef: clientTaskRef || undefined,
      taskId: key,
      state: "TASK_STATE_REJECTED",
      error: wireError(error),
      revision: 1,
    },
  });
}

/** A change of state, or a word about the progress. `content` should fit, see {@link cutToFit}. */
export function statusEvent(
  task: TaskRef,
  of: {
    readonly revision: number;
    readonly state: TaskState;
    readonly content?: string;
    /** JSON for programs that know the agent. */
    readonly data?: unknown;
    readonly error?: WireError;
  },
  createdAt: string,
): WireEvent {
  const { taskId } = task;
  const { revision, state, data } = of;
  return taskEvent("status", task, createdAt, {
    messageId: `${taskId}_status`,
    revision,
    msgId: msgIdOf({ kind: "status", ...partsOf(task), revision }),
    payload: { taskId, state, content: contentOf(of), data, error: wireError(of.error), revision },
  });
}

/**
 * An artifact that is in the object store. A small text may be given in `content` too.
 *
 * @param of.state the task's, which the event must not hide: `TASK_STATE_WORKING` unless it is said
 */
export function artifactEvent(
  task: TaskRef,
  of: {
    readonly revision: number;
    readonly artifact: ArtifactRef;
    readonly state?: TaskState;
    readonly content?: string;
  },
  createdAt: string,
): WireEvent {
  const { taskId } = task;
  const { revision, artifact, state = "TASK_STATE_WORKING" } = of;
  return taskEvent("artifact", task, createdAt, {
    messageId: artifact.id,
    revision,
    msgId: msgIdOf({ kind: "artifact", ...partsOf(task), artifactId: artifact.id, revision }),
    payload: {
      taskId,
      state,
      content: contentOf(of),
      error: wireError(),
      revision,
      artifact,
    },
  });
}

/** The end of a task, whatever it is. `content` stands in the event twice; metrics that are no number are left out. */
export function resultEvent(
  task: TaskRef,
  of: {
    readonly revision: number;
    readonly state: TaskState;
    readonly content?: string;
    readonly artifacts?: readonly ArtifactRef[];
    readonly error?: WireError;
    readonly metrics: Readonly<Record<string, number>>;
  },
  createdAt: string,
): WireEvent {
  const { taskId, messageId } = task;
  const { revision, state, artifacts = [] } = of;
  const content = contentOf(of);
  const error = wireError(of.error);
  return taskEvent("result", task, createdAt, {
    messageId,
    revision,
    msgId: msgIdOf({ kind: "result", ...partsOf(task) }),
    payload: {
      messageId,
      taskId,
      state,
      content,
      error,
      revision,
      result: {
        TaskID: taskId,
        State: state,
        Revision: revision,
        Content: content ?? "",
        Artifacts: artifacts.length === 0 ? null : artifacts,
        Error: error,
        Metrics: Object.fromEntries(Object.entries(of.metrics).filter(([, value]) => Number.isFinite(value))),
      },
    },
  });
}

interface EventParts {
  readonly messageId: string;
  readonly revision: number;
  readonly msgId: string;
  readonly payload: object;
}

function taskEvent(kind: EventKind, task: TaskRef, createdAt: string, parts: EventParts): WireEvent {
  return envelop(kind, task, createdAt, task.taskId, { ...parts, taskId: task.taskId });
}

/** Members are always in one order, and what is undefined is left out: the same event gives the same bytes. */
function envelop(
  kind: EventKind,
  task: TaskRef,
  createdAt: string,
  key: string,
  { messageId, revision, msgId, payload, taskId }: EventParts & { readonly taskId?: string },
): WireEvent {
  return {
    kind,
    revision,
    subject: eventSubject(task.to, task.from, key, kind),
    msgId,
    body: JSON.stringify({
      version: VERSION,
      binding: BINDING,
      messageId,
      from: task.to,
      to: task.from,
      type: "event",
      taskId,
      revision,
      payload,
      createdAt,
    }),
  };
}

function partsOf(task: TaskRef) {
  return { executor: task.to, delegator: task.from, taskId: task.taskId };
}

/** `error` is there even when there is none, with capitalised keys: existing peers write it so. */
function wireError(error?: WireError): { Code: string; Message: string } {
  if (error === undefined) return { Code: "", Message: "" };
  return { Code: error.code, Message: cutToFit(error.message.toWellFormed(), MAX_ERROR_MESSAGE_BYTES) };
}

function contentOf(of: { readonly content?: string }): string | undefined {
  return of.content?.toWellFormed() || undefined;
}
