/**
 * Why an exchange with a remote agent came to nothing (docs/remotes.md, how a remote agent is asked):
 *
 * - `not_allowed`: the operator's configuration forbids it, or lacks what it needs; nothing was sent
 * - `unreachable`: there was no connection; nothing was sent
 * - `lost`: the connection broke, or a stream ended before the task did
 * - `timeout`: no answer in time
 * - `refused`: it does not take us for whom it works for (401, 403)
 * - `overloaded`: it wants to be asked later (429, 503)
 * - `failed`: it says that it has failed itself (-32603, 5xx)
 * - `not_found`: it has no such task (-32001)
 * - `not_cancelable`: the task cannot be cancelled (-32002)
 * - `unsupported`: it does not do that at all (-32004, -32601 and the like)
 * - `invalid`: it takes the request for none (-32600, -32602, other 4xx)
 * - `too_large`: what it says is over a bound
 * - `protocol`: what it says is no A2A, or contradicts what it said before
 */
export type RemoteErrorCode =
  | "not_allowed"
  | "unreachable"
  | "lost"
  | "timeout"
  | "refused"
  | "overloaded"
  | "failed"
  | "not_found"
  | "not_cancelable"
  | "unsupported"
  | "invalid"
  | "too_large"
  | "protocol";

/** Codes after which the same may go better later. */
const RETRYABLE: ReadonlySet<RemoteErrorCode> = new Set([
  "unreachable",
  "lost",
  "timeout",
  "overloaded",
  "failed",
]);

interface Details {
  readonly sent: boolean;
  /** The answer's status of HTTP. */
  readonly status?: number | undefined;
  /** The code of a JSON-RPC error. */
  readonly rpcCode?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly says?: string | undefined;
}

/** An exchange with a remote agent that came to nothing. The message names the agent and quotes nothing of it. */
export class RemoteError extends Error {
  override readonly name = "RemoteError";
  readonly code: RemoteErrorCode;
  /** Whether the same may go better later; of a message only once it was looked for (`find`), unless nothing was `sent`. */
  readonly retryable: boolean;
  /** Whether the remote may have seen the request: then what became of it is not known by this error. */
  readonly sent: boolean;
  readonly status: number | undefined;
  readonly rpcCode: number | undefined;
  /** How long the remote wants to be left alone, in milliseconds, bounded to an hour. */
  readonly retryAfterMs: number | undefined;
  /** What the remote says about it: its text, cut, for the requester and never for the log. */
  readonly says: string | undefined;

  constructor(code: RemoteErrorCode, remote: string, message: string, details: Details) {
    super(`remote agent ${remote}: ${message}`);
    this.code = code;
    this.retryable = RETRYABLE.has(code);
    this.sent = details.sent;
    this.status = details.status;
    this.rpcCode = details.rpcCode;
    this.retryAfterMs = details.retryAfterMs;
    this.says = details.says;
  }
}
