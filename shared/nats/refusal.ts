import { errors } from "@nats-io/transport-node";

/** What the server does not let a client do. */
export interface Refusal {
  readonly operation: "publish" | "subscription";
  readonly subject: string;
  /** Such as `NATS does not let this user publish on "a2a.v1.task.acme-cli.x.y"`. */
  readonly says: string;
}

/** An error's causes, one below the other, at the most. */
const DEPTH = 5;

/** What the server has refused, where that is what an error, or what caused it, comes of; nothing otherwise. */
export function refusalOf(error: unknown): Refusal | undefined {
  let cause = error;
  for (let depth = 0; depth < DEPTH && cause instanceof Error; depth++) {
    if (cause instanceof errors.PermissionViolationError) {
      const { operation, subject } = cause;
      const does = operation === "publish" ? "publish on" : "subscribe to";
      return { operation, subject, says: `NATS does not let this user ${does} "${subject}"` };
    }
    cause = cause.cause;
  }
  return undefined;
}
