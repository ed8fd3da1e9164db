import * as z from "../zod.ts";
import { type AddressRange, parseRange } from "./addresses.ts";

/** What an operator allows beyond public addresses over https. */
export interface AllowList {
  /** As `URL.origin` has them. */
  readonly origins: ReadonlySet<string>;
  readonly ranges: readonly AddressRange[];
}

/** Only what is public. */
export const NOTHING_ALLOWED: AllowList = { origins: new Set(), ranges: [] };

/** Places on a list. */
export const MAX_ALLOWED = 100;

const EXPECTED =
  "expected an origin (http://127.0.0.1:4100; a port needs the scheme), a host (agents.example.com, which means https and port 443) or a range of addresses (10.20.0.0/16), without user, path and *";

/** The form of a place on the list (docs/http.md), for the schema of the operator's file. */
export const ALLOWED_PLACE = z.refine<string>((text) => readPlace(text) !== undefined, { error: EXPECTED });

/**
 * Reads an operator's list.
 *
 * @param places each an origin, a host or a range of addresses (docs/http.md)
 * @throws Error that names the place by its number when it is none of these
 */
export function allowList(places: readonly string[]): AllowList {
  const read = places.map((text, i) => {
    const place = readPlace(text);
    if (place === undefined) throw new Error(`outbound.allow[${i}]: ${EXPECTED}`);
    return place;
  });
  return {
    origins: new Set(read.filter((place) => typeof place === "string")),
    ranges: read.filter((place) => typeof place !== "string"),
  };
}

function readPlace(text: string): string | AddressRange | undefined {
  if (text.includes("://")) return readOrigin(text);
  const range = parseRange(text);
  if (range !== undefined || text.includes("/")) return range;
  // A host with a port and no scheme may be meant for http or for https: only one of them would be let through.
  return /:[0-9]*$/.test(text) ? undefined : readOrigin(`https://${text}`);
}

/**
 * An origin and nothing more: what is left out would be taken for a promise that is not kept. It is written as URLs have
 * it, so that nobody means another: without a default port, and no address in octal or hexadecimal.
 */
function readOrigin(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\/[^/?#@*\\\s]+$/.test(text)) return undefined;
  return url.origin === text && !url.hostname.endsWith(".") ? text : undefined;
}
