import type { Message } from "../../wire/index.ts";

/** How often work may be handed on from one agent to the next. */
export const MAX_HOPS = 12;

/**
 * How often the work has been handed on, as it says itself (`hops` in its `a2a.trace`). What is no such number counts as
 * the last one: whoever writes nonsense there gains nothing by it.
 *
 * @param trace the value of `a2a.trace`, whatever it is
 * @returns 0 to {@link MAX_HOPS}
 */
export function hopsOf(trace: unknown): number {
  const hops = typeof trace === "object" && trace !== null && "hops" in trace ? trace.hops : undefined;
  if (hops === undefined || hops === null) return 0;
  return typeof hops === "number" && Number.isInteger(hops) && hops >= 0
    ? Math.min(hops, MAX_HOPS)
    : MAX_HOPS;
}

/** Under which name the metadata of a message, or of its only part, tell of the work's way. */
const TRACE = "a2a.trace";

/** How often the work that a message asks for has been handed on. */
export function hopsIn({ metadata, parts }: Pick<Message, "metadata" | "parts">): number {
  // A bare text has no message around it: what would be said there stands with its part (docs/wire.md §6).
  const [only, ...others] = parts;
  return hopsOf(metadata?.[TRACE] ?? (others.length === 0 ? only?.metadata?.[TRACE] : undefined));
}

/** The metadata of work that was handed on so often. */
export function traceOf(hops: number): Readonly<Record<string, unknown>> {
  return { [TRACE]: { hops } };
}

/** What the work says when it is handed on once more; nothing when it may not be. */
export function nextHop(hops: number): number | undefined {
  return hops < MAX_HOPS ? hops + 1 : undefined;
}
