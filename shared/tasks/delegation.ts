import { createHash } from "node:crypto";
import { traceOf } from "../policy/choosing/hops.ts";
import type { Result } from "../policy/choosing/outcomes.ts";
import {
  controlMessage,
  type Outgoing,
  readableArtifactRef,
  type TaskRequest,
  taskMessage,
  taskState,
} from "../wire/index.ts";
import * as z from "../zod.ts";
import type { Told, View, Waiting } from "./fold.ts";
import type { Child, Head } from "./items.ts";

/**
 * Tasks that our agents hand on (docs/tasks.md, delegation): how a parent task and its children know each other, and
 * what is sent to an executor.
 */

/** How a delegated task has ended, or that it has asked, which ends it for us. */
export const outcome = z.whenUsed(() =>
  z.object({
    state: taskState(),
    text: z.string(),
    artifacts: z.array(readableArtifactRef()),
    metrics: z.record(z.string(), z.number()),
    /** Whatever code the executor uses. */
    error: z.optional(z.object({ code: z.string(), message: z.string() })),
  }),
);
export type ChildOutcome = z.infer<ReturnType<typeof outcome>>;

/**
 * What the end of a delegation tells of who was asked, for whoever chooses next (docs/choosing.md, weight); nothing when it
 * was cancelled. What it has cost, and that it was no success though it was completed, is the executor's own word.
 */
export function resultOf({ state, metrics }: Pick<ChildOutcome, "state" | "metrics">): Result | undefined {
  if (state === "TASK_STATE_CANCELED") return undefined;
  const { success, cost_usd: costUsd } = metrics;
  return { good: state === "TASK_STATE_COMPLETED" && success !== 0, costUsd };
}

/** The most artifacts that are kept of a child while it works. */
export const MAX_CHILD_ARTIFACTS = 500;

const PARENT = /^dlg_([0-9a-f]{24})_[0-9a-f]{16}$/;

/** The id of the message by which a step hands a task on: always the same, so that a repeated one is known again. */
export function childMessageId(taskId: string, step: string): string {
  const digest = createHash("sha256").update(step).digest("hex").slice(0, 16);
  return `dlg_${taskId.replace(/^task_/, "")}_${digest}`;
}

/** The task that has sent the message of this id; undefined when it is none that a step hands on. */
export function parentTaskId(messageId: string): string | undefined {
  const [, digits] = PARENT.exec(messageId) ?? [];
  return digits === undefined ? undefined : `task_${digits}`;
}

/** A delegation that nothing has put an end to. */
export interface OpenChild {
  readonly step: string;
  readonly child: Child;
  readonly told: Told | undefined;
}

/** The delegations of a task that are open, and have no outcome. */
export function openChildren(view: View): OpenChild[] {
  return [...view.open.values()].flatMap(({ name, child }) => {
    const told = view.heard.get(name);
    return child === undefined || told?.outcome !== undefined ? [] : [{ step: name, child, told }];
  });
}

/** What is asked of an executor, in a form that every peer reads (docs/wire.md §6). */
export type ChildMessage =
  | { readonly kind: "text"; readonly text: string }
  | { readonly message: { readonly parts: readonly unknown[] } };

/** The message with how often the work has been handed on. */
function withHops(a2a: ChildMessage, hops: number | undefined): unknown {
  if (hops === undefined) return a2a;
  const metadata = traceOf(hops);
  return "message" in a2a ? { message: { ...a2a.message, metadata } } : { ...a2a, metadata };
}

/** The message that hands a task on: the same bytes whenever it is made of the same open step. */
export function childTask(
  head: Pick<Head, "taskId" | "to">,
  { child, since }: { readonly child: Child; readonly since: Waiting["since"] },
  { a2a, contextId }: { readonly a2a: ChildMessage } & Pick<TaskRequest, "contextId">,
): Outgoing {
  const { to, channelRef, skill, messageId, timeoutSec, depth, hops } = child;
  return taskMessage({
    from: head.to,
    to,
    messageId,
    request: {
      a2a: withHops(a2a, hops),
      channelRef,
      skillId: `${channelRef}/${skill}`,
      clientTaskRef: head.taskId,
      ...(contextId !== undefined && { contextId }),
      delivery: { timeoutSec, maxDelegationDepth: depth },
      originRuntimeRef: { runtimeAgentId: head.to },
    },
    createdAt: new Date(since).toISOString(),
  });
}

/** The message that cancels a task which was handed on: the same whenever the same was seen of it. */
export function cancelMessage(
  head: Pick<Head, "taskId" | "to">,
  child: { readonly to: string; readonly taskId: string },
  seen: { readonly revision: number; readonly at: number },
  reason: string,
): Outgoing {
  return controlMessage({
    from: head.to,
    to: child.to,
    taskId: child.taskId,
    kind: "cancel",
    // An executor may count as far as it likes.
    revision: Math.min(seen.revision, Number.MAX_SAFE_INTEGER - 1) + 1,
    reason,
    a2a: { reason },
    clientTaskRef: head.taskId,
    createdAt: new Date(seen.at).toISOString(),
  });
}
