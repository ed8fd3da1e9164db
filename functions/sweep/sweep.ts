import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import { delaySeconds, type Timing } from "../../shared/config/timing.ts";
import { catchUp } from "../../shared/events/catch-up.ts";
import type { Messenger } from "../../shared/events/messenger.ts";
import type { Publisher } from "../../shared/events/publisher.ts";
import { handOnAll } from "../../shared/tasks/hand-on.ts";
import { dueShards, type Head } from "../../shared/tasks/items.ts";
import { hintOf, type WorkHint } from "../../shared/tasks/messages.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { errorFields, type Telemetry } from "../../shared/telemetry/index.ts";
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
  const shards = dueShards.map((shard) => sweepShard(deps, shard, horizon, until));
  // Should somebody have died between leaving and handing on, or the limit have been raised.
  const [counts] = await Promise.all([Promise.all(shards), handOnAll(deps)]);
  return counts.reduce((sum, count) => sum + count, 0);
}

async function sweepShard(deps: SweepDeps, shard: string, horizon: number, until: number): Promise<number> {
  const due = deps.store.due(shard, horizon)[Symbol.asyncIterator]();
  let looked = 0;
  const one = async (): Promise<void> => {
    while (deps.now() < until) {
      const next = await due.next();
      if (next.done === true) return;
      looked++;
      await look(deps, next.value, horizon);
    }
  };
  await Promise.all(Array.from({ length: Math.ceil(CONCURRENCY / dueShards.length) }, one));
  return looked;
}

/** One task's trouble must not keep the others waiting: it stays due, and the next sweep looks again. */
async function look(deps: SweepDeps, taskId: string, horizon: number): Promise<void> {
  try {
    const head = await deps.store.head(taskId);
    if (head?.dueAt === undefined || head.dueAt > horizon || isTerminal(head.state)) return;
    await attend(deps, head, head.dueAt);
  } catch (error) {
    deps.telemetry.warn("a task could not be attended to", { taskId, ...errorFields(error) });
    deps.telemetry.count("SweepFailures");
  }
}

async function attend(deps: SweepDeps, head: Head, dueAt: number): Promise<void> {
  const { store, timing, now } = deps;
  const last = await store.last(head.taskId);
  if (last?.end !== undefined) return catchUp(deps, head, await store.entries(head.taskId, 1));
  // Nobody works on a task before its requester can know of it.
  if (head.epoch === 0)
    await catchUp(deps, head, last === undefined ? [] : await store.entries(head.taskId, 1));

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
  await deps.hint(hintOf(head), delaySeconds(wait));
  deps.telemetry.count("TasksOffered");
}
