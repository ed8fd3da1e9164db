import { setImmediate as turn, setTimeout as wait } from "node:timers/promises";
import { admit } from "../functions/admit/admit.ts";
import { control } from "../functions/control/control.ts";
import { sweep } from "../functions/sweep/sweep.ts";
import { work } from "../functions/work/work.ts";
import type { Agent } from "../shared/agents/index.ts";
import { type DeploymentConfig, parseDeployment } from "../shared/config/deployment.ts";
import { type Timing, timing } from "../shared/config/timing.ts";
import type { Delivery, Verdict } from "../shared/nats/delivery.ts";
import { MAX_RECEIVES, type WorkHint } from "../shared/tasks/messages.ts";
import type { Telemetry } from "../shared/telemetry/index.ts";
import { SimulatedClock } from "../shared/testing/clock.ts";
import { type MemoryStore, memoryStore } from "../shared/testing/memory-store.ts";
import { type MemoryValues, memoryValues } from "../shared/testing/memory-values.ts";
import { type RecordingPublisher, recordingPublisher } from "../shared/testing/recording-publisher.ts";
import { type ControlKind, controlMessage, taskIdOf, taskMessage } from "../shared/wire/index.ts";
import { type Fate, Process, type Write } from "./process.ts";
import { Watch } from "./watch.ts";

/** What one invocation of `work` may last (AWS Lambda, quotas: timeout). */
const INVOCATION_MS = 15 * 60_000;
/** When a message that was received and not deleted is received again; as infra/queues.ts declares it. */
const VISIBILITY_MS = 6 * INVOCATION_MS;
/** Nothing of the system that is simulated depends on the real date. */
const START = Date.UTC(2030, 0, 1);
const YEAR_SEC = 366 * 86_400;
/** When a control that was not taken is delivered again. */
const REDELIVERY_MS = 2_000;
/** Longer than the engine looks whether a handler still does something. */
const QUIET_MS = 15;
/** How long a handler may take in real time without getting anywhere. */
const PATIENCE_MS = 10_000;
/** The same while the clock is moved on purpose: then a handler that hangs may be what is tested. */
const SHORT_PATIENCE_MS = 250;

/** A line that the functions, or a handler's `step.log`, wrote. */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** What is simulated; everything has a default. */
export interface SimulationOptions {
  /** The agent's settings, as the operator would write them in `agents.yaml`. */
  readonly settings?: unknown;
  /** Fields of the agent's policy in `agents.yaml`. A task has a year unless its `timeoutSec` says otherwise. */
  readonly policy?: object;
  /** What the clock shows first. */
  readonly startsAt?: Date;
  /** Called at each write of a process: whether it dies there. */
  readonly fate?: (write: Write) => Fate;
}

/** What somebody asks of the agent. */
export interface Request {
  readonly skill: string;
  readonly a2a: unknown;
  readonly from: string;
  readonly timeoutSec?: number;
  readonly clientTaskRef?: string;
  readonly contextId?: string;
}

/**
 * The functions of a deployment, with one agent, over parts in memory and a clock that moves only when it is moved:
 * the same code as in the cloud, at the speed of memory. What has no part here: NATS, SQS and Lambda, whose promises
 * (hints may be late, a process ends after 15 minutes) are kept by this class.
 */
export class Simulation {
  readonly clock: SimulatedClock;
  readonly store: MemoryStore = memoryStore();
  readonly values: MemoryValues = memoryValues();
  readonly publisher: RecordingPublisher;
  readonly log: LogLine[] = [];
  readonly timing: Timing = timing();
  /** The agent's id on the wire. */
  readonly runtime: string;
  #agent: Agent;
  #deployment: DeploymentConfig;
  readonly #policy: object;
  readonly #telemetry: Telemetry;
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #invocations = new Map<Process, Watch>();
  readonly #fate: (write: Write) => Fate;
  #messages = 0;
  #lastSweep: number;
  /** Writes, and beginnings and ends of processes. */
  #happened = 0;
  /** What went wrong in an invocation that was not killed. */
  #failures: unknown[] = [];

