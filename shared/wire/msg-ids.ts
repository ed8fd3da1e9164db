import { rejectionKey } from "./ids.ts";
import type { ControlKind } from "./subjects.ts";

interface EventParts {
  readonly executor: string;
  readonly delegator: string;
  readonly taskId: string;
}

/** What a message's `Nats-Msg-Id` is made of. */
export type MsgIdParts =
  | { readonly kind: "task"; readonly from: string; readonly to: string; readonly messageId: string }
  | {
      readonly kind: "control";
      readonly from: string;
      readonly executor: string;
      readonly taskId: string;
      readonly control: ControlKind;
      readonly revision: number;
    }
  | {
      readonly kind: "rejected";
      readonly executor: string;
      readonly delegator: string;
      readonly messageId: string;
    }
  | (EventParts & { readonly kind: "accepted" | "result" })
  | (EventParts & { readonly kind: "status"; readonly revision: number })
  | (EventParts & { readonly kind: "artifact"; readonly artifactId: string; readonly revision: number });

/**
 * The `Nats-Msg-Id` of a message, by which a stream knows a message that it already has (docs/wire.md §4). A result's
 * has no revision: a task has one result, however often it is published.
 */
export function msgIdOf(parts: MsgIdParts): string {
  switch (parts.kind) {
    case "task":
      return `task:${parts.from}:${parts.to}:${parts.messageId}`;
    case "control":
      return `control:${parts.from}:${parts.executor}:${parts.taskId}:${parts.control}:${parts.revision}`;
    case "rejected":
      return `event:${parts.executor}:${parts.delegator}:${rejectionKey(parts.messageId)}:rejected`;
    case "accepted":
    case "result":
      return `event:${parts.executor}:${parts.delegator}:${parts.taskId}:${parts.kind}`;
    case "status":
      return `event:${parts.executor}:${parts.delegator}:${parts.taskId}:status:${parts.revision}`;
    case "artifact":
      return `event:${parts.executor}:${parts.delegator}:${parts.taskId}:artifact:${parts.artifactId}:${parts.revision}`;
  }
}
