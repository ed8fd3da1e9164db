import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { addressKind, isWithin } from "./addresses.ts";
import type { AllowList } from "./allow-list.ts";
import { codeOf, GuardedRequestError } from "./errors.ts";
import { REQUEST_LIMITS } from "./limits.ts";
import { Watch } from "./watch.ts";

/** The longest URL that is asked. */
export const MAX_URL = 4_096;
/** The longest name (RFC 1035 §2.3.4). */
const HOST_LENGTH = 253;

/** All addresses of a name. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** A URL that may be asked if its addresses may. */
export interface Destination {
  readonly url: URL;
  /** Without brackets. */
  readonly host: string;
  /** How errors call it. */
  readonly label: string;
  /** Whether the operator has listed its origin. */
  readonly listed: boolean;
}

/** A destination, and the addresses to which its connection may go. */
export interface Place extends Destination {
  readonly addresses: readonly string[];
  /** Whether it is there by the allow-list alone, as it has an address that is not public. */
  readonly inside: boolean;
}

/** As the platform itself resolves a name: hosts file and DNS. */
export const systemResolve: Resolve = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);

/**
 * Whether a URL may be asked at all, as far as that can be told without resolving its name: https on port 443 or an
 * origin of the list, no user, and no address that is not public. Every spelling of an address (`0x7f.1`, `2130706433`,
 * fullwidth digits, percent-encoding) is the address for `URL` already (WHATWG URL Standard, host parser).
 *
 * @throws GuardedRequestError `not_allowed`, `private_address`
 */
export function checkUrl(text: string | URL, allow: AllowList): Destination {
  const url = readUrl(String(text));
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const destination = { url, host, label: url.host, listed: allow.origins.has(url.origin) };
  if (!destination.listed && (url.protocol !== "https:" || url.port !== ""))
    throw new GuardedRequestError(
      "not_allowed",
      url.host,
      "expected https on port 443; any other origin must be listed under outbound.allow",
    );
  if (isIP(host) !== 0) judge(destination, [host], allow);
  return destination;
}

function readUrl(text: string): URL {
  const refuse = (expected: string) => new GuardedRequestError("not_allowed", undefined, expected);
  if (text.length > MAX_URL)
    throw refuse(`expected a URL of at most ${MAX_URL} characters, got ${text.length}`);
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) throw refuse("expected a URL https://HOST/PATH");
  if (url.username !== "" || url.password !== "") throw refuse("expected a URL without user and password");
  // A name with a dot at its end is the same to DNS, and another to TLS and to lists of names.
  if (url.hostname.length > HOST_LENGTH || url.hostname.endsWith("."))
    throw refuse(`expected a host of at most ${HOST_LENGTH} characters, without a dot at its end`);
  url.hash = "";
  return url;
}

/**
 * Resolves a destination, once: the connection goes to what was judged here.
 *
 * @throws GuardedRequestError `private_address` when any of its addresses is neither public nor allowed, for one would do to be
 *   led astray; `unreachable` when it has none
 */
export async function findPlace(
  destination: Destination,
  allow: AllowList,
  resolve: Resolve,
): Promise<Place> {
  const { host, label } = destination;
  const addresses = isIP(host) === 0 ? await resolved(host, label, resolve) : [host];
  if (addresses.length === 0) throw new GuardedRequestError("unreachable", label, "its name has no address");
  return { ...destination, addresses, inside: judge(destination, addresses, allow) };
}

async function resolved(host: string, label: string, resolve: Resolve): Promise<readonly string[]> {
  try {
    return await resolve(host);
  } catch (error) {
    throw unresolved(label, codeOf(error));
  }
}

function unresolved(label: string, code: string | undefined): GuardedRequestError {
  const text = `its name cannot be resolved (${code ?? "no reason given"})`;
  return new GuardedRequestError("unreachable", label, text, code === undefined ? {} : { code });
}

/** @returns whether any of the addresses is not public */
function judge(
  { host, label, listed }: Destination,
  addresses: readonly string[],
  allow: AllowList,
): boolean {
  const inside = addresses.filter((address) => addressKind(address) !== "public");
  const refused = inside.find((address) => {
    // Who lists a name means a server of their own; where a cloud keeps credentials, a name may not lead.
    const named = listed && (addressKind(address) === "own" || address === host);
    return !named && !isWithin(address, allow.ranges);
  });
  if (refused === undefined) return inside.length > 0;
  const is = refused === host ? "is" : "resolves to";
  throw new GuardedRequestError(
    "private_address",
    label,
    `${is} an address that is not public; if that is meant, list it under outbound.allow`,
    { address: refused },
  );
}

/**
 * Whether a URL may be asked now, its name resolved: for places that are registered before they are asked. Asking
 * checks again.
 *
 * @throws GuardedRequestError
 */
export async function checkDestination(
  url: string | URL,
  allow: AllowList,
  resolve: Resolve = systemResolve,
): Promise<void> {
  const destination = checkUrl(url, allow);
  const watch = new Watch();
  watch.start(REQUEST_LIMITS.connectMs, () => unresolved(destination.label, "ETIMEDOUT"));
  try {
    await watch.over(findPlace(destination, allow, resolve));
  } finally {
    watch.close();
  }
}
