import { controlMessage } from "../../../shared/wire/index.ts";
import { SENDER } from "../../support/world.ts";
import { Ground } from "../ground.ts";
import { median, say } from "../print.ts";
import { type Grown, type GrowthRun, grown, mediansOf } from "./measures.ts";

const NEW_STEPS = 20;
const HOUR_MS = 3_600_000;

const NAMES = [
  "replay, µs an entry",
  "replay, µs of computing an entry",
  "a new step",
  "a new step, ms of computing",
  "a look of sweep",
  "control → answered, µs an entry",
] as const;

/** Tasks whose journals hold so many entries: taken up again, going on, looked at, asked for their status. */
export async function growthOfHistories({ sizes, rounds }: GrowthRun): Promise<Grown> {
  const ground = await Ground.start();
  try {
    const bySize: number[][] = [];
    await measure(ground, Math.min(...sizes), 1);
    for (const size of sizes) {
      say(`a task with a history of ${size} entries …`);
      bySize.push(await measure(ground, size, rounds));
    }
    return grown("entries of a task", sizes, NAMES, bySize);
  } finally {
    await ground.stop();
  }
}

async function measure(ground: Ground, size: number, rounds: number): Promise<number[]> {
  const taskId = await ground.filled(size);
  const measured: number[][] = [];
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    const values = await roundOf(ground, taskId, size, round);
    if (round > 0) measured.push(values);
  }
  return mediansOf(measured);
}

async function roundOf(ground: Ground, taskId: string, size: number, round: number): Promise<number[]> {
  const replay = { ms: 0, busy: 0 };
  const fresh: number[] = [];
  let busy = 0;
  const began = performance.now();
  const cpu = process.cpuUsage();
  await ground.work(taskId, async (step) => {
    for (let n = 0; n < size; n++) await step.run("step", () => n);
    replay.ms = performance.now() - began;
    replay.busy = cpuMs(cpu);
    for (let old = 0; old < round; old++) await newSteps(old, (name) => step.run(name, () => 0));
    const since = process.cpuUsage();
    await newSteps(round, async (name) => {
      const before = performance.now();
      await step.run(name, () => 0);
      fresh.push(performance.now() - before);
    });
    busy = cpuMs(since) / NEW_STEPS;
    for (let wait = 0; wait <= round; wait++) await step.sleep("pause", "1h");
  });
  const control = await timed(() => ask(ground, taskId));
  // Its sleep is nearly over: the task is due.
  ground.world.skip(HOUR_MS - 30_000);
  const looked = await timed(() => ground.world.sweep());
  ground.world.skip(30_000);
  const perEntry = 1_000 / size;
  return [replay.ms * perEntry, replay.busy * perEntry, median(fresh), busy, looked, control * perEntry];
}

async function newSteps(round: number, run: (name: string) => Promise<unknown>): Promise<void> {
  for (let n = 0; n < NEW_STEPS; n++) await run(`new ${round} ${n}`);
}

async function ask({ world }: Ground, taskId: string): Promise<void> {
  const { from = SENDER, to = "" } = (await world.store.head(taskId)) ?? {};
  const createdAt = new Date(world.now()).toISOString();
  await world.control(controlMessage({ from, to, taskId, kind: "status", revision: 2, createdAt }));
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await act();
  return performance.now() - began;
}

function cpuMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1_000;
}
