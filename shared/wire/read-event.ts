import * as z from "../zod.ts";
import { type ArtifactRef, readableArtifactRef } from "./artifacts.ts";
import { readTimelessEnvelope } from "./envelope.ts";
import { failed, optional, optionalText, type Reading, readWith } from "./reading.ts";
import { type TaskState, taskState } from "./states.ts";
import type { EventKind } from "./subjects.ts";

/** An error as some executor wrote it; the code need not be one that is known here. */
export interface EventError {
  readonly code: string;
  readonly message: string;
}

/** An event as a delegator sees it. */
export interface TaskEvent {
  readonly kind: EventKind;
  /** The executor. */
  readonly from: string;
  /** The delegator. */
  readonly to: string;
  readonly taskKey: string;
  /** Absent when the task was never accepted. */
  readonly taskId?: string;
  /** Of the envelope: for `accepted`, `rejected` and `result` usually that of the task's message. */
  readonly messageId: string;
  readonly revision: number;
  readonly state: TaskState;
  /** Empty when there is none. */
  readonly content: string;
  /** Of a `status`: what goes with its text, for programs. */
  readonly data?: unknown;
  readonly error: EventError | null;
  readonly clientTaskRef?: string;
  readonly artifact?: ArtifactRef;
  readonly result?: {
    readonly artifacts: readonly ArtifactRef[];
    readonly metrics: Readonly<Record<string, number>>;
  };
  /** RFC 3339. */
  readonly createdAt?: string;
}

const eventKind = z.whenUsed(() => z.enum(["accepted", "rejected", "status", "artifact", "result"]));

/** An object whose keys may be written in any case: executors write `Code` or `code`, `TaskID` or `taskId`. */
function anyCase<T extends z.core.$ZodLooseShape>(shape: T) {
  const lowered = z.pipe(
    z.record(z.string(), z.unknown()),
    z.transform((object) =>
      Object.fromEntries(Object.entries(object).map(([key, value]) => [key.toLowerCase(), value])),
    ),
  );
  return z.pipe(lowered, z.object(shape));
}

const error = z.whenUsed(() =>
  optional(
    z.pipe(
      anyCase({ code: optionalText(), message: optionalText() }),
      z.transform(({ code = "", message = "" }) =>
        code === "" && message === "" ? undefined : { code, message },
      ),
    ),
  ),
);
const state = z.whenUsed(() => z.pipe(optionalText(), z.optional(taskState())));

const payload = z.whenUsed(() =>
  anyCase({
    state: state(),
    content: optionalText(),
    data: z.optional(z.unknown()),
    error: error(),
    revision: optional(z.int().check(z.nonnegative())),
    clienttaskref: optionalText(),
    artifact: optional(readableArtifactRef()),
    result: optional(
      anyCase({
        state: state(),
        content: optionalText(),
        error: error(),
        artifacts: optional(z.array(readableArtifactRef())),
        metrics: optional(z.record(z.string(), z.number())),
      }),
    ),
  }),
);

/** The state of an event that names none. */
const IMPLIED: Readonly<Partial<Record<EventKind, TaskState>>> = {
  accepted: "TASK_STATE_WORKING",
  rejected: "TASK_STATE_REJECTED",
  result: "TASK_STATE_COMPLETED",
};

/**
 * Reads an event of any executor (docs/wire.md §7), whatever its age. What a `result` says counts more than what the
 * event says around it.
 */
export function readEvent(subject: string, body: Uint8Array): Reading<TaskEvent> {
  const enveloped = readTimelessEnvelope(subject, body);
  if (!enveloped.ok) return enveloped;
  const { envelope, subject: parsed } = enveloped.value;
  if (parsed.kind !== "event") return failed("subject: expected an event's");
  const kind = eventKind().safeParse(parsed.event).data;
  if (kind === undefined) return failed("subject: expected a known kind of event");
  const read = readWith(payload(), envelope.payload, "payload");
  if (!read.ok) return read;

  const { result, artifact, clienttaskref: clientTaskRef, ...of } = read.value;
  const state = result?.state ?? of.state ?? IMPLIED[kind];
  if (state === undefined) return failed("payload.state: expected a state, got none");
  return {
    ok: true,
    value: {
      kind,
      from: parsed.from,
      to: parsed.to,
      taskKey: parsed.taskKey,
      ...(envelope.taskId !== undefined && { taskId: envelope.taskId }),
      messageId: envelope.messageId,
      revision: of.revision || (envelope.revision ?? 0),
      state,
      content: of.content ?? result?.content ?? "",
      ...(kind === "status" && of.data !== undefined && of.data !== null && { data: of.data }),
      error: (result === undefined ? of.error : result.error) ?? null,
      ...(clientTaskRef !== undefined && { clientTaskRef }),
      ...(artifact !== undefined && { artifact }),
      ...(result !== undefined && {
        result: { artifacts: result.artifacts ?? [], metrics: result.metrics ?? {} },
      }),
      ...(envelope.createdAt !== undefined && { createdAt: envelope.createdAt }),
    },
  };
}
