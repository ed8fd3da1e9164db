import { admit } from "../../functions/admit/admit.ts";
import { Backlog } from "../../functions/admit/backlog.ts";
import { control } from "../../functions/control/control.ts";
import { events } from "../../functions/events/events.ts";
import { sweep } from "../../functions/sweep/sweep.ts";
import { runTask } from "../../functions/work/run.ts";
import { work } from "../../functions/work/work.ts";
import { FUNCTION_SIZES } from "../../infra/sizes.ts";
import type { Agent } from "../../shared/agents/index.ts";
import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import type { Delivery, Verdict } from "../../shared/nats/delivery.ts";
import { intake, PoisonMessage } from "../../shared/nats/intake.ts";
import { MAX_RECEIVES, workHint } from "../../shared/tasks/messages.ts";
import type { Telemetry } from "../../shared/telemetry/index.ts";
import { filePolicies } from "../../shared/testing/file-policies.ts";
import { memoryChoosing } from "../../shared/testing/memory-choosing.ts";
import { neverPaused } from "../../shared/testing/memory-pauses.ts";
import { noQuota } from "../../shared/testing/no-quota.ts";
import { parseSubject, taskIdOf } from "../../shared/wire/index.ts";
import { outside } from "./outside.ts";
import type { Received } from "./parts/queue.ts";
import { Process } from "./process.ts";
import type { World } from "./world.ts";

type FunctionName = "admit" | "control" | "events" | "work" | "sweep";
/** Which function takes what from a queue. */
const TAKERS = { tasks: "admit", controls: "control", events: "events", work: "work" } as const;

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
  readonly #counts: Record<FunctionName, number> = { admit: 0, control: 0, events: 0, work: 0, sweep: 0 };

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
    options.world.invoke = (queue, message) => this.#take(queue, message);
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

  #take(queue: keyof typeof TAKERS, message: Received): void {
    const taker = TAKERS[queue];
    this.#invoke(taker, async (process) => {
      if (taker === "work") await this.#work(process, message);
      else await this.#intake(taker, process, message);
      this.#delete(process, queue, message);
    });
  }

  /** What a function takes is deleted when it has succeeded; that may fail, too. */
  #delete(process: Process, queue: keyof typeof TAKERS, { id }: Received): void {
    if (process.dead) return;
    if (this.#world.scheduler.chance("lost")) {
      process.say(() => "is done, and its message stays");
      return;
    }
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
    const telemetry = telemetryOf(process);
    const choosing = memoryChoosing({ deployment: this.#deployment, now: clock.now, telemetry });
    return {
      ...outside(world, process),
      deployment: this.#deployment,
      agents: this.#agents(process).map((agent) => ({ id: agent.id, load: async () => agent })),
      // Each invocation is a sandbox of its own here.
      backlog: new Backlog(),
      pauses: neverPaused,
      policies: filePolicies(this.#deployment),
      choosing: async () => choosing,
      outcomes: async () => choosing,
      quota: noQuota,
      runner: async () => runTask,
      telemetry,
      timing: world.timing,
      clock,
      now: clock.now,
      settling: (fn: () => void) => clock.timer(SETTLE_MS, fn),
    };
  }

  async #intake(
    taker: "admit" | "control" | "events",
    process: Process,
    { body, receives }: Received,
  ): Promise<void> {
    const deps = this.deps(process);
    const decide = (message: Delivery): Promise<Verdict> => {
      if (taker === "admit") return admit(deps, message);
      return taker === "control" ? control(deps, message) : events(deps, message);
    };
    const decided = async ({ subject }: { subject: string }) => {
      const parsed = parseSubject(subject);
      if (parsed?.kind !== "task") return false;
      return (await deps.store.head(taskIdOf(parsed.from, parsed.to, parsed.messageId))) !== undefined;
    };
    await intake({ ...deps, decide, decided }, { body, receives, maxReceives: MAX_RECEIVES });
  }

  async #work(process: Process, { body }: Received): Promise<void> {
    const endsAt = process.clock.now() + FUNCTION_SIZES.work.timeoutSec * 1_000;
    await work(this.deps(process), workHint().parse(JSON.parse(body)), { endsAt });
  }
}

function telemetryOf(process: Process): Telemetry {
  const say = (message: string, fields?: Readonly<Record<string, unknown>>) =>
    process.say(() => `says: ${message}${reasonOf(fields)}`);
  return { debug: say, info: say, warn: say, error: say, count: () => {}, measure: () => {} };
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
