import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * - `public`: on the internet
 * - `own`: of a network of one's own: RFC 1918, RFC 6598 (100.64/10), RFC 4193 (fc00::/7) and loopback
 * - `never`: neither, such as link-local (where clouds keep credentials), multicast, reserved, and all that carries an IPv4
 *   address within an IPv6 one
 */
export type AddressKind = "public" | "own" | "never";

const OWN: ReadonlySet<string> = new Set(["private", "carrierGradeNat", "uniqueLocal", "loopback"]);

/** All global unicast that IANA has given out so far (IPv6 Address Space, 2000::/3). The library calls more than that unicast. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR("2000::/3");

/** A range of addresses. */
export type AddressRange = readonly [first: ipaddr.IPv4 | ipaddr.IPv6, bits: number];

/**
 * What an address is, by IANA's registries of special purposes (RFC 6890), which the library keeps. Whatever is not
 * positively public is not `public`.
 *
 * @param address as a resolver gives it; a text that is no address is `never`, and so is one with a zone (RFC 4007)
 */
export function addressKind(address: string): AddressKind {
  const parsed = parseAddress(address);
  if (parsed === undefined) return "never";
  const range = parsed.range();
  if (OWN.has(range)) return "own";
  const global = parsed instanceof ipaddr.IPv4 || parsed.match(GLOBAL_IPV6);
  return range === "unicast" && global ? "public" : "never";
}

/** Whether an address lies in one of some ranges; an IPv4 address within an IPv6 one lies in no range of IPv4. */
export function isWithin(address: string, ranges: readonly AddressRange[]): boolean {
  const parsed = parseAddress(address);
  return (
    parsed !== undefined &&
    ranges.some(([first, bits]) => parsed.kind() === first.kind() && parsed.match(first, bits))
  );
}

/**
 * Reads `10.20.0.0/16`, or an address that stands for itself.
 *
 * @returns `undefined` when it is none, or has bits beyond its length, which would be a slip of the pen
 */
export function parseRange(text: string): AddressRange | undefined {
  const [, address = "", bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const first = parseAddress(address);
  if (first === undefined) return undefined;
  const all = first instanceof ipaddr.IPv4 ? 32 : 128;
  const length = bits === undefined ? all : Number(bits);
  // All addresses would switch the guard off.
  if (length > all || length === 0) return undefined;
  const family = first instanceof ipaddr.IPv4 ? ipaddr.IPv4 : ipaddr.IPv6;
  const begins = family.networkAddressFromCIDR(`${address}/${length}`);
  return begins.toString() === first.toString() ? [first, length] : undefined;
}

/** The library also reads `010.1`, which is an address to some and a name to others; Node.js does not. */
function parseAddress(address: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  return isIP(address) === 0 || address.includes("%") ? undefined : ipaddr.parse(address);
}
