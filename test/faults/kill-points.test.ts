import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Point } from "../support/proxy/points.ts";
import { killCaller } from "../support/proxy/proxies.ts";
import { assertStoredOnce, assertWhole, type Stage, startStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

type When = "before" | "after";

/** Fast, yet slow enough that a worker that lives shows it in time on a busy machine. */
const SCALE = 60;
/** Tasks under way at once; their writes are told apart by their ids. */
const SIDE_BY_SIDE = 6;

/** The writes by which every task goes its way; others come as it happens (beats, takeovers, merged entries). */
const WAY = [
  "sqs send tasks",
  "dynamodb PutItem head",
  "nats publish accepted",
  "sqs send work",
  "nats ack",
  "dynamodb TransactWriteItems claim",
  "dynamodb PutItem entry steps",
  "nats publish status",
  "s3 PUT value",
  "nats object chunk",
  "nats object info",
  "nats publish artifact",
  "dynamodb PutItem entry events+end",
  "nats publish result",
  "dynamodb TransactWriteItems settled",
];

/** Which of a task's writes kills the process that makes it: the n-th, or the first of a kind. */
type Aim = number | string;

/** One task, and how far it came. */
interface Run {
  readonly aim: Aim;
  readonly taskId: string;
  /** The kinds of its writes, up to that which killed. */
  readonly kinds: string[];
  killed: boolean;
}

/** What must have killed before a task is there; a run of `cards` goes on to further writes. */
const EARLY = [
  ...["dynamodb UpdateItem cards", "nats card", "nats heartbeat", "nats pull"],
  ...["nats create stream", "nats create consumer", "nats delete consumer"],
];

let stage: Stage;
/** What is written before there is any task, and how often it has killed. */
const early = new Map<string, number>();

before(async () => {
  const kills = (when: number) => (point: Point) => {
    if (point.tasks.length > 0 || point.caller === undefined || (early.get(point.kind) ?? 0) !== when) return;
    early.set(point.kind, when + 1);
    return killCaller(point);
  };
  stage = await startStage({ timeScale: SCALE }, { before: kills(0), after: kills(1) });
});
after(() => stage.stop());

test("streams, consumers, pulls and cards come into being although each kills the function that asks first", async () => {
  const { taskId } = await stage.step();
  await stage.over(taskId);
  await until("everything early has killed twice", () => EARLY.every((kind) => early.get(kind) === 2), {
    seen: () => Object.fromEntries(early),
  });
});

for (const when of ["before", "after"] as const)
  test(`a task completes although its n-th write kills the process right ${when} it, for every n`, async (t) => {
    const runs = await series(when);
    for (const run of runs) await assertRight(run.taskId, `killed ${when} ${run.kinds.at(-1)}`);
    await stage.drained();

    const met = Map.groupBy(
      runs.filter(({ killed }) => killed),
      ({ kinds }) => kinds.at(-1) ?? "",
    );
    t.diagnostic(`${runs.length} tasks, killed right ${when} writes of ${met.size} kinds:`);
    for (const [kind, { length }] of met) t.diagnostic(`${String(length).padStart(4)}  ${kind}`);
    for (const kind of WAY)
      assert.ok(
        [...met.keys()].some((killer) => killer.startsWith(kind)),
        kind,
      );
  });

/**
 * Tasks for n = 1, 2, 3 … until one meets no kill, although no other made more writes. What a task writes side by side
 * comes in any order; so those kinds of write that no n has met are then aimed at.
 */
async function series(when: When): Promise<Run[]> {
  const runs = new Map<string, Run>();
  const doomed = new WeakSet<Point>();
  const off = stage.proxies.points.on({
    before(point) {
      for (const taskId of point.tasks) if (hits(runs.get(taskId), point)) doomed.add(point);
      return when === "before" && doomed.has(point) ? killCaller(point) : undefined;
    },
    after: (point) => (doomed.has(point) ? killCaller(point) : undefined),
  });
  try {
    const undisturbed = await goThrough(await launch(runs, Number.POSITIVE_INFINITY));
    let most = undisturbed.kinds.length;
    let next = 1;
    let done = false;
    await sideBySide(async () => {
      if (done) return false;
      const n = next++;
      const run = await goThrough(await launch(runs, n));
      if (run.killed) return true;
      most = Math.max(most, run.kinds.length);
      done ||= n > most;
      return true;
    });
    const unmet = WAY.filter(
      (kind) => ![...runs.values()].some((run) => run.killed && run.kinds.at(-1)?.startsWith(kind)),
    );
    await sideBySide(async () => {
      const kind = unmet.shift();
      if (kind !== undefined) await goThrough(await launch(runs, kind));
      return kind !== undefined;
    });
    return [...runs.values()];
  } finally {
    off();
  }
}

/** Repeats `one` until it says that there is no more, several at once. */
async function sideBySide(one: () => Promise<boolean>): Promise<void> {
  const lane = async () => {
    while (await one());
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, lane));
}

/** Whether this is the write that kills. */
function hits(run: Run | undefined, point: Point): boolean {
  if (run === undefined || run.killed || point.caller === undefined) return false;
  run.kinds.push(point.kind);
  run.killed = typeof run.aim === "number" ? run.kinds.length === run.aim : point.kind.startsWith(run.aim);
  return run.killed;
}

let launching: Promise<unknown> = Promise.resolve();

/**
 * Publishes a task once the one before has been killed or admitted: what handles messages in batches is then at one
 * task at a time.
 */
function launch(runs: Map<string, Run>, aim: Aim): Promise<Run> {
  const launched = launching.then(async () => {
    const known = Promise.withResolvers<Run>();
    await stage.step({}, (taskId) => {
      const run: Run = { aim, taskId, kinds: [], killed: false };
      runs.set(taskId, run);
      known.resolve(run);
    });
    const run = await known.promise;
    await until("a task is admitted or killed", () => run.killed || run.kinds.includes("nats ack"), {
      seen: () => run.kinds,
    });
    return run;
  });
  launching = launched;
  return launched;
}

async function goThrough(run: Run): Promise<Run> {
  await stage.over(run.taskId).catch((cause: unknown) => {
    throw new Error(`after ${run.kinds.join(", ")} (${run.killed ? "killed" : "not killed"})`, { cause });
  });
  return run;
}

async function assertRight(taskId: string, which: string): Promise<void> {
  const events = stage.log.of(taskId);
  assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED", which);
  assert.equal(events.filter(({ kind }) => kind === "artifact").length, 1, which);
  assertWhole(events);
  assertStoredOnce(await stage.store.entries(taskId, 1), stage.traces(taskId));
}
