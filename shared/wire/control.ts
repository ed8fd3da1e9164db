import * as z from "../zod.ts";
import { BINDING, type Envelope, VERSION } from "./envelope.ts";
import { msgIdOf } from "./msg-ids.ts";
import { optional, optionalText } from "./reading.ts";
import { type ControlKind, type ControlSubject, controlSubject } from "./subjects.ts";
import type { Outgoing } from "./task.ts";

/** What a delegator says about a task that it has given (docs/wire.md §9). */
export interface Control {
  /** One of {@link ControlKind}, or a kind that nobody knows. */
  readonly kind: string;
  readonly taskId: string;
  /** The delegator. */
  readonly from: string;
  /** The executor. */
  readonly to: string;
  /** One more than the last revision that the sender had seen; 0 when it did not say. */
  readonly revision: number;
  readonly messageId: string;
  readonly reason?: string;
  readonly clientTaskRef?: string;
  /** `{reason}`, `{input}` or `{approve, denyReason}`, by kind; never null. */
  readonly a2a?: unknown;
}

const payload = z.whenUsed(() =>
  z.object({
    a2a: z.optional(z.unknown()),
    clientTaskRef: optionalText(),
    reason: optionalText(),
    revision: optional(z.int().check(z.nonnegative())),
  }),
);
const ownReason = z.whenUsed(() => z.object({ reason: z.string().check(z.minLength(1)) }));

/** Reads a control. A payload of another shape counts as empty: a cancel is a cancel, whatever it carries. */
export function readControl(envelope: Envelope, subject: ControlSubject): Control {
  const { a2a, clientTaskRef, reason, revision } = payload().safeParse(envelope.payload).data ?? {};
  const given = reason ?? ownReason().safeParse(a2a).data?.reason;
  return {
    kind: subject.control,
    taskId: subject.taskId,
    from: subject.from,
    to: subject.to,
    revision: envelope.revision ?? revision ?? 0,
    messageId: envelope.messageId,
    ...(given !== undefined && { reason: given }),
    ...(clientTaskRef !== undefined && { clientTaskRef }),
    ...(a2a !== undefined && a2a !== null && { a2a }),
  };
}

/**
 * A control as a delegator publishes it.
 *
 * @throws RangeError when the revision is not positive
 */
export function controlMessage(of: {
  /** The delegator. */
  readonly from: string;
  /** The executor. */
  readonly to: string;
  readonly taskId: string;
  readonly kind: ControlKind;
  /** One more than the last revision seen. */
  readonly revision: number;
  readonly messageId?: string;
  readonly reason?: string;
  readonly clientTaskRef?: string;
  readonly a2a?: unknown;
  /** RFC 3339. */
  readonly createdAt: string;
}): Outgoing {
  const { from, to, taskId, kind, revision, reason, clientTaskRef, a2a, createdAt } = of;
  if (!(Number.isSafeInteger(revision) && revision > 0))
    throw new RangeError(`revision: expected a positive integer, got ${revision}`);
  const messageId = of.messageId ?? `${taskId}_${kind}_${revision}`;
  return {
    subject: controlSubject(from, to, taskId, kind),
    msgId: msgIdOf({ kind: "control", from, executor: to, taskId, control: kind, revision }),
    body: JSON.stringify({
      version: VERSION,
      binding: BINDING,
      messageId,
      from,
      to,
      type: "control",
      taskId,
      revision,
      payload: { a2a, messageId, clientTaskRef, reason, revision },
      createdAt,
    }),
  };
}
