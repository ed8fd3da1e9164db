import type { Destination, Place } from "./destination.ts";
import { GuardedRequestError } from "./errors.ts";

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** With these, 301 to 303 lead on by the same method (RFC 9110 §15.4). */
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD"]);

/** What may be told to another origin than the one that was asked. All else may be a secret, whatever its name. */
const TOLD_TO_OTHERS: ReadonlySet<string> = new Set(["accept", "accept-language", "a2a-version"]);

/**
 * Where an answer leads on to.
 *
 * @returns `undefined` when it is no redirect, or one without a place (RFC 9110 §10.2.2)
 * @throws GuardedRequestError `redirect` when the place is no URL
 */
export function redirectTarget(
  from: Destination,
  status: number,
  location: string | undefined,
): URL | undefined {
  if (!REDIRECTS.has(status) || location === undefined) return undefined;
  const target = URL.parse(location, from.url.href);
  if (target === null) throw refusal(from, "leads on to what is no URL");
  return target;
}

/**
 * Whether a redirect is followed, as far as its URL tells. A request with a body goes nowhere but to its origin, for the
 * body is as secret as a credential, and never turns into another request.
 *
 * @throws GuardedRequestError `redirect`
 */
export function checkRedirect(from: Destination, to: Destination, status: number, method: string): void {
  if (from.url.protocol === "https:" && to.url.protocol === "http:")
    throw refusal(from, "leads from https to http");
  if (SAFE_METHODS.has(method)) return;
  if (from.url.origin !== to.url.origin) throw refusal(from, `leads a ${method} on to another origin`);
  if (status < 307) throw refusal(from, `turns a ${method} into another request`);
}

/**
 * Whether a redirect is followed, as far as the addresses tell: what is allowed for the operator's own calls is not for those
 * who are called, so nobody outside leads us inside.
 *
 * @throws GuardedRequestError `redirect`
 */
export function checkCrossing(from: Place, to: Place): void {
  if (to.inside && !from.inside) throw refusal(from, "leads on to an address that is not public");
}

/** The caller's headers that go with a redirect to another origin. */
export function headersForOthers(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => TOLD_TO_OTHERS.has(name)));
}

function refusal(from: Destination, text: string): GuardedRequestError {
  return new GuardedRequestError("redirect", from.label, `its answer ${text}`, { sent: true });
}
