import type { Step } from "../../../shared/agents/index.ts";
import { controlMessage } from "../../../shared/wire/index.ts";
import { SENDER } from "../../support/world.ts";
import { Ground } from "../ground.ts";
import { median, say } from "../print.ts";
import { type Grown, type GrowthRun, grown, inTurns } from "./measures.ts";

/** So many that a collection of the garbage that the replay has left is not most of what they take. */
const NEW_STEPS = 60;
/** Each round adds about {@link NEW_STEPS} entries: a history shorter than this is measured once only. */
const LASTING = 100 * NEW_STEPS;
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
  const histories: History[] = [];
  try {
    for (const size of sizes) {
      say(`a task with a history of ${size} entries …`);
      histories.push(await History.start(size));
    }
    const measured = await inTurns(histories, rounds, (history) => history.round());
    return grown("entries of a task", sizes, NAMES, measured);
  } finally {
    await Promise.all(histories.map((history) => history.stop()));
  }
}

/** A task with a history of one size, and a world of its own: `sweep` looks at all that is due in one. */
class History {
  readonly #ground: Ground;
  readonly #size: number;
  #taskId: string | undefined;
  /** How often the task was left so far, and had new steps before that. */
  #left = 0;

  private constructor(ground: Ground, size: number) {
    this.#ground = ground;
    this.#size = size;
  }

  static async start(size: number): Promise<History> {
    const history = new History(await Ground.start(), size);
    await history.#task();
    return history;
  }

  stop(): Promise<void> {
    return this.#ground.stop();
  }

  /** One round of all measures. */
  async round(): Promise<number[]> {
    const taskId = await this.#task();
    const { world } = this.#ground;
    const replay = { ms: 0, busy: 0 };
    const fresh: number[] = [];
    let busy = 0;
    const began = performance.now();
    const cpu = process.cpuUsage();
    await this.#work(taskId, async (step, round) => {
      replay.ms = performance.now() - began;
      replay.busy = cpuMs(cpu);
      for (let old = 1; old < round; old++) await newSteps(old, (name) => step.run(name, () => 0));
      const since = process.cpuUsage();
      await newSteps(round, async (name) => {
        const before = performance.now();
        await step.run(name, () => 0);
        fresh.push(performance.now() - before);
      });
      busy = cpuMs(since) / NEW_STEPS;
    });
    const control = await timed(() => this.#ask(taskId));
    // Its sleep is nearly over: the task is due.
    world.skip(HOUR_MS - 30_000);
    const looked = await timed(() => world.sweep());
    world.skip(30_000);
    const perEntry = 1_000 / this.#size;
    return [replay.ms * perEntry, replay.busy * perEntry, median(fresh), busy, looked, control * perEntry];
  }

  /** The task to measure; another one where the last has grown too long. */
  async #task(): Promise<string> {
    const known = this.#taskId;
    if (known !== undefined && (this.#size >= LASTING || this.#left === 1)) return known;
    // What is over is not due.
    if (known !== undefined) await this.#ground.work(known, async () => {});
    const taskId = await this.#ground.filled(this.#size);
    this.#taskId = taskId;
    this.#left = 0;
    // Whose first worker has not left it costs a request more at each step.
    await this.#work(taskId, async () => {});
    this.#ground.world.skip(HOUR_MS);
    return taskId;
  }

  /** Goes through the history, does something, and sleeps. */
  async #work(taskId: string, go: (step: Step, round: number) => Promise<void>): Promise<void> {
    await this.#ground.work(taskId, async (step) => {
      for (let n = 0; n < this.#size; n++) await step.run("step", () => n);
      await go(step, this.#left);
      for (let wait = 0; wait <= this.#left; wait++) await step.sleep("pause", "1h");
    });
    this.#left++;
  }

  async #ask(taskId: string): Promise<void> {
    const { world } = this.#ground;
    const { from = SENDER, to = "" } = (await world.store.head(taskId)) ?? {};
    const createdAt = new Date(world.now()).toISOString();
    await world.control(controlMessage({ from, to, taskId, kind: "status", revision: 2, createdAt }));
  }
}

async function newSteps(round: number, run: (name: string) => Promise<unknown>): Promise<void> {
  for (let n = 0; n < NEW_STEPS; n++) await run(`new ${round} ${n}`);
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
