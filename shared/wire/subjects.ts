import * as z from "../zod.ts";
import { agentId, messageId, taskId, taskIdOf, taskKey } from "./ids.ts";

/** The controls there are. Any other kind parses as a subject, and is refused by who reads it. */
export type ControlKind = "status" | "cancel" | "input_reply" | "auth_reply";

/** The events there are. */
export type EventKind = "accepted" | "rejected" | "status" | "artifact" | "result";

export interface TaskSubject {
  readonly kind: "task";
  readonly from: string;
  readonly to: string;
  readonly messageId: string;
}
export interface ControlSubject {
  readonly kind: "control";
  /** The delegator. */
  readonly from: string;
  /** The executor. */
  readonly to: string;
  readonly taskId: string;
  readonly control: string;
}
export interface EventSubject {
  readonly kind: "event";
  /** The executor. */
  readonly from: string;
  /** The delegator. */
  readonly to: string;
  readonly taskKey: string;
  readonly event: string;
}
export interface CardSubject {
  readonly kind: "card";
  readonly from: string;
}
export interface HeartbeatSubject {
  readonly kind: "heartbeat";
  readonly from: string;
  readonly instance: string;
}

/** A subject of the wire; `from` is always the sender, `to` the addressee (docs/wire.md §1). */
export type Subject = TaskSubject | ControlSubject | EventSubject | CardSubject | HeartbeatSubject;

const token = messageId;
const forms = z.whenUsed(
  (): ReadonlyMap<string, z.ZodMiniType<Subject>> =>
    new Map<string, z.ZodMiniType<Subject>>([
      [
        "task",
        z.pipe(
          z.tuple([agentId(), agentId(), messageId()]),
          z.transform(([from, to, messageId]) => ({ kind: "task" as const, from, to, messageId })),
        ),
      ],
      [
        "control",
        z.pipe(
          z.tuple([agentId(), agentId(), taskId(), token()]),
          z.transform(([from, to, taskId, control]) => ({
            kind: "control" as const,
            from,
            to,
            taskId,
            control,
          })),
        ),
      ],
      [
        "event",
        z.pipe(
          z.tuple([agentId(), agentId(), taskKey(), token()]),
          z.transform(([from, to, taskKey, event]) => ({ kind: "event" as const, from, to, taskKey, event })),
        ),
      ],
      [
        "card",
        z.pipe(
          z.tuple([agentId()]),
          z.transform(([from]) => ({ kind: "card" as const, from })),
        ),
      ],
      [
        "heartbeat",
        z.pipe(
          z.tuple([agentId(), token()]),
          z.transform(([from, instance]) => ({ kind: "heartbeat" as const, from, instance })),
        ),
      ],
    ]),
);

/** Takes a subject apart; `null` when it is none of the wire's, or one of its tokens is invalid. */
export function parseSubject(subject: string): Subject | null {
  const [root, version, kind, ...tokens] = subject.split(".");
  if (root !== "a2a" || version !== "v1" || kind === undefined) return null;
  return forms().get(kind)?.safeParse(tokens).data ?? null;
}

/** The task that a subject is of, as its id or, of an event, its key; nothing when it is of none. */
export function taskOfSubject(subject: string): string | undefined {
  const parsed = parseSubject(subject);
  if (parsed?.kind === "task") return taskIdOf(parsed.from, parsed.to, parsed.messageId);
  if (parsed?.kind === "control") return parsed.taskId;
  return parsed?.kind === "event" ? parsed.taskKey : undefined;
}

export function taskSubject(from: string, to: string, messageId: string): string {
  return `a2a.v1.task.${from}.${to}.${messageId}`;
}

export function controlSubject(from: string, executor: string, taskId: string, kind: ControlKind): string {
  return `a2a.v1.control.${from}.${executor}.${taskId}.${kind}`;
}

export function eventSubject(executor: string, delegator: string, taskKey: string, kind: EventKind): string {
  return `a2a.v1.event.${executor}.${delegator}.${taskKey}.${kind}`;
}
