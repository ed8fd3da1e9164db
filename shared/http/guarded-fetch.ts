import { type AllowList, NOTHING_ALLOWED } from "./allow-list.ts";
import { type Arrival, answerOf } from "./answer.ts";
import type { RequestAuthorization } from "./authorization.ts";
import { exchange } from "./connection.ts";
import {
  checkUrl,
  type Destination,
  findPlace,
  type Place,
  type Resolve,
  systemResolve,
} from "./destination.ts";
import { GuardedRequestError } from "./errors.ts";
import { REQUEST_LIMITS, type RequestLimits } from "./limits.ts";
import { type Outgoing, outgoing } from "./outgoing.ts";
import { checkCrossing, checkRedirect, headersForOthers, redirectTarget } from "./redirects.ts";
import { Watch } from "./watch.ts";

/** What a client may do. */
export interface GuardOptions {
  /** What may be reached beyond public addresses over https; nothing, if it is not given. */
  readonly allow?: AllowList;
  /** Who we are at one origin. A request to another is then refused, for it would be nobody's. */
  readonly authorization?: RequestAuthorization;
  /** The media types that an answer with success may have, such as `application/json`; any, if it is not given. */
  readonly accepts?: readonly string[];
  readonly limits?: Partial<RequestLimits>;
  /** PEM text of the authorities that are trusted in place of the usual ones. */
  readonly ca?: string;
  /** All addresses of a name; as the system has them, if it is not given. */
  readonly resolve?: Resolve;
}

/** What a single request may say besides what `fetch` takes; it goes before what its client has. */
export interface GuardedInit extends RequestInit, Pick<GuardOptions, "accepts" | "limits"> {}

/** As `fetch`, and to be given wherever one is asked for. */
export type GuardedFetch = (input: string | URL | Request, init?: GuardedInit) => Promise<Response>;

/**
 * The one way out: a `fetch` that reaches only what is public or on the operator's list (docs/http.md). Each hop is
 * checked, its name resolved once, and the connection goes to exactly the addresses that were checked; sizes and times
 * are bounded. Otherwise than with `fetch`, a redirect of a request with a body stays within its origin, and a body
 * must be read to its end or cancelled: until then it holds its connection, at most for its time.
 *
 * @param over what a request is sent with, once its place was judged
 * @returns the function. It throws GuardedRequestError, or the reason of `init.signal` when the caller has ended it, and so
 *   do the readers of the body. A status is no error: see `requireOk`
 */
export function guardedFetch(options: GuardOptions = {}, over = exchange): GuardedFetch {
  return async (input, init = {}) => {
    const call: Call = {
      options,
      over,
      limits: { ...REQUEST_LIMITS, ...options.limits, ...init.limits },
      watch: new Watch(init.signal ?? (input instanceof Request ? input.signal : undefined)),
      sent: false,
    };
    try {
      return await send(call, input, init);
    } catch (error) {
      call.watch.close();
      if (error instanceof GuardedRequestError) error.sent ||= call.sent;
      throw error;
    }
  };
}

/** One request on its way. */
interface Call {
  readonly options: GuardOptions;
  readonly over: typeof exchange;
  readonly limits: RequestLimits;
  readonly watch: Watch;
  sent: boolean;
}

async function send(call: Call, input: string | URL | Request, init: GuardedInit): Promise<Response> {
  const { options, limits, watch } = call;
  const first = checkUrl(input instanceof Request ? input.url : input, options.allow ?? NOTHING_ALLOWED);
  checkAuthorization(first, options.authorization);
  const late = () => new GuardedRequestError("timeout", first.label, "it did not answer in time");
  const deadline = watch.start(limits.deadlineMs, late);
  const message = await watch.over(outgoing(first.label, input, init));
  const arrival = await follow(call, first, message);
  const accepts = init.accepts ?? options.accepts;
  return answerOf(arrival, { method: message.method, accepts, limits, watch, deadline });
}

function checkAuthorization({ url, label }: Destination, authorization: RequestAuthorization | undefined) {
  if (authorization !== undefined && authorization.origin !== url.origin)
    throw new GuardedRequestError("not_allowed", label, "the credentials are for another origin");
}

/** Sends a request, and on along its redirects. */
async function follow(call: Call, first: Destination, message: Outgoing): Promise<Arrival> {
  const allow = call.options.allow ?? NOTHING_ALLOWED;
  let to = first;
  let from: Place | undefined;
  // Once led away, who we are is not told any more: not even at home, where others would then speak for us.
  let away = false;
  for (let hops = 0; ; hops++) {
    away ||= to.url.origin !== first.url.origin;
    const { place, answer } = await hop(call, to, from, {
      ...message,
      headers: away ? headersForOthers(message.headers) : await authorized(call, to, message),
    });
    const status = answer.statusCode ?? 0;
    const next =
      message.redirect === "manual" ? undefined : redirectTarget(place, status, answer.headers.location);
    if (next === undefined) return { answer, url: place.url, redirected: hops > 0 };
    answer.destroy();
    const most = message.redirect === "error" ? 0 : call.limits.maxRedirects;
    if (hops >= most)
      throw new GuardedRequestError("redirect", place.label, `expected at most ${most} redirects`);
    to = checkUrl(next, allow);
    checkRedirect(place, to, status, message.method);
    from = place;
  }
}

/** One hop: the name resolved and judged, then a connection to what was judged. */
async function hop(call: Call, to: Destination, from: Place | undefined, message: Outgoing) {
  const { options, limits, watch } = call;
  const late = () => new GuardedRequestError("timeout", to.label, "there was no connection in time");
  const connecting = watch.start(limits.connectMs, late);
  const resolve = options.resolve ?? systemResolve;
  const place = await watch.over(findPlace(to, options.allow ?? NOTHING_ALLOWED, resolve));
  if (from !== undefined) checkCrossing(from, place);
  const answer = await call.over(place, message, {
    ca: options.ca,
    maxHeaderBytes: limits.maxHeaderBytes,
    signal: watch.signal,
    connected: () => {
      connecting.clear();
      call.sent = true;
    },
  });
  return { place, answer };
}

async function authorized({ options }: Call, { url }: Destination, { method, headers, body }: Outgoing) {
  const own = await options.authorization?.headers({ method, url, body: body ?? new Uint8Array() });
  return { ...headers, ...own };
}
