import * as z from "../zod.ts";

/** That an agent's tasks are not claimed (docs/tasks.md, pausing). */
export const pause = z.object({
  /** Since when, in milliseconds since 1970. */
  at: z.number(),
  /** Who has paused it, in their own words. */
  by: z.string(),
  /** Whether new tasks are rejected rather than left waiting. */
  refuse: z.boolean(),
});
export type Pause = z.infer<typeof pause>;

/** Which agents are paused, and what was held back: kept beside the agents' slots (docs/table.md). */
export interface PauseStore {
  /** Pauses an agent, or changes how it is paused. */
  pause(runtime: string, of: Pause): Promise<void>;
  pauseOf(runtime: string): Promise<Pause | undefined>;
  /** @returns whether the agent was paused */
  resume(runtime: string): Promise<boolean>;
  /**
   * Notes that a task was held back, for whoever resumes its agent.
   *
   * @param expiresAt when the note may be deleted, in seconds since 1970: with the task
   */
  hold(runtime: string, taskId: string, expiresAt: number): Promise<void>;
  /** The tasks of an agent that were held back, in the order of their ids. */
  held(runtime: string): AsyncIterable<string>;
  /** Forgets that a task was held back. */
  release(runtime: string, taskId: string): Promise<void>;
}

/** What a function has to do with pauses. */
export interface Paused extends Pick<PauseStore, "hold" | "release"> {
  /** Whether an agent is paused, as it was known a few seconds ago at the earliest. */
  of(runtime: string): Promise<Pause | undefined>;
  /** The same as it is now. */
  look(runtime: string): Promise<Pause | undefined>;
}

/**
 * Which agents are paused, as a sandbox knows it: to look is a request, which not every task must cost. So each agent
 * is looked at when a task of it comes, and then for `pauseKnownMs` no more.
 */
export class Pauses implements Paused {
  readonly hold: PauseStore["hold"];
  readonly release: PauseStore["release"];
  readonly #store: Pick<PauseStore, "pauseOf">;
  readonly #now: () => number;
  readonly #knownMs: number;
  readonly #known = new Map<string, { readonly until: number; readonly pause: Promise<Pause | undefined> }>();

  constructor(options: {
    store: Pick<PauseStore, "pauseOf" | "hold" | "release">;
    now: () => number;
    timing: { readonly pauseKnownMs: number };
  }) {
    const { store } = options;
    this.#store = store;
    this.hold = store.hold;
    this.release = store.release;
    this.#now = options.now;
    this.#knownMs = options.timing.pauseKnownMs;
  }

  of(runtime: string): Promise<Pause | undefined> {
    const known = this.#known.get(runtime);
    return known !== undefined && this.#now() < known.until ? known.pause : this.look(runtime);
  }

  look(runtime: string): Promise<Pause | undefined> {
    const known = { until: this.#now() + this.#knownMs, pause: this.#store.pauseOf(runtime) };
    this.#known.set(runtime, known);
    known.pause.catch(() => {
      if (this.#known.get(runtime) === known) this.#known.delete(runtime);
    });
    return known.pause;
  }
}
