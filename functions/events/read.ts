import { type Reading, readEvent, readTimelessEnvelope, type TaskEvent } from "../../shared/wire/index.ts";

/**
 * Reads an event of a delegated task. A `result` or a `rejected` whose payload cannot be read, though its envelope can,
 * is a failure that says why: nothing else will come of the task.
 */
export function readTold(subject: string, body: Uint8Array): Reading<TaskEvent> {
  const read = readEvent(subject, body);
  if (read.ok) return read;
  const enveloped = readTimelessEnvelope(subject, body);
  if (!enveloped.ok || enveloped.value.subject.kind !== "event") return read;
  const { envelope, subject: of } = enveloped.value;
  if (of.event !== "result" && of.event !== "rejected") return read;
  const event: TaskEvent = {
    kind: of.event,
    from: of.from,
    to: of.to,
    taskKey: of.taskKey,
    ...(envelope.taskId !== undefined && { taskId: envelope.taskId }),
    messageId: envelope.messageId,
    revision: envelope.revision ?? 0,
    state: of.event === "rejected" ? "TASK_STATE_REJECTED" : "TASK_STATE_FAILED",
    content: "",
    error: { code: "invalid_envelope", message: `its ${of.event} cannot be read: ${read.reason}` },
  };
  return { ok: true, value: event };
}
