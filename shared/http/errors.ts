/**
 * Why a request was not made, or its answer not taken:
 *
 * - `not_allowed`: a URL, a header or a body that is never sent
 * - `private_address`: the host is, or resolves to, an address that is not public and not on the allow-list
 * - `redirect`: the answer leads where it is not followed, or too often
 * - `unreachable`: there was no connection, so nothing was sent
 * - `broken`: the connection was lost, or what came is not HTTP
 * - `timeout`: connecting, answering or going on took too long
 * - `too_large`: the request or the answer is over its bound
 * - `content_type`: the answer is not of a type that was asked for
 * - `status`: the answer is not a success (told by `requireOk` alone)
 */
export type GuardedRequestReason =
  | "not_allowed"
  | "private_address"
  | "redirect"
  | "unreachable"
  | "broken"
  | "timeout"
  | "too_large"
  | "content_type"
  | "status";

interface Details {
  readonly status?: number;
  readonly code?: string;
  readonly address?: string;
  readonly sent?: boolean;
}

/**
 * A request that the guarded client refused or that failed. The message names the host and never a path, query,
 * header or body; there is no `cause`, for those of Node.js quote what came from the other side.
 */
export class GuardedRequestError extends Error {
  override readonly name = "GuardedRequestError";
  readonly reason: GuardedRequestReason;
  /** Host and, if it is not 443, port; `undefined` when the URL has none that may be shown. */
  readonly host: string | undefined;
  /** The answer's status, of `status`. */
  readonly status: number | undefined;
  /** What Node.js calls the failure, such as `ECONNREFUSED` or `CERT_HAS_EXPIRED`. */
  readonly code: string | undefined;
  /** The address that is not public: for the operator, not for a peer. */
  readonly address: string | undefined;
  /** Whether a connection stood, so that the other side may have seen the request. */
  sent: boolean;

  constructor(
    reason: GuardedRequestReason,
    host: string | undefined,
    message: string,
    details: Details = {},
  ) {
    super(`${host ?? "outgoing request"}: ${message}`);
    this.reason = reason;
    this.host = host;
    this.status = details.status;
    this.code = details.code;
    this.address = details.address;
    this.sent = details.sent ?? false;
  }
}

/** Node.js's name for a failure; its message may quote the other side, the name does not. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error ? Reflect.get(error, "code") : undefined;
  return typeof code === "string" ? code : undefined;
}
