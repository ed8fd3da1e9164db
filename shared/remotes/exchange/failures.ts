import { GuardedRequestError, type GuardedRequestReason } from "../../http/errors.ts";
import * as z from "../../zod.ts";
import { RemoteError, type RemoteErrorCode } from "./errors.ts";
import { MAX_REMOTE_SAYS, MAX_RETRY_AFTER_MS } from "./limits.ts";

/** What went wrong on the way (docs/http.md, errors) in the words of an exchange. */
const OF_REQUESTS: Readonly<Record<GuardedRequestReason, RemoteErrorCode>> = {
  not_allowed: "not_allowed",
  private_address: "not_allowed",
  redirect: "not_allowed",
  unreachable: "unreachable",
  broken: "lost",
  timeout: "timeout",
  too_large: "too_large",
  content_type: "protocol",
  status: "failed",
};

/** Errors of JSON-RPC (JSON-RPC 2.0 §5.1) and of A2A (A2A 1.0 §5.4); every other code is a failure of the agent's. */
const OF_RPC: ReadonlyMap<number, RemoteErrorCode> = new Map([
  [-32_700, "invalid"],
  [-32_600, "invalid"],
  [-32_601, "unsupported"],
  [-32_602, "invalid"],
  [-32_001, "not_found"],
  [-32_002, "not_cancelable"],
  [-32_003, "unsupported"],
  [-32_004, "unsupported"],
  [-32_005, "unsupported"],
  [-32_007, "unsupported"],
  [-32_008, "unsupported"],
  [-32_009, "unsupported"],
]);

/** The same over HTTP+JSON, by the reason of its `google.rpc.ErrorInfo` (A2A 1.0 §11.6). */
const OF_REST: ReadonlyMap<string, RemoteErrorCode> = new Map([
  ["TASK_NOT_FOUND", "not_found"],
  ["TASK_NOT_CANCELABLE", "not_cancelable"],
  ["UNSUPPORTED_OPERATION", "unsupported"],
  ["PUSH_NOTIFICATION_NOT_SUPPORTED", "unsupported"],
  ["CONTENT_TYPE_NOT_SUPPORTED", "unsupported"],
  ["EXTENSION_SUPPORT_REQUIRED", "unsupported"],
  ["VERSION_NOT_SUPPORTED", "unsupported"],
  ["INVALID_PARAMS", "invalid"],
]);

/** What went wrong, whatever a request, the SDK or its reader threw; a RemoteError stays itself. */
export function remoteError(remote: string, error: unknown): RemoteError {
  if (error instanceof RemoteError) return error;
  if (error instanceof GuardedRequestError) {
    const { reason, sent, status } = error;
    return new RemoteError(OF_REQUESTS[reason], remote, error.message, { sent, status });
  }
  // What the SDK throws itself quotes the answer, and says no more than that it could not read it.
  return new RemoteError("protocol", remote, "what it answers is no A2A", { sent: true });
}

const errorShapes = z.whenUsed(() => ({
  rpc: z.object({ code: z.int(), message: z.string() }),
  rest: z.object({
    message: z.orElse(z.string(), ""),
    details: z.orElse(z.array(z.unknown()), []),
  }),
  info: z.object({ reason: z.string() }),
}));

/**
 * What an answer says that it has gone wrong.
 *
 * @param error its member `error`
 * @param status the answer's status of HTTP
 */
export function toldError(remote: string, error: unknown, status: number): RemoteError {
  const rest = errorShapes().rest.safeParse(error).data;
  const [reason] = (rest?.details ?? []).flatMap((of) => errorShapes().info.safeParse(of).data?.reason ?? []);
  const byReason = OF_REST.get(reason ?? "");
  const rpc = errorShapes().rpc.safeParse(error).data;
  // Over HTTP+JSON the code is a status of HTTP (A2A 1.0 §11.6); those of JSON-RPC are negative.
  if (byReason === undefined && (rpc === undefined || rpc.code > 0) && status >= 400)
    return statusError(remote, status, null, rest?.message);
  if (byReason === undefined && rpc === undefined)
    return new RemoteError("protocol", remote, "its error has neither code nor message", { sent: true });
  const code = byReason ?? OF_RPC.get(rpc?.code ?? 0) ?? "failed";
  return new RemoteError(code, remote, `it answers with the error ${byReason ? reason : rpc?.code}`, {
    // An error that names a fault of the request says that nothing was begun.
    sent: code === "failed",
    status,
    rpcCode: rpc?.code,
    says: said(rpc?.message ?? rest?.message),
  });
}

/** What a status means that is no success (RFC 9110 §15), when the answer itself says nothing about it. */
export function statusError(
  remote: string,
  status: number,
  retryAfter: string | null,
  says?: string | undefined,
): RemoteError {
  const code = codeOfStatus(status);
  return new RemoteError(code, remote, `it answers with the status ${status}`, {
    // Who is refused, or told to come later, was not heard. What a server, or a proxy before it, has failed in, may be done.
    sent: status >= 500 || status === 408,
    status,
    retryAfterMs: retryAfter === null ? undefined : retryAfterMs(retryAfter),
    says: said(says),
  });
}

function codeOfStatus(status: number): RemoteErrorCode {
  if (status === 401 || status === 403) return "refused";
  if (status === 429 || status === 503) return "overloaded";
  if (status === 408) return "timeout";
  if (status >= 500) return "failed";
  return status >= 400 ? "invalid" : "protocol";
}

/** Whether nothing that the answer holds could say more. */
export function saysAll(status: number): boolean {
  return !["invalid", "failed"].includes(codeOfStatus(status));
}

/** Seconds, or a date (RFC 9110 §10.2.3). */
function retryAfterMs(text: string): number | undefined {
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}

/** A text of the agent's for people to read: on one line, and cut. */
function said(text: string | undefined): string | undefined {
  const line = text
    ?.slice(0, MAX_REMOTE_SAYS)
    .replace(/\p{C}+/gu, " ")
    .trim();
  return line === "" ? undefined : line;
}
