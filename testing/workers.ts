import { runTask } from "../functions/work/run.ts";
import { type WorkDeps, work } from "../functions/work/work.ts";
import type { Agent } from "../shared/agents/index.ts";
import type { WorkHint } from "../shared/tasks/messages.ts";
import type { Process } from "./process.ts";
import { Watch } from "./watch.ts";

/** The processes that work on tasks, each on one. */
export class Workers {
  readonly #running = new Map<Process, Watch>();
  readonly #listeners = new Map<string, Set<() => void>>();
  /** How often handlers have got anywhere whose processes are over. */
  #past = 0;

  get none(): boolean {
    return this.#running.size === 0;
  }

  /** Grows as processes begin and end, and as their handlers get anywhere. */
  get changes(): number {
    let sum = this.#past;
    for (const watch of this.#running.values()) sum += 1 + watch.changes;
    return sum;
  }

  /** What a handler does in real time, in words; nothing when only the clock can bring them all further. */
  get busy(): string | undefined {
    for (const [process, watch] of this.#running)
      if (!process.dead && watch.busy !== undefined) return watch.busy;
    return undefined;
  }

  /** Works on what a hint speaks of, until that is over or the process dies. */
  async run(
    process: Process,
    deps: Omit<WorkDeps, "agents" | "listen" | "runner">,
    { agent, hint, endsAt }: { agent: Agent; hint: WorkHint; endsAt: number },
  ): Promise<void> {
    const watch = new Watch();
    this.#running.set(process, watch);
    const listen = (taskId: string, told: () => void) => this.#listen(process, taskId, told);
    try {
      const agents = [{ id: agent.id, load: async () => watch.agent(agent) }];
      const working = work({ ...deps, agents, listen, runner: async () => runTask }, hint, { endsAt });
      await Promise.race([working, process.died]);
    } finally {
      this.#running.delete(process);
      this.#past += 2 + watch.changes;
    }
  }

  /** Tells the workers of a task that its journal has news. */
  tell(taskId: string): void {
    for (const hear of this.#listeners.get(taskId) ?? []) hear();
  }

  kill(): void {
    for (const process of this.#running.keys()) process.kill();
  }

  async #listen(process: Process, taskId: string, told: () => void): Promise<() => void> {
    const hear = () => {
      if (!process.dead) told();
    };
    const listeners = this.#listeners.get(taskId) ?? new Set();
    this.#listeners.set(taskId, listeners.add(hear));
    return () => void listeners.delete(hear);
  }
}
