import { BLANKED_NUMBERS, BLANKED_WORDS } from "../wire/ids.ts";

/**
 * What peers do to the texts of a card before they show it (docs/cards.md, what peers blank). Ours are done so before
 * they are published: what a card says is then what everybody sees. Wherever it is open how much a peer blanks, more is
 * blanked here.
 */

const BLANKED = "[REDACTED]";

/** Folders of somebody's machine, each to the end of the path. */
const PATHS = /(?:\/(?:Users|var|etc|data)\/|[A-Za-z]:\\)\S*/gi;
const INTERNAL_URLS =
  /(?:https?|wss?|nats|tls):\/\/(?:[^\s/@]*@)?(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[::1\])\S*/gi;

/** A text as peers show it: on any number of lines, without control characters, without what they blank. */
export function sanitized(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\P{Cc}\n\t]/gu, " ")
    .replaceAll(INTERNAL_URLS, BLANKED)
    .replaceAll(PATHS, BLANKED)
    .replaceAll(BLANKED_WORDS, BLANKED)
    .replaceAll(BLANKED_NUMBERS, BLANKED)
    .trim();
}

/** Whether peers show a text as it is. */
export function isClean(text: string): boolean {
  return sanitized(text) === text;
}

/**
 * The URL of a server as a card may show it: without user, query and fragment. Nothing where it is of use to nobody
 * outside, as an address of this machine or of a private network is, or where peers would blank a part of it.
 *
 * @param url such as `tls://nats.example:4222`
 */
export function publicUrl(url: string): string {
  if (!URL.canParse(url)) return "";
  const { protocol, host, port } = new URL(url);
  // Of a scheme that it knows the parser understands each spelling of an address (WHATWG URL, host parsing).
  if (!URL.canParse(`http://${host}`)) return "";
  const { hostname } = new URL(`http://${host}`);
  if (isInternal(hostname)) return "";
  const shown = `${protocol}//${hostname}${port === "" ? "" : `:${port}`}`;
  return isClean(shown) ? shown : "";
}

/** Names that no public DNS has (RFC 6762 §3; RFC 8375; ICANN's reservation of `internal`). */
const INTERNAL_NAMES = /(^|\.)(localhost|local|internal|lan|intranet|corp|home|home\.arpa)\.?$/i;
/** RFC 1122 §3.2.1.3, RFC 1918, RFC 3927, RFC 6598. */
const INTERNAL_IPV4 =
  /^(0|10|127)\.|^169\.254\.|^192\.168\.|^172\.(1[6-9]|2\d|3[01])\.|^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./;
/** RFC 4291 §2.5, RFC 4193; what holds an IPv4 address is not looked into. */
const INTERNAL_IPV6 = /^\[(::|f[cd]|fe[89ab]|64:ff9b)/i;

function isInternal(hostname: string): boolean {
  return (
    // A name of one part is found only where it is searched for.
    !/[.:]/.test(hostname) ||
    INTERNAL_NAMES.test(hostname) ||
    INTERNAL_IPV4.test(hostname) ||
    INTERNAL_IPV6.test(hostname)
  );
}
