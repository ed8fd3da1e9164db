import type { Standings } from "../policy/standing.ts";
import * as z from "../zod.ts";

/** That an agent's tasks are not claimed (docs/tasks.md, pausing). */
export const pause = z.whenUsed(() =>
  z.object({
    /** Since when, in milliseconds since 1970. */
    at: z.number(),
    /** Who has paused it, in their own words. */
    by: z.string(),
    /** Whether new tasks are rejected rather than left waiting. */
    refuse: z.boolean(),
  }),
);
export type Pause = z.Used<typeof pause>;

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

/** Which agents are paused, as a sandbox knows it. */
export class Pauses implements Paused {
  readonly hold: PauseStore["hold"];
  readonly release: PauseStore["release"];
  readonly #standings: Standings;

  constructor(options: { store: Pick<PauseStore, "hold" | "release">; standings: Standings }) {
    this.hold = options.store.hold;
    this.release = options.store.release;
    this.#standings = options.standings;
  }

  async of(runtime: string): Promise<Pause | undefined> {
    return (await this.#standings.of(runtime)).pause;
  }

  async look(runtime: string): Promise<Pause | undefined> {
    return (await this.#standings.look(runtime)).pause;
  }
}
