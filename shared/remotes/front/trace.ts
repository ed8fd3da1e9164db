import type { Head } from "../../tasks/items.ts";
import { type ExchangeTrace, isRemoteId } from "../exchange/index.ts";

export type FrontHead = Pick<Head, "taskId" | "messageId" | "to" | "skill" | "traceparent">;

/**
 * What we call a task's conversation at a remote: as its requester does, or after the task where no agent could say that
 * again. Such an answer would be none of A2A, and so a failure of the remote's that its requester has made.
 */
export function conversationOf(taskId: string, contextId: string | undefined): string {
  return contextId !== undefined && isRemoteId(contextId) ? contextId : taskId;
}

/**
 * Where a task's exchanges belong.
 *
 * @param of.hops how often the work was handed on, this time included
 * @param of.contextId what the requester calls the conversation
 */
export function traceOf(
  { taskId, messageId, to, traceparent }: FrontHead,
  { hops, contextId }: { readonly hops: number; readonly contextId?: string | undefined },
): ExchangeTrace {
  const correlationId = conversationOf(taskId, contextId);
  return { correlationId, parentId: messageId, traceparent, caller: to, hops };
}
