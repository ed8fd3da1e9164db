import { delaySeconds, type Timing } from "../shared/config/timing.ts";
import type { Head } from "../shared/tasks/items.ts";
import { hintOf } from "../shared/tasks/messages.ts";

/**
 * The hint at a task as it stands now. While a worker holds the claim it is to come when that worker must have shown
 * that it lives, as that of `sweep` does.
 */
export function hintAt(
  head: Head,
  { timing, now }: { readonly timing: Timing; readonly now: number },
): { readonly body: string; readonly delaySec: number } {
  const held = head.epoch > 0 && head.waiting !== true;
  const wait = held ? Math.max(0, (head.dueAt ?? now) - now) + timing.leaseMs : 0;
  return { body: JSON.stringify(hintOf(head)), delaySec: delaySeconds(wait) };
}
