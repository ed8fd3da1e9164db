import assert from "node:assert/strict";
import type { Agent } from "../../shared/agents/index.ts";
import type { TaskEvent } from "../../shared/wire/index.ts";
import { Crashes } from "../../testing/crashes.ts";
import type { StartOptions } from "../../testing/index.ts";
import type { Fate, Write } from "../../testing/process.ts";
import { Simulation } from "../../testing/simulation.ts";
import { TestTask } from "../../testing/task.ts";

/** How many runs go on at once: each waits in real time, now and then, for its handler to be seen to wait. */
const SIDE_BY_SIDE = 8;
const SENDER = "local-cli";

/**
 * Plays a task undisturbed, and then once for each write of each process, which dies there; until a run meets no kill.
 * Each must end with the same events.
 *
 * @param play brings the task to its end
 * @returns how many writes there were
 */
export async function dieAtEachWrite(options: {
  agent: Agent;
  start: StartOptions;
  when: "before" | "after";
  play: (task: TestTask) => Promise<unknown>;
  eventsOf: (events: readonly TaskEvent[]) => unknown;
}): Promise<number> {
  const { agent, start, when, play, eventsOf } = options;
  const goThrough = async (fate: (write: Write) => Fate) => {
    const simulation = new Simulation(agent, { ...start, fate });
    const a2a = start.text ?? { parts: [{ data: start.data }] };
    const { taskId } = await simulation.admit({ skill: "task", a2a, from: SENDER });
    const task = new TestTask({ id: taskId, from: SENDER, simulation, crashes: new Crashes() });
    await play(task);
    // A control that comes again when the task is over is answered by the last event again (docs/wire.md §9).
    return eventsOf([...new Map(task.events.map((event) => [event.revision, event])).values()]);
  };

  const undisturbed = await goThrough(() => undefined);
  let last = Number.POSITIVE_INFINITY;
  let next = 1;
  const lane = async () => {
    while (next < last) {
      const n = next++;
      let writes = 0;
      let met: string | undefined;
      const seen = await goThrough((write) => {
        if (++writes !== n) return undefined;
        met = `${write.by} ${write.kind}`;
        return when;
      }).catch((cause: unknown) => {
        throw new Error(`killed ${when} write ${n} (${met})`, { cause });
      });
      if (met === undefined) last = Math.min(last, n);
      assert.deepEqual(seen, undisturbed, `killed ${when} write ${n} (${met})`);
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, lane));
  return last - 1;
}