  constructor(agent: Agent, options: SimulationOptions = {}) {
    const { settings = {}, policy = {}, startsAt, fate = () => undefined } = options;
    this.#agent = agent;
    this.#fate = (write) => {
      this.#happened++;
      return fate(write);
    };
    this.#deployment = deploymentOf(agent, settings, policy);
    this.#policy = policy;
    this.runtime = `test-${agent.id}`;
    this.clock = new SimulatedClock(startsAt?.getTime() ?? START);
    this.publisher = recordingPublisher({ values: this.values, now: this.clock.now });
    this.#lastSweep = this.clock.now();
    const note = (level: LogLine["level"]) => (message: string, fields?: LogLine["fields"]) =>
      void this.log.push({ level, message, ...(fields && { fields }) });
    const [debug, info, warn, error] = [note("debug"), note("info"), note("warn"), note("error")];
    this.#telemetry = { debug, info, warn, error, count: () => {} };
  }

  /** Hands a task to `admit`, as a peer's message would. */
  async admit(request: Request): Promise<{ readonly taskId: string; readonly messageId: string }> {
    const { skill, a2a, from, timeoutSec, clientTaskRef, contextId } = request;
    const messageId = `msg_${String(++this.#messages).padStart(24, "0")}`;
    const message = taskMessage({
      from,
      to: this.runtime,
      messageId,
      request: {
        a2a,
        channelRef: this.#agent.id,
        skillId: skill,
        delivery: timeoutSec === undefined ? {} : { timeoutSec },
        ...(clientTaskRef !== undefined && { clientTaskRef }),
        ...(contextId !== undefined && { contextId }),
      },
      createdAt: this.#createdAt(),
    });
    await admit({ ...this.#common(), ...this.#parts() }, this.#delivery(message));
    return { taskId: taskIdOf(from, this.runtime, messageId), messageId };
  }

  /** Hands a control of the task's sender to `control`; it is repeated while it is to be, or `control` dies. */
  async control(of: {
    readonly taskId: string;
    readonly from: string;
    readonly kind: ControlKind;
    readonly revision: number;
    readonly a2a?: unknown;
    readonly reason?: string;
  }): Promise<Verdict> {
    const message = controlMessage({ ...of, to: this.runtime, createdAt: this.#createdAt() });
    for (let deliveries = 1; ; deliveries++) {
      const process = new Process("control", this.clock, this.#fate);
      const tell = async (taskId: string) => this.#tell(taskId);
      const deps = { ...this.#common(process), ...this.#parts(process), tell };
      let verdict: Verdict | undefined;
      const taken = control(deps, { ...this.#delivery(message), deliveries }).then((of) => {
        verdict = of;
      });
      await Promise.race([taken, process.died, turn()]);
      while (verdict === undefined && !process.dead) await this.advance(REDELIVERY_MS);
      if (verdict !== undefined && !("nakMs" in verdict)) return verdict;
      await this.advance(REDELIVERY_MS);
    }
  }

  /**
   * Moves the clock from one thing that happens to the next, until something is so.
   *
   * @throws Error when nothing more will happen, or a handler does not get anywhere in real time
   */
  async until(what: string, done: () => boolean | Promise<boolean>): Promise<void> {
    for (;;) {
      await this.#settle(PATIENCE_MS);
      if (await done()) return;
      const busy = this.#busy();
      if (busy !== undefined)
        throw new Error(
          `${what}: not yet, for ${busy} since ${PATIENCE_MS / 1_000} s; simulated time stands still meanwhile, skip moves it on`,
        );
      const next = this.#next();
      if (next === undefined) throw new Error(`${what}: nothing more will happen`);
      this.#move(next);
    }
  }

  /** Moves the clock on by so many milliseconds, through everything that happens on the way. */
  async advance(ms: number): Promise<void> {
    const end = this.clock.now() + ms;
    await this.#settle(SHORT_PATIENCE_MS);
    for (let next = this.#next(); next !== undefined && next <= end; next = this.#next()) {
      this.#move(next);
      await this.#settle(SHORT_PATIENCE_MS);
    }
    this.clock.move(end);
    await this.#settle(SHORT_PATIENCE_MS);
  }

  /** Puts another version of the agent in place: for whoever claims a task from now on. */
  deploy(agent: Agent, settings: unknown): void {
    this.#agent = agent;
    this.#deployment = deploymentOf(agent, settings, this.#policy);
  }

  /** Ends all processes that work on tasks, as a machine that fails would. */
  kill(): void {
    for (const process of this.#invocations.keys()) process.kill();
  }

  #createdAt(): string {
    return new Date(this.clock.now()).toISOString();
  }

  #delivery({ subject, body }: { subject: string; body: string }): Delivery {
    return {
      stream: "",
      consumer: "",
      seq: 1,
      ackSubject: "",
      subject,
      headers: {},
      deliveries: 1,
      storedAt: this.clock.now(),
      body: Buffer.from(body),
    };
  }

  #parts(process?: Process) {
    const { store, values, publisher } = this;
    return process === undefined
      ? { store, values, publisher }
      : process.outside({ store, values, publisher });
  }

  /** What a function gets besides its parts. */
  #common(process?: Process) {
    const put = async (hint: WorkHint, delaySec: number) =>
      void this.clock.timer(delaySec * 1_000, () => void this.#invoke(hint));
    return {
      deployment: this.#deployment,
      telemetry: this.#telemetry,
      timing: this.timing,
      now: this.clock.now,
      clock: process?.clock ?? this.clock,
      hint: async (hint: WorkHint, delaySec = 0) => {
        if (process === undefined) return await put(hint, delaySec);
        await process.write({ kind: "hint", taskId: hint.taskId }, () => put(hint, delaySec));
      },
    };
  }

  /** A worker is given a hint; one that is taken and not done is given again, as SQS does. */
  async #invoke(hint: WorkHint, receives = 1): Promise<void> {
    const process = new Process("work", this.clock, this.#fate);
    const watch = new Watch();
    this.#invocations.set(process, watch);
    this.#happened++;
    const endsAt = this.clock.now() + INVOCATION_MS;
    const forget = this.clock.timer(INVOCATION_MS, () => process.kill());
    try {
      const agents = [watch.agent(this.#agent)];
      const listen = (taskId: string, told: () => void) => this.#listen(process, taskId, told);
      const deps = { ...this.#common(process), ...this.#parts(process), agents, listen };
      await Promise.race([work(deps, hint, { endsAt }), process.died]);
    } catch (error) {
      this.#failures.push(error);
    }
    forget();
    this.#invocations.delete(process);
    this.#happened += 1 + watch.changes;
    if (process.dead && receives < MAX_RECEIVES)
      this.clock.timer(VISIBILITY_MS, () => void this.#invoke(hint, receives + 1));
  }

  async #listen(process: Process, taskId: string, told: () => void): Promise<() => void> {
    const hear = () => {
      if (!process.dead) told();
    };
    const listeners = this.#listeners.get(taskId) ?? new Set();
    this.#listeners.set(taskId, listeners.add(hear));
    return () => void listeners.delete(hear);
  }

  #tell(taskId: string): void {
    for (const hear of this.#listeners.get(taskId) ?? []) hear();
  }

  /** When something happens next. `sweep` runs at the end of each of its periods, but only where that does anything. */
  #next(): number | undefined {
    const timer = this.clock.next();
    const sweep = this.#nextSweep();
    if (timer === undefined || sweep === undefined) return timer ?? sweep;
    return Math.min(timer, sweep);
  }

  #nextSweep(): number | undefined {
    const due = this.store.nextDue();
    if (due === undefined) return undefined;
    const period = this.timing.sweepPeriodMs;
    const periods = Math.max(1, Math.ceil((due - period - this.#lastSweep) / period));
    return this.#lastSweep + periods * period;
  }

  #move(to: number): void {
    const sweeps = to === this.#nextSweep();
    this.clock.move(to);
    if (!sweeps || this.clock.now() < to) return;
    this.#lastSweep = to;
    const process = new Process("sweep", this.clock, this.#fate);
    const deps = { ...this.#common(process), ...this.#parts(process) };
    sweep(deps, to + this.timing.sweepPeriodMs).catch((error: unknown) => this.#failures.push(error));
  }

  /** What a handler does in real time, in words. */
  #busy(): string | undefined {
    for (const [process, watch] of this.#invocations)
      if (!process.dead && watch.busy !== undefined) return watch.busy;
    return undefined;
  }

  /**
   * Lets everything happen that needs no more of the clock. What handlers do in real time gets real time, and so does
   * the engine, which looks a while whether a handler whose steps all wait does anything else.
   */
  async #settle(patienceMs: number): Promise<void> {
    let end = performance.now() + patienceMs;
    for (;;) {
      await turn();
      const before = this.#activity();
      if (this.clock.next() === this.clock.now()) this.clock.move(this.clock.now());
      else if (this.#invocations.size === 0) break;
      else if (this.#busy() === undefined) {
        await wait(QUIET_MS);
        if (this.#activity() === before) break;
      } else {
        await wait(1);
        if (this.#activity() !== before) end = performance.now() + patienceMs;
        else if (performance.now() > end) break;
      }
    }
    const [failure] = this.#failures.splice(0);
    if (failure !== undefined) throw failure;
  }

  /** Grows with whatever happens. */
  #activity(): number {
    let sum = this.#happened;
    for (const watch of this.#invocations.values()) sum += watch.changes;
    return sum;
  }
}

function deploymentOf(agent: Agent, settings: unknown, policy: object): DeploymentConfig {
  const { id, description, version } = agent;
  const skills = Object.entries(agent.skills).map(([slug, { name, description, tags }]) => ({
    slug,
    name,
    description,
    tags: [...tags],
  }));
  const limits = { timeoutSec: { default: YEAR_SEC, max: YEAR_SEC }, acceptFromRuntimes: ["*"] };
  return parseDeployment({
    deployment: "test",
    agents: [
      {
        id,
        runtime: `test-${id}`,
        channelRef: id,
        displayName: id,
        description,
        version,
        skills,
        policy: { ...limits, ...policy },
        settings,
      },
    ],
  });
}
