import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import { delaySeconds, type Timing } from "../../shared/config/timing.ts";
import { catchUp } from "../../shared/events/catch-up.ts";
import type { Messenger } from "../../shared/events/messenger.ts";
import type { Publisher } from "../../shared/events/publisher.ts";
import type { Policies } from "../../shared/policy/runtime-policy.ts";
import { handOnAll } from "../../shared/tasks/hand-on.ts";
import { dueShards, type Entry, type Head } from "../../shared/tasks/items.ts";
import { hintOf, type WorkHint } from "../../shared/tasks/messages.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { errorFields, type Telemetry } from "../../shared/telemetry/index.ts";
import { tellResult } from "../../shared/telemetry/result.ts";
import { isTerminal } from "../../shared/wire/index.ts";

/** Tasks looked at at once. */
const CONCURRENCY = 16;

/** What `sweep` needs. */
export interface SweepDeps {
  readonly store: Store;
  readonly publisher: Publisher;
  /** Cancels what a task that has ended had handed on. */
  readonly messenger: Messenger;
  readonly deployment: DeploymentConfig;
  readonly policies: Policies;
  readonly telemetry: Telemetry;
  readonly timing: Timing;
  readonly now: () => number;
  /** Puts a hint on the queue `work`, to arrive after so many seconds. */
  readonly hint: (hint: WorkHint, delaySeconds: number) => Promise<void>;
}

/**
 * Looks at every task that is due within a period and not over: publishes what an end has left unpublished, and
 * offers what nobody seems to hold to the workers (docs/tasks.md, takeovers). Slots that are free are handed on.
 *
 * @param until when to stop looking, in milliseconds since 1970; the rest stays due
 * @returns how many tasks were looked at
 */
export async function sweep(deps: SweepDeps, until: number): Promise<number> {
  const horizon = deps.now() + deps.timing.sweepPeriodMs;
  const round: Round = { ...deps, horizon, until, lateMs: 0 };
  const shards = dueShards.map((shard) => sweepShard(round, shard));
  // Should somebody have died between leaving and handing on, or the limit have been raised.
  const [counts, slots] = await Promise.all([Promise.all(shards), handOnAll(deps)]);
  // As 0, too: else nobody could tell that all is well from that nobody has looked.
  deps.telemetry.measure("UnpublishedAge", round.lateMs * deps.timing.scale);
  for (const [runtime, { live, queued }] of slots) {
    if (live.size > 0) deps.telemetry.measure("TasksRunning", live.size, { runtime });
    if (queued > 0) deps.telemetry.measure("TasksQueued", queued, { runtime });
  }
  return counts.reduce((sum, count) => sum + count, 0);
}

/** One look at all that is due. */
interface Round extends SweepDeps {
  readonly horizon: number;
  readonly until: number;
  /** For how long the oldest event that was found unpublished has been so, in milliseconds. */
  lateMs: number;
}

async function sweepShard(round: Round, shard: string): Promise<number> {
  const { horizon, until } = round;
  const due = round.store.due(shard, horizon)[Symbol.asyncIterator]();
  let looked = 0;
  const one = async (): Promise<void> => {
    while (round.now() < until) {
      const next = await due.next();
      if (next.done === true) return;
      looked++;
      await look(round, next.value);
    }
  };
  await Promise.all(Array.from({ length: Math.ceil(CONCURRENCY / dueShards.length) }, one));
  return looked;
}

/** One task's trouble must not keep the others waiting: it stays due, and the next sweep looks again. */
async function look(round: Round, taskId: string): Promise<void> {
  try {
    const head = await round.store.head(taskId);
    if (head?.dueAt === undefined || head.dueAt > round.horizon || isTerminal(head.state)) return;
    await attend(round, head, head.dueAt);
  } catch (error) {
    round.telemetry.warn("a task could not be attended to", { taskId, ...errorFields(error) });
    round.telemetry.count("SweepFailures");
  }
}

async function attend(round: Round, head: Head, dueAt: number): Promise<void> {
  const { store, timing, now, telemetry } = round;
  const last = await store.last(head.taskId);
  if (last?.end !== undefined) {
    const missing = await publishMissing(round, head, last);
    if (missing > 0) tellResult(telemetry, head, now());
    return;
  }
  // Nobody works on a task before its requester can know of it.
  if (head.epoch === 0) await publishMissing(round, head, last);

  const same = head.seen?.epoch === head.epoch && head.seen.beat === head.beat;
  const times = same ? (head.seen?.times ?? 0) + 1 : 0;
  const later =
    Math.max(now(), dueAt) + Math.min(timing.sweepMaxMs, timing.leaseMs * 2 ** Math.min(times + 1, 30));
  // The deadline is looked after when it comes.
  const next = head.deadline > now() ? Math.min(later, head.deadline) : later;
  if (!(await store.postpone(head, next, { epoch: head.epoch, beat: head.beat, times }))) return;
  // Only of a claim in force must be known whether its worker lives.
  const held = head.epoch > 0 && head.waiting !== true;
  const wait = Math.max(0, dueAt - now()) + (held ? timing.leaseMs : 0);
  await round.hint(hintOf(head), delaySeconds(wait));
  telemetry.count("TasksOffered");
}

/**
 * Publishes what is missing, and notes for how long it was.
 *
 * @param last of its journal; without one nothing need be read
 * @returns how many events were missing
 */
async function publishMissing(round: Round, head: Head, last: Entry | undefined): Promise<number> {
  const { store, now } = round;
  const since = last?.end === undefined ? head.decidedAt : last.at;
  // Whoever cannot be asked may hold nothing.
  let missing = 1;
  try {
    missing = await catchUp(round, head, last === undefined ? [] : await store.entries(head.taskId, 1));
    return missing;
  } finally {
    if (missing > 0) round.lateMs = Math.max(round.lateMs, now() - since);
  }
}
