import { admit } from "../../functions/admit/admit.ts";
import { control } from "../../functions/control/control.ts";
import { sweep } from "../../functions/sweep/sweep.ts";
import { work } from "../../functions/work/work.ts";
import { FUNCTION_SIZES } from "../../infra/sizes.ts";
import type { Agent } from "../../shared/agents/index.ts";
import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import type { Delivery, Verdict } from "../../shared/nats/delivery.ts";
import { intake, PoisonMessage } from "../../shared/nats/intake.ts";
import { MAX_RECEIVES, workHint } from "../../shared/tasks/messages.ts";
import type { Telemetry } from "../../shared/telemetry/index.ts";
import { parseSubject, taskIdOf } from "../../shared/wire/index.ts";
import type { Received } from "./parts/queue.ts";
import { Process } from "./process.ts";
import type { World } from "./world.ts";

type FunctionName = "admit" | "control" | "work" | "sweep";

/** How long the engine waits until it looks whether a handler still does something, in simulated milliseconds. */
const SETTLE_MS = 10;
const FREEZES = [20_000, 200_000, 1_000_000] as const;

/** The functions of a deployment: each invocation is a process of its own. */
export class Functions {
  readonly #world: World;
  readonly #deployment: DeploymentConfig;
  readonly #agents: (process: Process) => readonly Agent[];
  readonly #failed: (process: Process, error: unknown) => void;
  /** The workers that have died, stood still or failed. */
  readonly #disturbed = new Set<Process>();
  readonly #workers: Process[] = [];
  readonly #counts: Record<FunctionName, number> = { admit: 0, control: 0, work: 0, sweep: 0 };

  /**
   * @param options.agents the agents as a process runs them
   * @param options.failed told of an invocation that has failed
   */
  constructor(options: {
    world: World;
    deployment: DeploymentConfig;
    agents: (process: Process) => readonly Agent[];
    failed: (process: Process, error: unknown) => void;
  }) {
    this.#world = options.world;
    this.#deployment = options.deployment;
    this.#agents = options.agents;
    this.#failed = options.failed;
    options.world.invoke = (queue, message) => {
      const take = { tasks: this.#admit, controls: this.#control, work: this.#work }[queue];
      this.#invoke(queue === "tasks" ? "admit" : queue === "controls" ? "control" : "work", (process) =>
        take(process, message).then(() => this.#delete(process, queue, message)),
      );
    };
  }

  /** How many workers have died, stood still or failed. */
  get disturbed(): number {
    return this.#workers.filter((process) => process.disturbed || this.#disturbed.has(process)).length;
  }

  /** `sweep`, as its schedule starts it. */
  sweep(): void {
    this.#invoke("sweep", async (process) => {
      const endsAt = process.clock.now() + FUNCTION_SIZES.sweep.timeoutSec * 1_000;
      await sweep(this.deps(process), endsAt - this.#world.timing.marginMs);
    });
  }

  /** What a function takes is deleted when it has succeeded; that may fail, too. */
  #delete(process: Process, queue: "tasks" | "controls" | "work", { id }: Received): void {
    if (process.dead) return;
    if (this.#world.scheduler.chance("lost")) return process.say(() => "is done, and its message stays");
    this.#world.queues[queue].delete(id);
  }

  #invoke(name: FunctionName, run: (process: Process) => Promise<void>): void {
    const { scheduler } = this.#world;
    const process = new Process(`${name}${++this.#counts[name]}`, scheduler);
    process.say(() => "begins");
    if (name === "work") this.#workers.push(process);
    const { timeoutSec } = FUNCTION_SIZES[name];
    const forget = scheduler.clock.timer(timeoutSec * 1_000, () => process.kill("its time is over"));
    const over = () => {
      forget();
      process.say(() => "is done");
      // A sandbox that has nothing to do is frozen, and what it has left under way goes on with it, or never.
      if (scheduler.chance("freeze")) process.freeze(scheduler.choices.of(...FREEZES));
    };
    run(process).then(over, (error: unknown) => {
      this.#disturbed.add(process);
      this.#failed(process, error);
      over();
    });
  }

  /** What each function is given. */
  deps(process: Process) {
    const world = this.#world;
    const { clock } = process;
    return {
      ...world.outside(process),
      deployment: this.#deployment,
      agents: this.#agents(process),
      telemetry: telemetryOf(process),
      timing: world.timing,
      clock,
      now: clock.now,
      settling: (fn: () => void) => clock.timer(SETTLE_MS, fn),
    };
  }

  #admit = async (process: Process, { body, receives }: Received): Promise<void> => {
    const deps = this.deps(process);
    const decided = async ({ subject }: { subject: string }) => {
      const parsed = parseSubject(subject);
      if (parsed?.kind !== "task") return false;
      return (await deps.store.head(taskIdOf(parsed.from, parsed.to, parsed.messageId))) !== undefined;
    };
    await this.#intake(deps, { body, receives }, (message) => admit(deps, message), decided);
  };

  #control = async (process: Process, { body, receives }: Received): Promise<void> => {
    const deps = this.deps(process);
    await this.#intake(
      deps,
      { body, receives },
      (message) => control(deps, message),
      async () => false,
    );
  };

  async #intake(
    deps: ReturnType<Functions["deps"]>,
    record: { readonly body: string; readonly receives: number },
    decide: (message: Delivery) => Promise<Verdict>,
    decided: (message: { subject: string }) => Promise<boolean>,
  ): Promise<void> {
    await intake({ ...deps, decide, decided }, { ...record, maxReceives: MAX_RECEIVES });
  }

  #work = async (process: Process, { body }: Received): Promise<void> => {
    const endsAt = process.clock.now() + FUNCTION_SIZES.work.timeoutSec * 1_000;
    await work(this.deps(process), workHint.parse(JSON.parse(body)), { endsAt });
  };
}

function telemetryOf(process: Process): Telemetry {
  const say = (message: string, fields?: Readonly<Record<string, unknown>>) =>
    process.say(() => `says: ${message}${reasonOf(fields)}`);
  return { debug: say, info: say, warn: say, error: say, count: () => {} };
}

function reasonOf({ errorName, errorMessage, reason, why }: Readonly<Record<string, unknown>> = {}): string {
  const said = [errorName, errorMessage, reason, why].filter((part) => part !== undefined);
  return said.length === 0 ? "" : ` (${said.join(": ")})`;
}

/** Whether an invocation may fail so: by what its parts did to it. */
export function isExpected(error: unknown): boolean {
  return error instanceof PoisonMessage || (error instanceof Error && TROUBLE.has(error.name));
}

/** What the parts throw in a history. */
const TROUBLE: ReadonlySet<string> = new Set([
  "TimeoutError",
  "QueueSendError",
  "SlowDown",
  "ProvisionedThroughputExceededException",
  "TransactionConflictException",
  "TransactionCanceledException",
]);
