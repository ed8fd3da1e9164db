/** An error that no retry can mend: the step, and with it the task unless it is caught, ends as failed. */
export class FatalError extends Error {
  override readonly name = "FatalError";
  /** Numbers for the `Metrics` of the result of a task that ends by it. */
  readonly metrics?: Readonly<Record<string, number>>;

  constructor(message?: string, options: ErrorOptions & { readonly metrics?: FatalError["metrics"] } = {}) {
    super(message, options);
    if (options.metrics !== undefined) this.metrics = options.metrics;
  }
}

/** Nobody answered in time. Uncaught it ends the task as failed with the code `timeout`. */
export class ReplyTimeout extends Error {
  override readonly name = "ReplyTimeout";
}

/**
 * A task that was handed on came to no good end, or could not be handed on. Uncaught it ends the task as failed: with the
 * code `timeout` when its time was over, `policy_denied` or `unauthorized_target` when the policy forbids it, one of the
 * wire's when nobody was chosen (docs/choosing.md, reasons), and `internal` otherwise, with what the executor said.
 */
export class DelegationError extends Error {
  override readonly name = "DelegationError";
  /** The executor's code, or ours. */
  readonly code: string;
  /** The state in which the executor left the task; absent when it has none, or none was heard. */
  readonly state?: string;

  constructor(message: string, of: { readonly code: string; readonly state?: string | undefined }) {
    super(message);
    this.code = of.code;
    if (of.state !== undefined) this.state = of.state;
  }
}

/** The requester denied its approval. Uncaught it ends the task as failed with the code `auth_not_satisfied`. */
export class ApprovalDenied extends Error {
  override readonly name = "ApprovalDenied";
}
