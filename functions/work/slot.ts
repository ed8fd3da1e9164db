import { randomUUID } from "node:crypto";
import { delaySeconds } from "../../shared/config/timing.ts";
import { catchUp } from "../../shared/events/catch-up.ts";
import { storedEvents } from "../../shared/events/drafts.ts";
import { ClaimLost, Journal, TaskEnded } from "../../shared/events/journal.ts";
import { slotsOf } from "../../shared/policy/concurrency.ts";
import { timedOut } from "../../shared/steps/failure.ts";
import { deadlineOf, fold } from "../../shared/tasks/fold.ts";
import { handOn, nextInLine } from "../../shared/tasks/hand-on.ts";
import type { Entry, Head } from "../../shared/tasks/items.ts";
import { hintOf, type WorkHint } from "../../shared/tasks/messages.ts";
import { tellResult } from "../../shared/telemetry/result.ts";
import { isTerminal } from "../../shared/wire/index.ts";
import type { WorkDeps } from "./work.ts";

/** How often a claim is tried while slots come and go. */
const MAX_TRIES = 5;
const PAUSE_MS = 100;

/**
 * Claims the task that a hint speaks of. Where its agent has a limit the claim takes a slot; if there is none the task
 * goes into the line, and is hinted at again when its turn has come (docs/tasks.md, slots).
 *
 * @returns the head under the new claim, or nothing when the hint is stale, the task waits for a slot, or has ended here
 */
export async function claimTask(deps: WorkDeps, hint: WorkHint): Promise<Head | undefined> {
  const { store, policies, clock, timing } = deps;
  const owner = randomUUID();
  const dueAt = clock.now() + timing.leaseMs;
  const unlimited = hint.to !== undefined && slotsOf(await policies.of(hint.to)) === Number.POSITIVE_INFINITY;
  if (unlimited && hint.inLine === undefined) return store.claim(hint, owner, dueAt);
  const head = await store.head(hint.taskId);
  if (head === undefined || isStale(head, hint)) return undefined;
  const max = slotsOf(await policies.of(head.to));
  const needsNone = max === Number.POSITIVE_INFINITY && head.queued === undefined;
  if (head.slot === true || needsNone) return store.claim(hint, owner, dueAt);
  if (clock.now() >= head.deadline && (await hasTimedOut(deps, head))) return undefined;
  return head.queued === undefined
    ? takeSlotOrQueue(deps, head, { owner, dueAt, max })
    : takeTurn(deps, head, { owner, dueAt, max });
}

interface Wanted {
  readonly owner: string;
  readonly dueAt: number;
  readonly max: number;
}

export function isStale(head: Head, hint: WorkHint): boolean {
  return head.epoch !== hint.epoch || head.beat !== hint.beat || isTerminal(head.state);
}

async function takeSlotOrQueue(
  deps: WorkDeps,
  head: Head,
  { owner, dueAt, max }: Wanted,
): Promise<Head | undefined> {
  const { store, clock } = deps;
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const claimed = await store.claimSlot(head, owner, dueAt, max);
    if (typeof claimed === "object") return claimed;
    if (claimed === "stale") return undefined;
    const queued = await store.queue(head, max);
    if (queued === "stale") return undefined;
    if (queued === "queued") {
      await hintAtDeadline(deps, head);
      // It may have found others waiting for slots that are free.
      await handOn(deps, head.to);
      return undefined;
    }
    // Somebody has left in between.
    await new Promise<void>((resolve) => clock.timer(Math.random() * PAUSE_MS * tries, resolve));
  }
  // The task is due, so `sweep` offers it again.
  return undefined;
}

/** A task must not overstay its deadline in the line; a later one is looked after by `sweep`. */
async function hintAtDeadline({ clock, timing, hint }: WorkDeps, head: Head): Promise<void> {
  const left = head.deadline - clock.now();
  if (left < 2 * timing.sweepPeriodMs) await hint(hintOf(head), delaySeconds(left));
}

/** A task of the line is claimed when it is next, however its worker has come to look. */
async function takeTurn(
  deps: WorkDeps,
  head: Head,
  { owner, dueAt, max }: Wanted,
): Promise<Head | undefined> {
  const next = await nextInLine(deps, head.to);
  if (next === undefined) return undefined;
  if (next.taskId !== head.taskId) {
    await deps.hint(hintOf(next), 0);
    return undefined;
  }
  const claimed = await deps.store.claimSlot(next, owner, dueAt, max);
  if (typeof claimed !== "object") return undefined;
  // There may be more slots than the one that was handed on.
  await handOn(deps, head.to);
  return claimed;
}

/**
 * Ends a task whose deadline has passed while nobody worked on it: for that it need wait neither for a slot nor for the
 * end of a pause.
 */
export async function hasTimedOut(deps: WorkDeps, head: Head): Promise<boolean> {
  const { store, values, clock, telemetry } = deps;
  const entries: Entry[] = [];
  const journal = new Journal({ store, head, now: clock.now, took: (entry) => entries.push(entry) });
  try {
    await journal.refresh();
    const now = clock.now();
    if (now < deadlineOf(head, fold(entries))) return false;
    const run = timedOut(head, now);
    if (!("end" in run)) return false;
    await journal.append(async (at) => ({
      events: await storedEvents(values, head, run.events, at),
      end: run.end,
    }));
    const { taskId, from, to, epoch } = head;
    telemetry.info("a task has ended before it was claimed", {
      taskId,
      from,
      to,
      epoch,
      state: run.end.state,
      code: run.end.code,
    });
    telemetry.count("TasksEnded", 1, { runtime: to, outcome: "timeout" });
  } catch (error) {
    if (error instanceof ClaimLost) return true;
    if (!(error instanceof TaskEnded)) throw error;
  }
  await catchUp(deps, head, entries);
  tellResult(telemetry, head, clock.now());
  return true;
}
