import { Meter, ofPart, usageOf } from "../support/meter.ts";
import { Ground } from "./ground.ts";
import { costOfMillion } from "./prices.ts";
import { median, percentile, say } from "./print.ts";
import { printPublished } from "./published.ts";
import { Recording } from "./recording.ts";

const PARALLEL = 200;
const STORED = [10, 1_000, 10_000];

export interface StepsOptions {
  /** How many steps the task of sequential ones has. */
  readonly steps: number;
  readonly rounds: number;
}

/** What steps cost and how long they take, and what is gone through again after a wait. */
export async function benchSteps({ steps, rounds }: StepsOptions): Promise<void> {
  const ground = await Ground.start();
  const out = new Recording("steps", ground.world.peer.nc.info?.version);
  try {
    const stepMs = await sequential(out, ground, steps);
    const parallelMs = await parallel(out, ground, rounds);
    const replayMs = await replay(out, ground, rounds);
    printPublished(out, { steps, stepMs, parallelMs, parallel: PARALLEL, replayMs });
  } finally {
    await ground.stop();
  }
  costOfMillion(out, await units(out));
  out.save();
}

/** What this process has computed since, in milliseconds: it tells more than the time where others compute too. */
function cpuMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1_000;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** @returns the median of a step, in milliseconds */
async function sequential(out: Recording, ground: Ground, steps: number): Promise<number> {
  say(`${steps} steps, one after the other …`);
  const took: number[] = [];
  const busy: number[] = [];
  await ground.work(await ground.admit(), async (step) => {
    for (let n = 0; n < steps; n++) {
      const [before, cpu] = [performance.now(), process.cpuUsage()];
      await step.run("step", () => n);
      took.push(performance.now() - before);
      busy.push(cpuMs(cpu));
    }
  });
  const tenth = Math.ceil(steps / 10);
  const row = (name: string, ...slice: [number, number?]) => [
    name,
    ...[0.5, 0.95, 0.99, 1].map((share) => percentile(took.slice(...slice), share)),
    mean(busy.slice(...slice)),
  ];
  out.table(
    [`${steps} STEPS OF ONE TASK, MS A STEP`, "P50", "P95", "P99", "MAX", "CPU"],
    [row("all", 0), row(`the first ${tenth}`, 0, tenth), row(`the last ${tenth}`, -tenth)],
  );
  return median(took);
}

/** @returns the median of all steps together, in milliseconds */
async function parallel(out: Recording, ground: Ground, rounds: number): Promise<number> {
  say(`${PARALLEL} steps at once, ${rounds} times …`);
  const took: number[] = [];
  const entries: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const taskId = await ground.admit();
    await ground.work(taskId, async (step) => {
      const before = performance.now();
      await Promise.all(Array.from({ length: PARALLEL }, (_, n) => step.run(`part ${n}`, async () => n)));
      took.push(performance.now() - before);
    });
    // The last entry is the end's.
    entries.push(((await ground.world.store.last(taskId))?.place ?? 0) - 1);
  }
  out.table(
    [`${PARALLEL} STEPS AT ONCE`, "MEDIAN"],
    [
      ["all of them, ms", median(took)],
      ["a step, ms", median(took) / PARALLEL],
      ["entries, a request each", median(entries)],
    ],
  );
  return median(took);
}

/** @returns the medians of what is gone through again for each stored entry at the largest journal, in milliseconds */
async function replay(out: Recording, ground: Ground, rounds: number): Promise<number> {
  const rows: number[][] = [];
  let perEntry = Number.NaN;
  for (const stored of STORED) {
    say(`a task of ${stored} stored steps, taken up ${rounds} times …`);
    const taskId = await ground.filled(stored);
    const read: number[] = [];
    const replayed: number[] = [];
    const busy: number[] = [];
    // The first time warms up.
    for (let round = 0; round <= rounds; round++) {
      const [began, cpu] = [performance.now(), process.cpuUsage()];
      await ground.work(taskId, async (step) => {
        const called = performance.now();
        for (let n = 0; n < stored; n++) await step.run("step", () => n);
        const through = performance.now();
        if (round > 0) {
          read.push(called - began);
          replayed.push(through - called);
          busy.push(cpuMs(cpu));
        }
        for (let wait = 0; wait <= round; wait++) await step.sleep("pause", "1h");
      });
      ground.world.skip(3_600_000);
    }
    const all = median(read.map((ms, round) => ms + (replayed[round] ?? 0)));
    perEntry = all / stored;
    const cpu = median(busy);
    rows.push([stored, median(read), median(replayed), all, perEntry * 1_000, cpu, (cpu / stored) * 1_000]);
  }
  out.table(
    ["STORED STEPS", "CLAIM, READ, MS", "HANDLER AGAIN, MS", "BOTH, MS", "EACH, µS", "CPU, MS", "EACH, µS"],
    rows,
  );
  return perEntry;
}

export interface Units {
  readonly requests: number;
  readonly writes: number;
  readonly reads: number;
}

/** What a task of one step and each further step ask of the table, counted on the way. */
async function units(out: Recording): Promise<{ readonly task: Units; readonly step: Units }> {
  const MORE = 10;
  const meter = new Meter();
  const ground = await Ground.start({ route: meter.route });
  try {
    const counted = async (steps: number) => {
      meter.reset();
      const taskId = await ground.admit();
      await ground.work(taskId, async (step) => {
        for (let n = 0; n < steps; n++) await step.run("step", () => n);
      });
      // Without the bench's own look at the head.
      const own = ofPart(meter.passed, "dynamodb").filter(({ kind }) => kind !== "dynamodb GetItem");
      return usageOf(own);
    };
    const task = await counted(1);
    const more = await counted(1 + MORE);
    const step = {
      requests: (more.requests - task.requests) / MORE,
      writes: (more.writes - task.writes) / MORE,
      reads: (more.reads - task.reads) / MORE,
    };
    out.table(
      ["AT THE TABLE", "REQUESTS", "WRITE UNITS", "READ UNITS"],
      [
        ["a task with one step", task.requests, task.writes, task.reads],
        ["each further step", step.requests, step.writes, step.reads],
      ],
    );
    return { task, step };
  } finally {
    await ground.stop();
    meter.stop();
  }
}
