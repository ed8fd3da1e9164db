import { randomUUID } from "node:crypto";
import * as z from "zod";
import { defineAgent, type Step, skill } from "../../shared/agents/index.ts";
import type { Entry } from "../../shared/tasks/items.ts";
import { startWorld, type World } from "../support/world.ts";

const DAY_SEC = 86_400;
/** Writes under way at once where the order does not matter. */
const LANES = 16;

/** What the agent does; set anew for each measurement. */
interface Does {
  handle: (step: Step) => Promise<unknown>;
}

/** The functions over the real table, called without queues, and an agent that does what it is told. */
export class Ground {
  readonly world: World;
  readonly #does: Does;

  private constructor(world: World, does: Does) {
    this.world = world;
    this.#does = does;
  }

  static async start(options: Parameters<typeof startWorld>[2] = {}): Promise<Ground> {
    const does: Does = { handle: async () => {} };
    const run = async (_: unknown, step: Step) => {
      await does.handle(step);
      return "done";
    };
    const agent = defineAgent({
      id: "bench",
      description: "Does what is measured",
      skills: { task: skill({ name: "Task", description: "", input: z.string(), run }) },
    });
    const policy = { maxConcurrent: 0, timeoutSec: { default: 30 * DAY_SEC, max: 30 * DAY_SEC } };
    return new Ground(await startWorld([agent], policy, options), does);
  }

  /** Gives the agent a task; nobody works on it yet. */
  async admit(): Promise<string> {
    const message = this.world.task();
    await this.world.admit(message);
    this.world.hints.splice(0);
    return message.taskId;
  }

  /** Lets a worker take up a task as it is, with this handler, until the task ends or waits. */
  async work(taskId: string, handle: (step: Step) => Promise<unknown>): Promise<void> {
    this.#does.handle = handle;
    const head = await this.world.store.head(taskId);
    if (head === undefined) throw new Error(`no task ${taskId}`);
    await this.world.work({ taskId, epoch: head.epoch, beat: head.beat });
    this.world.hints.splice(0);
  }

  /** A task whose journal holds so many entries, a step each, named as if its handler had called `step` so often. */
  async filled(entries: number): Promise<string> {
    const { store } = this.world;
    const taskId = await this.admit();
    const head = await store.claim({ taskId, epoch: 0, beat: 0 }, "bench", this.world.now() + 60_000);
    if (head === undefined) throw new Error(`task ${taskId} is claimed`);
    let last = 0;
    const lane = async () => {
      while (last < entries) await store.append(taskId, entryOf(++last), head.expiresAt);
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    return taskId;
  }

  stop(): Promise<void> {
    return this.world.stop();
  }
}

function entryOf(place: number): Entry {
  const name = place === 1 ? "step" : `step#${place}`;
  const step = { name, kind: "run" as const, value: { text: String(place) }, ms: 0 };
  return { place, nonce: randomUUID(), epoch: 1, at: Date.now(), revision: 1, steps: [step] };
}
