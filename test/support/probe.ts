import { after, before } from "node:test";
import * as z from "zod";
import { defineAgent, type Outcome, type Step, skill } from "../../shared/agents/index.ts";
import { fold, type View } from "../../shared/tasks/fold.ts";
import type { WorkHint } from "../../shared/tasks/messages.ts";
import {
  type ControlKind,
  controlMessage,
  type TaskEvent,
  type TaskRequest,
} from "../../shared/wire/index.ts";
import { SENDER, startWorld, type World } from "./world.ts";

export type Handler = (step: Step) => unknown;
type WorkOptions = Parameters<World["work"]>[1];

/** A handler's return value as it is; anything else that one gives is text, or data. */
export class Made {
  readonly outcome: Outcome;
  constructor(outcome: Outcome) {
    this.outcome = outcome;
  }
}

/** An agent over real parts whose handler each test sets. */
export class Probe {
  /** What the agent does. */
  handle: Handler = () => "";
  #world: World | undefined;

  /**
   * @param policy of the agent
   * @param options of its world
   */
  constructor(policy: object = {}, options: Parameters<typeof startWorld>[2] = {}) {
    const agent = defineAgent({
      id: "probe",
      description: "Does what the test says",
      skills: {
        task: skill({
          name: "Task",
          description: "",
          input: z.string(),
          run: async (_task, step) => {
            const made = await this.handle(step);
            if (made instanceof Made) return made.outcome;
            return typeof made === "string" ? made : { data: made };
          },
        }),
      },
    });
    before(async () => {
      this.#world = await startWorld([agent], policy, options);
    });
    after(() => this.#world?.stop());
  }

  get world(): World {
    if (this.#world === undefined) throw new Error("the world is not there before the tests begin");
    return this.#world;
  }

  /** Admits a task for this handler; gives its first hint. */
  async admit(handle: Handler, request: Partial<TaskRequest> = {}): Promise<WorkHint> {
    this.handle = handle;
    const message = this.world.task(request);
    await this.world.admit(message);
    const [given] = this.world.hints.splice(0);
    if (given === undefined) throw new Error("the admission has given no hint");
    return given.hint;
  }

  /** Admits a task for this handler and works on it until it ends or waits for longer than a hint can. */
  async start(handle: Handler, request: Partial<TaskRequest> = {}): Promise<string> {
    const hint = await this.admit(handle, request);
    await this.world.work(hint);
    await this.go();
    return hint.taskId;
  }

  /** Takes all hints, each when its delay is over. */
  async go(options?: WorkOptions): Promise<void> {
    for (let taken = this.world.hints.shift(); taken !== undefined; taken = this.world.hints.shift()) {
      this.world.skip(taken.delaySec * 1_000);
      await this.world.work(taken.hint, options);
    }
  }

  /** Lets time pass, then does what is due. */
  async pass(ms: number): Promise<void> {
    this.world.skip(ms);
    await this.world.sweep();
    await this.go();
  }

  async events(taskId: string): Promise<TaskEvent[]> {
    return (await this.world.peer.events(taskId)).map(({ event }) => event);
  }

  async last(taskId: string): Promise<TaskEvent | undefined> {
    return (await this.events(taskId)).at(-1);
  }

  /** The events, each as state without its prefix, and content. */
  async told(taskId: string): Promise<string[]> {
    return (await this.events(taskId)).map(({ state, content }) =>
      `${state.replace("TASK_STATE_", "")} ${content}`.trimEnd(),
    );
  }

  async view(taskId: string): Promise<View> {
    return fold(await this.world.store.entries(taskId, 1));
  }

  /** Sends a reply as the requester, and nothing more. */
  async reply(taskId: string, kind: ControlKind, a2a: unknown): Promise<void> {
    const { world } = this;
    const revision = ((await this.last(taskId))?.revision ?? 0) + 1;
    const to = world.deployment.agents[0]?.runtime ?? "";
    const createdAt = new Date(world.now()).toISOString();
    await world.control(controlMessage({ from: SENDER, to, taskId, kind, revision, a2a, createdAt }));
  }

  /** Answers the question that is open, and goes on. */
  async answer(taskId: string, input: unknown): Promise<void> {
    await this.reply(taskId, "input_reply", { input });
    await this.go();
  }

  async approve(taskId: string, approve: boolean, denyReason?: string): Promise<void> {
    await this.reply(taskId, "auth_reply", { approve, ...(denyReason !== undefined && { denyReason }) });
    await this.go();
  }
}
