import { type Pause, type Paused, type PauseStore, pause } from "../tasks/pauses.ts";

/** Of which no agent is paused. */
export const neverPaused: Paused = {
  of: () => Promise.resolve(undefined),
  look: () => Promise.resolve(undefined),
  hold: () => Promise.resolve(),
  release: () => Promise.resolve(),
};

/** The pauses of the agents, in memory. */
export function memoryPauses(): PauseStore {
  const pauses = new Map<string, Pause>();
  const held = new Map<string, Set<string>>();
  return {
    pause: async (runtime, of) => void pauses.set(runtime, pause().parse(of)),
    pauseOf: async (runtime) => pauses.get(runtime),
    resume: async (runtime) => pauses.delete(runtime),
    hold: async (runtime, taskId) => void held.set(runtime, new Set([...(held.get(runtime) ?? []), taskId])),
    async *held(runtime) {
      yield* [...(held.get(runtime) ?? [])].sort();
    },
    release: async (runtime, taskId) => void held.get(runtime)?.delete(taskId),
  };
}
