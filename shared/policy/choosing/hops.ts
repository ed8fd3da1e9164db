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

/** What the work says when it is handed on once more; nothing when it may not be. */
export function nextHop(hops: number): number | undefined {
  return hops < MAX_HOPS ? hops + 1 : undefined;
}
