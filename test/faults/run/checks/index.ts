import type { Ledger, Violation } from "../ledger.ts";
import { checkAgainstJournal, checkEvents } from "./events.ts";
import { checkFate } from "./fate.ts";
import { checkFence, checkOnce, type LateRun } from "./journal.ts";
import { checkSettled } from "./settled.ts";

/** Checks a ledger; gives what must not be, and the runs of lost claims that may. */
export function check(ledger: Ledger): { violations: Violation[]; late: LateRun[] } {
  const late: LateRun[] = [];
  const violations = ledger.tasks.flatMap((task) => {
    const once = checkOnce(task, ledger);
    late.push(...once.late);
    return [
      ...checkEvents(task),
      ...checkAgainstJournal(task),
      ...checkFence(task),
      ...once.violations,
      ...checkFate(task, ledger),
    ];
  });
  return { violations: [...violations, ...checkSettled(ledger)], late };
}
