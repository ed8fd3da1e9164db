/** The longest that a card is taken for fresh, whatever its server says: a changed key must not go unseen for a day. */
export const MAX_FRESH_SEC = 3_600;
/** The longest entity tag that is kept. */
const MAX_ETAG = 256;

/** RFC 9110 §8.8.3: what a server names a version by. Anything else is not sent back to it. */
const ETAG = /^(W\/)?"[\x21\x23-\x7E]*"$/;

/** The parts of an answer that say how long it holds. */
export interface Validators {
  readonly etag?: string | undefined;
  /** Until when it need not be asked for again, in milliseconds since 1970; not in the future when at once. */
  readonly freshUntil: number;
}

/**
 * How long a card holds (RFC 9111 §4.2, §5.2.2): `max-age` less the age that caches on the way have given it, at most
 * {@link MAX_FRESH_SEC}. `no-store`, `no-cache` and whatever cannot be read mean that it is asked for each time.
 *
 * @param headers the answer's
 * @param now milliseconds since 1970
 */
export function validatorsOf(headers: Pick<Headers, "get">, now: number): Validators {
  const etag = headers.get("etag")?.trim();
  return {
    ...(etag !== undefined && etag.length <= MAX_ETAG && ETAG.test(etag) && { etag }),
    freshUntil: now + freshSeconds(headers) * 1_000,
  };
}

function freshSeconds(headers: Pick<Headers, "get">): number {
  const directives = (headers.get("cache-control") ?? "")
    .toLowerCase()
    .split(",")
    .map((directive) => directive.trim());
  if (directives.some((of) => /^(no-store|no-cache)\b/.test(of))) return 0;
  // Of several, RFC 9111 §4.2.1 lets the first count, or none.
  const maxAge = seconds(
    directives.map((of) => /^max-age="?(\d+)"?$/.exec(of)?.[1]).find((of) => of !== undefined),
  );
  return Math.min(MAX_FRESH_SEC, Math.max(0, maxAge - seconds(headers.get("age")?.trim())));
}

/** Seconds as RFC 9111 §1.2.2 has them; more than 2^31 is as good as that. */
function seconds(text: string | undefined): number {
  return text !== undefined && /^\d+$/.test(text) ? Math.min(Number(text), 2_147_483_648) : 0;
}
