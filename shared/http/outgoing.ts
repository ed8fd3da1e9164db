import { ACCEPT_ENCODING } from "./body.ts";
import type { WireRequest } from "./connection.ts";
import { GuardedRequestError } from "./errors.ts";
import { MAX_REQUEST_BYTES } from "./limits.ts";

/** What belongs to the connection and is ours to say, as `fetch` has it (Fetch Standard, forbidden request-header). */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** A request as its caller gave it, to be sent. */
export interface Outgoing extends WireRequest {
  readonly redirect: Request["redirect"];
}

/**
 * Reads what `fetch` takes. Headers of the connection are left out.
 *
 * @param label how errors call the host
 * @throws GuardedRequestError `not_allowed`, without what was given, for a header may be a secret; `too_large`
 */
export async function outgoing(
  label: string,
  input: string | URL | Request,
  init: RequestInit,
): Promise<Outgoing> {
  const request = requestOf(label, input, init);
  const body = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
  if (body !== undefined && body.byteLength > MAX_REQUEST_BYTES)
    throw new GuardedRequestError(
      "too_large",
      label,
      `expected a body of at most ${MAX_REQUEST_BYTES} bytes, got ${body.byteLength}`,
    );
  const given = [...request.headers].filter(([name]) => !OF_THE_CONNECTION.has(name));
  return {
    method: request.method,
    headers: {
      accept: "*/*",
      "user-agent": "sluice",
      ...Object.fromEntries(given),
      "accept-encoding": ACCEPT_ENCODING,
    },
    body,
    redirect: request.redirect,
  };
}

function requestOf(label: string, input: string | URL | Request, init: RequestInit): Request {
  try {
    return new Request(input, init);
  } catch {
    throw new GuardedRequestError(
      "not_allowed",
      label,
      "expected a method, headers and a body that HTTP allows",
    );
  }
}
