import assert from "node:assert/strict";
import * as z from "zod";
import { type Agent, defineAgent, type Step, skill } from "../../shared/agents/index.ts";
import type { Head } from "../../shared/tasks/items.ts";
import { isTerminal } from "../../shared/wire/index.ts";
import type { SimulationOptions } from "../../testing/options.ts";
import type { Write } from "../../testing/process.ts";
import { Simulation } from "../../testing/simulation.ts";

const MINUTE = 60_000;

/** A deployment of one agent with a limit, under load, and what is true of it whatever happens. */
export class SlotLoad {
  readonly simulation: Simulation;
  /** The tasks in the order of their admission. */
  readonly tasks: { readonly id: string; readonly from: string }[] = [];
  /** The tasks in the order in which their handlers first began. */
  readonly begun: string[] = [];
  /** The most live claims that there ever were, and that were looked for. */
  most = 0;
  readonly #agent: Agent;
  #max: number;
  readonly #looks: Promise<void>[] = [];

  constructor(
    handle: (step: Step, input: string) => Promise<unknown>,
    { max, fate = () => undefined, policy = {}, ...trouble }: LoadOptions,
  ) {
    this.#max = max;
    this.#agent = defineAgent({
      id: "narrow",
      description: "",
      skills: {
        task: skill({
          name: "Task",
          description: "",
          input: z.string(),
          run: async (task, step) => {
            if (!this.begun.includes(task.id)) this.begun.push(task.id);
            await handle(step, task.input);
            return "done";
          },
        }),
      },
    });
    this.simulation = new Simulation(this.#agent, {
      ...trouble,
      policy: { ...policy, maxConcurrent: max },
      fate: (write) => {
        this.#looks.push(this.#look(write));
        return fate(write);
      },
    });
  }

  /** What a write has left behind. */
  async #look({ kind }: Write): Promise<void> {
    if (!kind.startsWith("store.")) return;
    const slots = await this.slots();
    const heads = kind === "store.claimSlot" || kind === "store.claim" ? await this.heads() : [];
    const claimed = heads.filter(
      ({ state, epoch, waiting, queued }) =>
        epoch > 0 && waiting !== true && queued === undefined && !isTerminal(state),
    );
    this.most = Math.max(this.most, slots.live.size, claimed.length);
  }

  slots() {
    return this.simulation.store.slots(this.simulation.runtime);
  }

  async heads(): Promise<Head[]> {
    const heads = await Promise.all(this.tasks.map(({ id }) => this.simulation.store.head(id)));
    return heads.filter((head) => head !== undefined);
  }

  async head(n: number): Promise<Head> {
    const head = (await this.heads())[n];
    assert.ok(head);
    return head;
  }

  /** Admits a task, a millisecond after the one before. */
  async admit(from: string, input = "", timeoutSec?: number): Promise<string> {
    const { simulation } = this;
    const { clock } = simulation;
    for (const at = clock.now() + 1; clock.now() < at; ) clock.move(at);
    const request = { skill: "task", a2a: input, from, ...(timeoutSec !== undefined && { timeoutSec }) };
    const { taskId: id } = await simulation.admit(request);
    this.tasks.push({ id, from });
    return id;
  }

  deploy(max: number): void {
    this.#max = max;
    this.simulation.deploy(this.#agent, {}, { maxConcurrent: max });
  }

  /** Whether no slot is free while somebody waits. */
  async assertBusy(): Promise<void> {
    const { live, queued } = await this.slots();
    assert.ok(queued === 0 || live.size >= this.#max, `${live.size} of ${this.#max} work, ${queued} wait`);
  }

  async until(what: string, done: () => boolean | Promise<boolean>, idleIsWrong = true): Promise<void> {
    await this.simulation.until(what, async () => {
      if (idleIsWrong) await this.assertBusy();
      return await done();
    });
    await Promise.all(this.#looks);
  }

  async end(idleIsWrong = true): Promise<void> {
    await this.until(
      "all tasks end",
      async () => (await this.heads()).every(({ state, dueAt }) => isTerminal(state) && dueAt === undefined),
      idleIsWrong,
    );
    await this.simulation.advance(MINUTE);
    await this.assertFree();
  }

  /** All slots are free, and nobody is in the line. */
  async assertFree(): Promise<void> {
    const { live, queued } = await this.slots();
    assert.deepEqual([...live], []);
    assert.equal(queued, 0);
    assert.deepEqual(this.simulation.store.line(this.simulation.runtime), []);
  }

  /** How the tasks ended, in the order of their admission. */
  async states(): Promise<string[]> {
    return (await this.heads()).map(({ state }) => state.replace("TASK_STATE_", ""));
  }
}

interface LoadOptions extends Omit<SimulationOptions, "policy"> {
  readonly max: number;
  readonly policy?: object;
}
