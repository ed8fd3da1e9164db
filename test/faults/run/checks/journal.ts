import { stepResult } from "../../../fixtures/faults/agents/parts/program.ts";
import type { Ledger, TaskRecord, Violation } from "../ledger.ts";
import type { Trouble } from "../toll.ts";

/** A journal by itself: `fence`. */
export function checkFence({ taskId, entries, head }: TaskRecord): Violation[] {
  const found: Violation[] = [];
  const violation = (what: string) => void found.push({ invariant: "fence", taskId, what });
  let claimed = 0;
  for (const [index, { place, epoch, claim, end, revision }] of entries.entries()) {
    if (place !== index + 1) violation(`expected place ${index + 1}, got ${place}`);
    if (epoch < claimed) violation(`place ${place} of epoch ${epoch} follows a takeover of epoch ${claimed}`);
    if (claim === true && epoch <= claimed)
      violation(`place ${place}: a takeover of epoch ${epoch} after ${claimed}`);
    if (claim === true) claimed = epoch;
    if (end !== undefined && index !== entries.length - 1)
      violation(`something follows the end at place ${place}`);
    if (revision < (entries[index - 1]?.revision ?? 1))
      violation(`place ${place}: revision ${revision} goes back`);
  }
  if (head !== undefined && claimed > head.epoch)
    violation(`a takeover of epoch ${claimed}, but the head has ${head.epoch}`);
  return found;
}

/** How a run of a step that had been stored before has come about, if it may. */
export type LateRun = { readonly run: string; readonly step: string; readonly why: string };

/**
 * Steps: `once`. A worker that has lost its claim without being able to know may begin one more run, whose result
 * nobody takes: that is no violation, but it is told.
 */
export function checkOnce(
  task: TaskRecord,
  { troubles, leaseMs }: Pick<Ledger, "troubles" | "leaseMs">,
): { violations: Violation[]; late: LateRun[] } {
  const { taskId, entries, runs, stored, confirmed } = task;
  const violations: Violation[] = [];
  const late: LateRun[] = [];
  const violation = (what: string) => void violations.push({ invariant: "once", taskId, what });
  const names = entries.flatMap(({ steps = [] }) => steps.map(({ name }) => name));
  for (const name of new Set(names))
    if (names.filter((other) => other === name).length > 1)
      violation(`step ${name} is stored more than once`);

  for (const entry of entries)
    for (const { name, kind, error } of entry.steps ?? []) {
      if (kind !== "run") continue;
      const label = name.slice(name.lastIndexOf("/") + 1);
      const own = runs.filter(({ step }) => step === label);
      const result = stored[name];
      if (error === undefined && !own.some(({ run }) => run === result))
        violation(`step ${name} holds the result of ${result}, a run that never was`);
      const storedAt = confirmed[entry.place];
      if (storedAt === undefined) continue; // nobody has seen when
      // Whose result is stored began before that, and so did those before it, whatever two clocks say. An error does not
      // tell whose it is, but there is none without a run.
      const later = own.slice(Math.max(1, own.findIndex(({ run }) => run === result) + 1));
      for (const run of later.filter(({ at }) => at > storedAt)) {
        const why = excuse(task, run, entry.epoch, troubles, leaseMs);
        if (why === undefined)
          violation(
            `step ${name} ran again ${Math.round(run.at - storedAt)} ms after it was stored (run ${run.run}, pid ${run.pid})`,
          );
        else late.push({ run: run.run, step: name, why });
      }
    }
  return { violations, late };
}

/** Why a run may have begun after its step was stored: its worker had lost its claim, and could not know. */
function excuse(
  { claims }: TaskRecord,
  run: TaskRecord["runs"][number],
  storedBy: number,
  troubles: readonly Trouble[],
  leaseMs: number,
): string | undefined {
  const own = claims.filter(({ pid, at }) => pid === run.pid && at <= run.at).at(-1);
  if (own === undefined || own.epoch >= storedBy) return undefined;
  const takenOver = claims.find(({ epoch }) => epoch > own.epoch)?.at ?? run.at;
  if (run.at - takenOver <= leaseMs)
    return `its claim had been lost ${Math.round(run.at - takenOver)} ms before`;
  const hindered = troubles.find(
    ({ whose, from, to = Number.POSITIVE_INFINITY }) =>
      (whose === run.pid || whose === "dynamodb" || whose === "host") &&
      from <= run.at && // It may need a lease to find out when the trouble is over.
      to + leaseMs >= run.at,
  );
  return hindered === undefined ? undefined : `its worker could not know: ${hindered.what}`;
}

/** The run whose result a stored step holds. */
export function runOf(text: string): string | null {
  if (text === "") return null;
  const value: unknown = JSON.parse(text);
  return typeof value === "string" ? value : stepResult.parse(value).run;
}
