import { durationText } from "../text.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";

/** Clocks of machines that are looked after differ by less. */
const SMALL_MS = 10_000;
/** A message that has expired longer ago is terminated (docs/wire.md §5); AWS refuses at 5 minutes (SigV4). */
const LARGE_MS = 60_000;

/**
 * How far our clock is from another.
 *
 * @param whose such as `AWS`
 * @param aheadMs how far ours is ahead, in milliseconds
 */
export function clockFinding(whose: string, aheadMs: number): Finding {
  const part = `clock of ${whose}`;
  const by = Math.abs(aheadMs);
  if (by < SMALL_MS) return ok(part, `within ${durationText(SMALL_MS)} of ours`);
  const says = `ours is ${durationText(by)} ${aheadMs > 0 ? "ahead" : "behind"}`;
  const todo = "set this machine's clock, and that of the other side, by NTP";
  return by < LARGE_MS ? warning(part, says, todo) : wrong(part, says, todo);
}
