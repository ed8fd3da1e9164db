import * as z from "../../zod.ts";

/**
 * A circuit between us and one agent. It is closed until the agent fails five times in a row, then open: nobody calls it
 * for a minute. After that one call probes it: if it comes out well the circuit is closed, else open for another minute.
 */
export const circuit = z.object({
  /** Grows with each change of what the circuit is: how a call of an earlier era comes out tells nothing any more. */
  era: z.number(),
  /** Failures in a row while it is closed. */
  failures: z.number(),
  /** While it is not closed: until when nobody may call, in milliseconds since 1970; if a probe is out, until when it has time. */
  until: z.optional(z.number()),
});
export type Circuit = z.infer<typeof circuit>;

/** When a circuit opens, and for how long. */
export interface CircuitRules {
  /** Failures in a row. */
  readonly failures: number;
  /** In milliseconds. */
  readonly openMs: number;
  /** How long a probe may take before it is taken for lost and another goes out, in milliseconds. */
  readonly probeMs: number;
}

const MAX_FAILURES = 5;
const OPEN_MS = 60_000;
const PROBE_MS = 60_000;

/** The rules of a deployment that lives so much faster than normal. */
export function circuitRules(scale = 1): CircuitRules {
  return { failures: MAX_FAILURES, openMs: OPEN_MS / scale, probeMs: PROBE_MS / scale };
}

/** The leave to call once; the call's end is told with it. */
export interface Pass {
  readonly era: number;
}

const CLOSED: Circuit = { era: 0, failures: 0 };

/** Until when nobody may call; absent when somebody may. */
export function openUntil({ until }: Circuit = CLOSED, now: number): number | undefined {
  return until !== undefined && now < until ? until : undefined;
}

/** Asks for leave to call: what is to be kept of it (nothing new when it is closed), and the leave, unless nobody may. */
export function enter(
  known: Circuit = CLOSED,
  now: number,
  { probeMs }: CircuitRules,
): { next?: Circuit; pass?: Pass; retryAt?: number } {
  if (known.until === undefined) return { pass: { era: known.era } };
  const retryAt = openUntil(known, now);
  if (retryAt !== undefined) return { retryAt };
  const probing = { era: known.era + 1, failures: known.failures, until: now + probeMs };
  return { next: probing, pass: { era: probing.era } };
}

/** How a call came out: `none` when it was given up before it could show anything of the agent. */
export type CallEnd = "good" | "bad" | "none";

/** What becomes of a circuit with the end of a call; nothing new when it does not count. */
export function leave(
  known: Circuit = CLOSED,
  { era }: Pass,
  end: CallEnd,
  now: number,
  { failures, openMs }: CircuitRules,
): Circuit | undefined {
  if (era !== known.era) return undefined;
  const open = (until: number): Circuit => ({ era: era + 1, failures: 0, until });
  if (known.until !== undefined) {
    // Of the era of a probe only that is out.
    if (end === "good") return { era: era + 1, failures: 0 };
    return open(end === "bad" ? now + openMs : now);
  }
  if (end === "none" || (end === "good" && known.failures === 0)) return undefined;
  if (end === "good") return { era, failures: 0 };
  return known.failures + 1 < failures ? { era, failures: known.failures + 1 } : open(now + openMs);
}
