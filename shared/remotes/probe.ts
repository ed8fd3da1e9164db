import { CARD_PATHS, cardBase } from "./fetch-card.ts";
import type { SendRequest } from "./request.ts";

/** How long a remote agent may take to show that it is there. */
export const PROBE_TIMEOUT_MS = 5_000;
/** The longest reason that is kept. */
export const MAX_REASON = 512;

/** How a remote agent was when it was last looked after. */
export interface Probe {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly reachable: boolean;
  /** From the request to the answer's head. */
  readonly latencyMs: number;
  /** Why it is not reachable. */
  readonly error?: string | undefined;
}

/**
 * Looks whether a remote agent answers: it is reachable if it answers anything but a server's error (RFC 9110 §15.6), for
 * where its card is, is another question.
 *
 * @param of.path where its card was found last
 * @param of.now milliseconds since 1970
 * @returns never throws
 */
export async function probeRemote(of: {
  readonly url: string;
  readonly path?: string | undefined;
  readonly send: SendRequest;
  readonly now: () => number;
  readonly timeoutMs?: number;
}): Promise<Probe> {
  const { url, path = CARD_PATHS[0], send, now, timeoutMs = PROBE_TIMEOUT_MS } = of;
  const at = now();
  const probe = (error?: string): Probe => ({
    at,
    reachable: error === undefined,
    latencyMs: Math.max(0, Math.round(now() - at)),
    ...(error !== undefined && { error: error.slice(0, MAX_REASON) }),
  });
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await send(`${cardBase(url)}${path}`, { headers: { accept: "application/json" }, signal });
    const seen = probe(answer.status >= 500 ? `it answers with status ${answer.status}` : undefined);
    await answer.body?.cancel();
    return seen;
  } catch (error) {
    if (signal.aborted) return probe(`no answer within ${timeoutMs} ms`);
    return probe(error instanceof Error ? error.message : "the request failed");
  }
}
