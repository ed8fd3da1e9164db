import { delaySeconds } from "../../shared/config/timing.ts";
import { cancelChildren } from "../../shared/events/cancel-children.ts";
import { bidFarewell } from "../../shared/events/farewell.ts";
import { TaskEnded } from "../../shared/events/journal.ts";
import type { Run } from "../../shared/steps/failure.ts";
import type { Writer } from "../../shared/steps/writer.ts";
import { deadlineOf, lifeEnd, stateOf } from "../../shared/tasks/fold.ts";
import { handOn } from "../../shared/tasks/hand-on.ts";
import type { Entry } from "../../shared/tasks/items.ts";
import type { Suspension } from "../../shared/tasks/store.ts";
import { tellFigures } from "../../shared/telemetry/figures.ts";
import { errorFields } from "../../shared/telemetry/index.ts";
import { tellResult } from "../../shared/telemetry/result.ts";
import type { Claim } from "./claim.ts";

/** Puts the end, and publishes it. */
export async function end(
  claim: Claim,
  writer: Pick<Writer, "end">,
  run: Extract<Run, { end: unknown }>,
): Promise<void> {
  const { telemetry } = claim.deps;
  await writer.end(run.end, run.events);
  const { state, code } = run.end;
  const result = run.events.findLast((event) => event.kind === "result");
  const figures = tellFigures(telemetry, claim.head.to, result?.metrics ?? {}, code !== undefined);
  telemetry.info("a task has ended", { ...claim.fields(), state, code, ...figures });
  telemetry.count("TasksEnded", 1, { runtime: claim.head.to, outcome: code ?? "completed" });
  await publishEnd(claim, run.end);
  if (claim.journal.unpublished.length === 0) tellResult(telemetry, claim.head, claim.deps.clock.now());
}

/** What cannot be published now, or cancelled, stays due, and `sweep` does it. */
export async function publishEnd(claim: Claim, { state }: NonNullable<Entry["end"]>): Promise<void> {
  const { outlet, deps, head, view, journal } = claim;
  if (!(await outlet.drain())) return;
  try {
    await cancelChildren(deps, head, view);
    if (!(await bidFarewell(deps, head, view, deps.clock.now()))) return;
  } catch (error) {
    deps.telemetry.warn("what the task has handed on is not cancelled yet", {
      ...claim.fields(),
      ...errorFields(error),
    });
    return;
  }
  if (await deps.store.settle(head, journal.revision, state)) await handOn(deps, head.to);
}

/** Before a task is left in good order: nothing that was told is lost. */
export async function finishWriting(claim: Claim, writer: Pick<Writer, "flush">): Promise<void> {
  await writer.flush();
  await claim.outlet.drain();
}

/**
 * Leaves a task that waits, unless there is news that its handler has not seen; then it is to be gone on with at once
 * (docs/tasks.md, suspension).
 *
 * @param options.until when to go on at the latest, in milliseconds since 1970
 * @param options.missed whether somebody has put something since the handler was halted
 * @throws TaskEnded, ClaimLost
 */
export async function suspend(
  claim: Claim,
  writer: Pick<Writer, "refresh">,
  { until = Number.POSITIVE_INFINITY, missed }: { until?: number | undefined; missed: () => boolean },
): Promise<void> {
  const { head, journal, deps } = claim;
  const { store, clock, timing, hint } = deps;
  const { taskId, epoch, to } = head;
  let suspension = suspensionOf(claim, missed() ? clock.now() : until);
  for (;;) {
    const { left, waited } = await store.suspend(head, suspension);
    if (waited) await handOn(deps, to);
    if (left) break;
    await writer.refresh();
    // Without news somebody has claimed the task, and put nothing yet.
    if (journal.place === suspension.place) return;
    suspension = suspensionOf(claim, clock.now());
  }
  const { beat, dueAt } = suspension;
  const wait = Math.max(0, dueAt - clock.now());
  // What is further off is found by `sweep`, which looks a period ahead.
  if (wait >= 2 * timing.sweepPeriodMs) return;
  try {
    await hint({ taskId, epoch, beat, to }, delaySeconds(wait));
  } catch (error) {
    await store.suspend(head, { ...suspension, beat: claim.nextBeat(), dueAt: clock.now() });
    throw error;
  }
}

/**
 * How the head is left. What is not published cannot wait, either.
 *
 * @throws TaskEnded when the end was found since the handler was halted: as a task that waits nobody would settle it
 */
function suspensionOf(claim: Claim, until: number): Suspension {
  const { head, view, journal, deps } = claim;
  if (view.end !== undefined) throw new TaskEnded(view.end);
  const now = deps.clock.now();
  const drained = journal.unpublished.length === 0;
  return {
    epoch: head.epoch,
    beat: claim.nextBeat(),
    published: drained ? journal.revision : head.published,
    place: journal.place,
    state: stateOf(view),
    dueAt: Math.round(Math.min(drained ? until : now, deadlineOf(head, view), Math.max(now, lifeEnd(head)))),
  };
}
