import type { IncomingMessage } from "node:http";
import { boundedBody } from "./body.ts";
import { GuardedRequestError } from "./errors.ts";
import type { RequestLimits } from "./limits.ts";
import type { Timer, Watch } from "./watch.ts";

/** An answer whose head is there. */
export interface Arrival {
  readonly answer: IncomingMessage;
  /** Where it came from in the end. */
  readonly url: URL;
  readonly redirected: boolean;
}

interface Expected {
  readonly method: string;
  readonly accepts: readonly string[] | undefined;
  readonly limits: RequestLimits;
  readonly watch: Watch;
  /** The time that runs since the call. */
  readonly deadline: Timer;
}

/** Statuses without a body (Fetch Standard, null body status). */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * An answer as `fetch` gives it, its body bounded.
 *
 * @throws GuardedRequestError `broken`, `content_type`, `too_large`; the answer is then closed
 */
export function answerOf(arrival: Arrival, expected: Expected): Response {
  const { answer, url } = arrival;
  try {
    const status = answer.statusCode ?? 0;
    const headers = headersOf(answer);
    const empty = WITHOUT_BODY.has(status) || expected.method === "HEAD";
    if (!empty) checkType(url.host, status, headers, expected.accepts);
    const body = empty ? closed(answer, expected.watch) : bodyOf(arrival, status, headers, expected);
    return withUrl(new Response(body, { status, statusText: answer.statusMessage ?? "", headers }), arrival);
  } catch (error) {
    answer.destroy();
    if (error instanceof GuardedRequestError) throw error;
    // `Headers` and `Response` are stricter than the parser; what they say quotes the answer.
    throw new GuardedRequestError("broken", url.host, "its answer's head is not HTTP", { sent: true });
  }
}

function bodyOf({ answer, url }: Arrival, status: number, headers: Headers, expected: Expected) {
  const { limits, watch, deadline } = expected;
  const label = url.host;
  const events = isSuccess(status) && typeOf(headers) === "text/event-stream";
  const late = () =>
    new GuardedRequestError("timeout", label, "nothing came or was read in time", { sent: true });
  const idle = events ? watch.start(limits.idleMs, late) : undefined;
  if (events) deadline.clear();
  (idle ?? deadline).unref();
  const maxBytes = events ? limits.maxStreamBytes : limits.maxAnswerBytes;
  const body = boundedBody(answer, { label, maxBytes, watch, idle });
  // Of the body as it was, which is decompressed.
  headers.delete("content-encoding");
  headers.delete("content-length");
  return body;
}

function closed(answer: IncomingMessage, watch: Watch): null {
  watch.close();
  answer.destroy();
  return null;
}

function headersOf(answer: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(answer.headersDistinct))
    for (const value of values) headers.append(name, value);
  return headers;
}

function checkType(label: string, status: number, headers: Headers, accepts: readonly string[] | undefined) {
  if (accepts === undefined || !isSuccess(status)) return;
  const type = typeOf(headers);
  if (accepts.includes(type)) return;
  // What the other side says is shown only if it looks like a type.
  const got = /^[\w.+-]{1,40}\/[\w.+-]{1,80}$/.test(type) ? type : "none";
  throw new GuardedRequestError("content_type", label, `expected ${accepts.join(" or ")}, got ${got}`, {
    sent: true,
  });
}

/** The media type without its parameters (RFC 9110 §8.3.1). */
function typeOf(headers: Headers): string {
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  return type.trim().toLowerCase();
}

const isSuccess = (status: number) => status >= 200 && status < 300;

/** `Response` knows these of its own requests alone. */
function withUrl(response: Response, { url, redirected }: Arrival): Response {
  return Object.defineProperties(response, { url: { value: url.href }, redirected: { value: redirected } });
}

/**
 * An answer with success, or an error.
 *
 * @returns the same answer
 * @throws GuardedRequestError `status`; the answer's body is then cancelled
 */
export async function requireOk(response: Response): Promise<Response> {
  if (response.ok) return response;
  await response.body?.cancel();
  const { status } = response;
  throw new GuardedRequestError("status", URL.parse(response.url)?.host, `it answers with status ${status}`, {
    status,
    sent: true,
  });
}
