import { failed, type Reading } from "../wire/reading.ts";
import { MAX_CARD_BYTES, type ReadCard, readCard } from "./card.ts";
import { type Validators, validatorsOf } from "./freshness.ts";
import type { SendRequest } from "./request.ts";

/** Where cards are: A2A 1.0 §8.2 and 0.3.0 §5.3; and what they were called before. */
export const CARD_PATHS = ["/.well-known/agent-card.json", "/.well-known/agent.json"] as const;
/** For both paths together (A2A 1.0 §13.2 asks for 10 to 30 seconds for a request). */
const CARD_TIMEOUT_MS = 15_000;

/** What is known of the card that there is: so that it comes again only if it has changed. */
export interface KnownCard {
  /** Which of {@link CARD_PATHS} it came from. */
  readonly path: string;
  readonly etag?: string | undefined;
}

/** What came of asking for a card. */
export type CardFetch =
  | ({ readonly kind: "card"; readonly path: string } & ReadCard & Validators)
  /** The one that is known still holds. */
  | ({ readonly kind: "unchanged"; readonly path: string } & Validators)
  /** Neither path has one: both reasons. */
  | { readonly kind: "failed"; readonly reason: string };

export interface CardRequest {
  /** The agent's address as the operator has it; cards are beside a trailing `/a2a`. */
  readonly url: string;
  /** Sent with each request: the operator's fixed headers. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly known?: KnownCard | undefined;
  readonly send: SendRequest;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Ends the whole. */
  readonly signal?: AbortSignal;
  /** For the whole, in milliseconds. */
  readonly timeoutMs?: number;
}

/**
 * Fetches an agent's card: from the path of today, and if there is none that can be read, from the one of before. What
 * is known is asked for on condition (RFC 9110 §13.1.2).
 *
 * @returns never throws, but for `signal`'s reason once that is aborted: each failure is a reason
 */
export async function fetchCard(request: CardRequest): Promise<CardFetch> {
  const { signal, timeoutMs = CARD_TIMEOUT_MS } = request;
  const late = AbortSignal.timeout(timeoutMs);
  const within = signal === undefined ? late : AbortSignal.any([signal, late]);
  const reasons: string[] = [];
  for (const path of CARD_PATHS) {
    const found = await fetchFrom(path, request, within);
    signal?.throwIfAborted();
    if (found.ok) return found.value;
    reasons.push(`${path}: ${late.aborted ? `no answer within ${timeoutMs} ms` : found.reason}`);
    if (late.aborted) break;
  }
  return { kind: "failed", reason: reasons.join("; ") };
}

/** The agent's address less what is only the endpoint's. */
export function cardBase(url: string): string {
  return url.replace(/\/+$/, "").replace(/\/a2a$/, "");
}

async function fetchFrom(
  path: string,
  request: CardRequest,
  signal: AbortSignal,
): Promise<Reading<CardFetch>> {
  const { url, known, send, now } = request;
  const etag = known?.path === path ? known.etag : undefined;
  try {
    const answer = await send(`${cardBase(url)}${path}`, {
      // Ours after the operator's, which are told apart by their names in lower case.
      headers: {
        ...lowerCased(request.headers ?? {}),
        accept: "application/json",
        ...(etag !== undefined && { "if-none-match": etag }),
      },
      signal,
    });
    if (answer.status === 304 && etag !== undefined) {
      await answer.body?.cancel();
      const validators = validatorsOf(answer.headers, now());
      return { ok: true, value: { kind: "unchanged", path, etag, ...validators } };
    }
    if (answer.status !== 200) {
      await answer.body?.cancel();
      return failed(`expected status 200, got ${answer.status}`);
    }
    const body = await bytesOf(answer);
    if (body === undefined) return failed(`card: expected at most ${MAX_CARD_BYTES} bytes`);
    const read = readCard(body, url);
    return read.ok
      ? { ok: true, value: { kind: "card", path, ...read.value, ...validatorsOf(answer.headers, now()) } }
      : read;
  } catch (error) {
    return failed(error instanceof Error ? error.message : "the request failed");
  }
}

/** All of a body, or nothing of one that is too large: it is cancelled as soon as that is known. */
async function bytesOf(answer: Response): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_CARD_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
