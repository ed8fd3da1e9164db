import type { Head } from "../tasks/items.ts";
import type { Telemetry } from "./index.ts";

/**
 * Notes how long a task's requester has waited for its end: since the message entered its stream.
 *
 * @param at when the last event was on its stream, in milliseconds since 1970
 */
export function tellResult(
  telemetry: Pick<Telemetry, "measure">,
  { to, storedAt, decidedAt }: Pick<Head, "to" | "storedAt" | "decidedAt">,
  at: number,
): void {
  // Tasks of earlier versions do not know it. The clocks are those of two machines.
  telemetry.measure("TimeToResult", Math.max(0, at - (storedAt ?? decidedAt)), { runtime: to });
}
