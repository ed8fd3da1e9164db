import type { AgentPolicy } from "../../shared/config/policy.ts";
import { toldBy } from "../../shared/events/drafts.ts";
import { ClaimLost, TaskEnded } from "../../shared/events/journal.ts";
import { hopsIn } from "../../shared/policy/choosing/hops.ts";
import { Engine } from "../../shared/steps/engine.ts";
import { failure, type Run, timedOut } from "../../shared/steps/failure.ts";
import { runHandler } from "../../shared/steps/run.ts";
import { StatusLine } from "../../shared/steps/status.ts";
import { Writer } from "../../shared/steps/writer.ts";
import { deadlineOf } from "../../shared/tasks/fold.ts";
import { keepBeating } from "./beat.ts";
import type { Claim } from "./claim.ts";
import { end, finishWriting, suspend } from "./leave.ts";
import { ownStrays } from "./strays.ts";
import { readTask, type TaskReading } from "./task.ts";

/** Claims in a row that brought the task no further; then it is given up (docs/tasks.md, takeovers). */
export const MAX_FRUITLESS_CLAIMS = 5;

/**
 * Works on the task until it ends, waits, or is taken away. An end is put and published, a task that waits is left.
 *
 * @param died how many workers in a row have died without bringing the task further
 * @throws TaskEnded, ClaimLost
 */
export async function runTask(claim: Claim, died: number): Promise<Run> {
  const { head, view, deps } = claim;
  const now = deps.clock.now();
  if (now >= deadlineOf(head, view)) return conclude(claim, timedOut(head, now));
  if (died >= MAX_FRUITLESS_CLAIMS) {
    const message = `the worker died ${died} times in a row ${whereDied(claim)}`;
    return conclude(claim, failure(head, "internal", message, now));
  }
  const policy = await deps.policies.of(head.to);
  const read = await readTask(deps, { deployment: deps.deployment, policy, agents: deps.agents, head });
  if (!read.ok) return conclude(claim, failure(head, read.code, read.message, deps.clock.now()));
  return handle(claim, read, died > 0);
}

/** How far apart the progress events of a task are at least, in milliseconds. */
function statusEveryMs({ statusEverySec, eventsPerMin }: AgentPolicy): number {
  return Math.max(statusEverySec * 1_000, eventsPerMin === 0 ? 0 : 60_000 / eventsPerMin);
}

/** The end of a task whose handler is not run. */
async function conclude(claim: Claim, run: Run): Promise<Run> {
  if ("end" in run) await end(claim, writerOf(claim, 0).writer, run);
  return run;
}

function writerOf(claim: Claim, statusEveryMs: number): { writer: Writer; status: StatusLine } {
  const { head, view, journal, deps } = claim;
  const { values, clock } = deps;
  const status = new StatusLine({
    everyMs: statusEveryMs,
    clock,
    due: () => void writer.add({}).catch(() => {}),
  });
  const writer = new Writer({
    journal,
    view,
    values,
    task: head,
    status,
    now: clock.now,
    stored: () => claim.outlet.kick(),
  });
  if (view.lastStatus !== undefined) status.restore(view.lastStatus.at, toldBy(view.lastStatus.event));
  return { writer, status };
}

/**
 * @param careful whether workers have died lately: then each step's name is worth a write, so that we can say where if
 *   this one dies too
 */
async function handle(
  claim: Claim,
  read: Extract<TaskReading, { ok: true }>,
  careful: boolean,
): Promise<Run> {
  const { head, view, limit, deps } = claim;
  const { values, telemetry, timing, clock } = deps;
  const { writer, status } = writerOf(claim, statusEveryMs(read.policy) / timing.scale);
  const engine = new Engine({
    head,
    view,
    writer,
    values,
    status,
    delegating: {
      messenger: deps.messenger,
      // A run may last for a quarter of an hour: what is allowed meanwhile is asked anew.
      policy: async () => (await deps.policies.of(head.to)) ?? read.policy,
      agents: deps.deployment.agents,
      contextId: read.task.contextId,
      hops: hopsIn(read.task.message),
      choosing: deps.choosing,
    },
    telemetry,
    clock,
    limit,
    settling: deps.settling,
    published: () => claim.outlet.drain(),
    before: async (name) => {
      // If the table does not take it, the step is run all the same.
      if (careful && !(await claim.showLife(name).catch(() => true))) engine.halt({ kind: "lost" });
    },
  });
  let late = false;
  claim.news = () => engine.news();
  claim.found = () => {
    late ||= engine.closed;
  };
  const run = await attended(claim, engine, writer, async () => {
    const run = await ownStrays(
      (error) => engine.halt({ kind: "threw", error }),
      () => runHandler({ skill: read.skill, task: read.task, head, engine, values }),
    );
    if ("end" in run) await end(claim, writer, run);
    else if (run.halt.kind === "suspended") await finishWriting(claim, writer);
    return run;
  });
  if ("halt" in run && run.halt.kind === "suspended")
    await suspend(claim, writer, { until: run.halt.until, missed: () => late });
  return run;
}

/** Does something while the worker shows that it lives, and hears of what others put into the journal. */
async function attended<T>(claim: Claim, engine: Engine, writer: Writer, work: () => Promise<T>): Promise<T> {
  const { clock, timing, listen } = claim.deps;
  const told = () =>
    void writer.refresh().catch((error: unknown) => {
      if (error instanceof TaskEnded) engine.halt({ kind: "ended" });
      else if (error instanceof ClaimLost) engine.halt({ kind: "lost" });
    });
  const beating = keepBeating({
    clock,
    everyMs: timing.beatMs,
    beat: async () => {
      const held = await claim.showLife();
      // Whoever brings what a step waits for may not reach us.
      if (held && engine.listening) told();
      return held;
    },
    lost: () => engine.halt({ kind: "lost" }),
  });
  const listening = listen(claim.head.taskId, told).catch(() => () => {});
  try {
    return await work();
  } finally {
    await beating.stop();
    (await listening)();
  }
}

/** Where the workers before this one have died, as far as they could tell. */
function whereDied({ head, view }: Claim): string {
  const { running } = head;
  if (running !== undefined && !view.steps.has(running)) return `in step ${JSON.stringify(running)}`;
  let last: { name: string; at: number } | undefined;
  for (const { name, at } of view.steps.values()) if (at >= (last?.at ?? 0)) last = { name, at };
  for (const { name, since } of view.open.values()) if (since > (last?.at ?? 0)) last = { name, at: since };
  return last === undefined ? "before its first step" : `after step ${JSON.stringify(last.name)}`;
}
