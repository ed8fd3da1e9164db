import * as z from "../zod.ts";

/** The states of a task (docs/wire.md §7). */
export const taskState = z.whenUsed(() =>
  z.enum([
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_AUTH_REQUIRED",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_REJECTED",
  ]),
);
export type TaskState = z.Used<typeof taskState>;

const TERMINAL: ReadonlySet<TaskState> = new Set([
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
]);

/** Whether a task in this state is over: nothing follows it. */
export function isTerminal(state: TaskState): boolean {
  return TERMINAL.has(state);
}

/** The codes of `error.Code` (docs/wire.md §11). */
export const errorCode = z.whenUsed(() =>
  z.enum([
    "unsupported_operation",
    "invalid_subject",
    "invalid_envelope",
    "policy_denied",
    "capability_denied",
    "timeout",
    "internal",
    "unsupported_version",
    "unsupported_binding",
    "unauthorized_sender",
    "unauthorized_target",
    "unknown_agent",
    "unknown_skill",
    "channel_not_enabled",
    "sender_not_allowed",
    "skill_not_allowed",
    "overloaded",
    "task_not_found",
    "task_terminal",
    "cancel_not_allowed",
    "input_not_expected",
    "auth_not_satisfied",
    "store_error",
    "payload_too_large",
    "unsupported_media_type",
    "artifact_fetch_failed",
    "nats_publish_failed",
    "canceled",
  ]),
);
export type ErrorCode = z.Used<typeof errorCode>;

/** An error as events carry it; `message` is for people. */
export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
}
