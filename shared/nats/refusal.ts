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

/**
 * What the bridge says when it finds a stream missing and its user may not make it. The local host knows it by these words,
 * which are all that it gets of an invocation that has failed.
 */
export function unmadeStream(name: string): string {
  return `the stream ${name} does not exist, and this user may not make it; make it as docs/deploying.md says`;
}
