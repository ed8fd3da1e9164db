import { setImmediate as turn, setTimeout as wait } from "node:timers/promises";
import { admit } from "../functions/admit/admit.ts";
import { Backlog } from "../functions/admit/backlog.ts";
import { type ControlDeps, control } from "../functions/control/control.ts";
import { type EventsDeps, events } from "../functions/events/events.ts";
import { sweep } from "../functions/sweep/sweep.ts";
import type { Agent } from "../shared/agents/index.ts";
import type { DeploymentConfig } from "../shared/config/deployment.ts";
import { type Timing, timing } from "../shared/config/timing.ts";
import {
  type Answered,
  answerAsOperator,
  type Verdict as OperatorVerdict,
} from "../shared/events/operator-answer.ts";
import type { Delivery, Verdict } from "../shared/nats/delivery.ts";
import type { Choosing } from "../shared/policy/choosing/choosing.ts";
import type { Head } from "../shared/tasks/items.ts";
import { hintOf, MAX_RECEIVES, type WorkHint } from "../shared/tasks/messages.ts";
import type { Telemetry } from "../shared/telemetry/index.ts";
import { SimulatedClock } from "../shared/testing/clock.ts";
import { filePolicies } from "../shared/testing/file-policies.ts";
import { memoryChoosing } from "../shared/testing/memory-choosing.ts";
import { neverPaused } from "../shared/testing/memory-pauses.ts";
import { type MemoryStore, memoryStore } from "../shared/testing/memory-store.ts";
import { type MemoryValues, memoryValues } from "../shared/testing/memory-values.ts";
import { noQuota } from "../shared/testing/no-quota.ts";
import { type RecordingMessenger, recordingMessenger } from "../shared/testing/recording-messenger.ts";
import { type RecordingPublisher, recordingPublisher } from "../shared/testing/recording-publisher.ts";
import { type ControlKind, controlMessage, taskIdOf, taskMessage } from "../shared/wire/index.ts";
import { deploymentOf, TEST_DEPLOYMENT } from "./deployment.ts";
import type { LogLine, Request, SimulationOptions, Trouble } from "./options.ts";
import { type Fate, Process, type Write } from "./process.ts";
import { Workers } from "./workers.ts";

/** What one invocation of `work` may last (AWS Lambda, quotas: timeout). */
const INVOCATION_MS = 15 * 60_000;
/** When a message that was received and not deleted is received again; as infra/queues.ts declares it. */
const VISIBILITY_MS = 6 * INVOCATION_MS;
/** Nothing of the system that is simulated depends on the real date. */
const START = Date.UTC(2030, 0, 1);
/** When a control that was not taken is delivered again. */
const REDELIVERY_MS = 2_000;
/** Longer than the engine looks whether a handler still does something. */
const QUIET_MS = 15;
const PATIENCE_MS = 10_000;
/** The patience while the clock is moved on purpose: then a handler that hangs may be what is tested. */
const SHORT_PATIENCE_MS = 250;

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
  readonly messenger: RecordingMessenger;
  readonly log: LogLine[] = [];
  readonly timing: Timing = timing();
  /** The agent's id on the wire. */
  readonly runtime: string;
  #agent: Agent;
  #deployment: DeploymentConfig;
  #policy: object;
  /** What no version of the agent changes. */
  readonly #around: Required<Pick<SimulationOptions, "deployment" | "neighbours">> &
    Pick<SimulationOptions, "choosing"> & { readonly remote: boolean };
  readonly #tellRemote: Trouble["tellRemote"];
  readonly #telemetry: Telemetry;
  readonly #choosing: Choosing;
  readonly #workers = new Workers();
  readonly #backlog = new Backlog();
  readonly #fate: (write: Write) => Fate;
  readonly #patienceMs: number;
  readonly #skewMs: NonNullable<Trouble["skewMs"]>;
  readonly #copies: () => readonly number[];
  #messages = 0;
  #lastSweep: number;
  /** How far the handlers were when they got nowhere for a while. */
  #hung: number | undefined;
  #writes = 0;
  /** What went wrong in an invocation that was not killed. */
  #failures: unknown[] = [];

  constructor(agent: Agent, options: SimulationOptions = {}) {
    const { settings = {}, policy = {}, startsAt, patienceMs = PATIENCE_MS } = options;
    const { deployment = TEST_DEPLOYMENT, neighbours = [], choosing } = options;
    const { fate = () => undefined, skewMs = {}, copies = () => [0], tellRemote } = options;
    this.#agent = agent;
    this.#patienceMs = patienceMs;
    this.#skewMs = skewMs;
    this.#copies = copies;
    this.#fate = (write) => {
      this.#writes++;
      return fate(write);
    };
    this.#tellRemote = tellRemote;
    this.#around = { deployment, neighbours, choosing, remote: tellRemote !== undefined };
    this.#deployment = deploymentOf(agent, { settings, policy, ...this.#around });
    this.#policy = policy;
    this.runtime = `${deployment}-${agent.id}`;
    this.clock = new SimulatedClock(startsAt?.getTime() ?? START);
    this.publisher = recordingPublisher({ values: this.values, now: this.clock.now });
    this.messenger = recordingMessenger({ now: this.clock.now });
    this.#lastSweep = this.clock.now();
    const note = (level: LogLine["level"]) => (message: string, fields?: LogLine["fields"]) =>
      void this.log.push({ level, message, ...(fields && { fields }) });
    const [debug, info, warn, error] = [note("debug"), note("info"), note("warn"), note("error")];
    this.#telemetry = { debug, info, warn, error, count: () => {}, measure: () => {} };
    this.#choosing = memoryChoosing({
      deployment: this.#deployment,
      now: this.clock.now,
      telemetry: this.#telemetry,
    });
  }

  /** Hands a task to `admit`, as a peer's message would. */
  async admit(request: Request): Promise<{ readonly taskId: string; readonly messageId: string }> {
    const { skill, a2a, from, timeoutSec, depth = 1, clientTaskRef, contextId } = request;
    const messageId = `msg_${String(++this.#messages).padStart(24, "0")}`;
    const message = taskMessage({
      from,
      to: this.runtime,
      messageId,
      request: {
        a2a,
        channelRef: this.#agent.id,
        skillId: skill,
        delivery: { maxDelegationDepth: depth, ...(timeoutSec !== undefined && { timeoutSec }) },
        ...(clientTaskRef !== undefined && { clientTaskRef }),
        ...(contextId !== undefined && { contextId }),
      },
      createdAt: this.createdAt(),
    });
    await admit({ ...this.#common(), ...this.#parts(), backlog: this.#backlog }, this.#delivery(message));
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
    const message = controlMessage({ ...of, to: this.runtime, createdAt: this.createdAt() });
    return await this.#deliver("control", message, control);
  }

  /** Gives the operator's answer to what only the operator may approve, as `sluice approve` does. */
  operator(taskId: string, verdict: OperatorVerdict): Promise<Answered> {
    const { hint, now } = this.#common();
    const deps = { store: this.store, values: this.values, now, hint: (head: Head) => hint(hintOf(head)) };
    return answerAsOperator(deps, taskId, verdict);
  }

  /** Hands an event of a task that the agent has handed on to `events`; it is repeated like a control. */
  async event(message: { readonly subject: string; readonly body: string }): Promise<Verdict> {
    return await this.#deliver("events", message, events);
  }

  /** What JetStream, SQS and Lambda do with a message, until it is acknowledged or terminated. */
  async #deliver(
    by: "control" | "events",
    message: { readonly subject: string; readonly body: string },
    take: (deps: ControlDeps & EventsDeps, message: Delivery) => Promise<Verdict>,
  ): Promise<Verdict> {
    const delivery = this.#delivery(message);
    for (let deliveries = 1; ; deliveries++) {
      const process = this.#process(by);
      const tell = async (taskId: string) => this.#workers.tell(taskId);
      const deps = { ...this.#common(process), ...this.#parts(process), tell };
      let verdict: Verdict | undefined;
      take(deps, { ...delivery, deliveries }).then(
        (of) => {
          verdict = of;
        },
        (error: unknown) => this.#failures.push(error),
      );
      await turn();
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
      await this.#settle(this.#patienceMs);
      if (await done()) return;
      const busy = this.#workers.busy;
      if (busy !== undefined)
        throw new Error(
          `${what}: not yet, for ${busy} since ${this.#patienceMs / 1_000} s; simulated time stands still meanwhile, skip moves it on`,
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
  deploy(agent: Agent, settings: unknown, policy: object = this.#policy): void {
    this.#agent = agent;
    this.#policy = policy;
    this.#deployment = deploymentOf(agent, { settings, policy, ...this.#around });
  }

  /** Ends all processes that work on tasks, as a machine that fails would. */
  kill(): void {
    this.#workers.kill();
  }

  /** The time as messages carry it. */
  createdAt(): string {
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
    const { store, values, publisher, messenger } = this;
    const parts = { store, values, publisher, messenger };
    return process === undefined ? parts : process.outside(parts);
  }

  #process(by: Write["by"]): Process {
    const skewMs = this.#skewMs[by] ?? 0;
    const { now, timer } = this.clock;
    return new Process(by, { now: () => now() + skewMs, timer }, this.#fate);
  }

  /** What a function gets besides its parts. */
  #common(process?: Process) {
    const put = async (hint: WorkHint, delaySec: number) => {
      for (const late of this.#copies())
        this.clock.timer(delaySec * 1_000 + late, () => void this.#invoke(hint));
    };
    return {
      deployment: this.#deployment,
      telemetry: this.#telemetry,
      timing: this.timing,
      pauses: neverPaused,
      policies: filePolicies(this.#deployment),
      choosing: async () => this.#choosing,
      outcomes: async () => this.#choosing,
      quota: noQuota,
      now: process?.clock.now ?? this.clock.now,
      clock: process?.clock ?? this.clock,
      hint: async (hint: WorkHint, delaySec = 0) => {
        if (process === undefined) return await put(hint, delaySec);
        await process.write({ kind: "hint", taskId: hint.taskId }, () => put(hint, delaySec));
      },
    };
  }

  /** A worker is given a hint; one that is taken and not done is given again, as SQS does. */
  async #invoke(hint: WorkHint, receives = 1): Promise<void> {
    const process = this.#process("work");
    const endsAt = process.clock.now() + INVOCATION_MS;
    const forget = this.clock.timer(INVOCATION_MS, () => process.kill());
    const tellRemote = this.#tellRemote;
    const deps = { ...this.#common(process), ...this.#parts(process), tellRemote };
    await this.#workers
      .run(process, deps, { agent: this.#agent, hint, endsAt })
      .catch((error: unknown) => this.#failures.push(error));
    forget();
    if (process.dead && receives < MAX_RECEIVES)
      this.clock.timer(VISIBILITY_MS, () => void this.#invoke(hint, receives + 1));
  }

  /** When something happens next. `sweep` runs at the end of each of its periods, but only where that does anything. */
  #next(): number | undefined {
    const timer = this.clock.next();
    const sweep = this.#nextSweep();
    if (timer === undefined || sweep === undefined) return timer ?? sweep;
    return Math.min(timer, sweep);
  }

  #nextSweep(): number | undefined {
    const period = this.timing.sweepPeriodMs;
    // Each sweep looks whether a slot can be handed on.
    if (this.store.line(this.runtime).length > 0) return this.#lastSweep + period;
    const due = this.store.nextDue();
    if (due === undefined) return undefined;
    const seen = due - period - (this.#skewMs.sweep ?? 0);
    const periods = Math.max(1, Math.ceil((seen - this.#lastSweep) / period));
    return this.#lastSweep + periods * period;
  }

  #move(to: number): void {
    const sweeps = to === this.#nextSweep();
    this.clock.move(to);
    if (!sweeps || this.clock.now() < to) return;
    this.#lastSweep = to;
    const process = this.#process("sweep");
    const deps = { ...this.#common(process), ...this.#parts(process) };
    sweep(deps, process.clock.now() + this.timing.sweepPeriodMs).catch((error: unknown) =>
      this.#failures.push(error),
    );
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
      else if (this.#workers.none) break;
      else if (this.#workers.busy === undefined) {
        await wait(QUIET_MS);
        if (this.#activity() === before) break;
      } else {
        // A handler that has got nowhere before is not waited for again.
        if (patienceMs === SHORT_PATIENCE_MS && this.#hung === this.#workers.changes) break;
        await wait(1);
        if (this.#activity() !== before) end = performance.now() + patienceMs;
        else if (performance.now() > end) {
          this.#hung = this.#workers.changes;
          break;
        }
      }
    }
    const [failure] = this.#failures.splice(0);
    if (failure !== undefined) throw failure;
  }

  /** Grows with whatever happens. */
  #activity(): number {
    return this.#writes + this.#workers.changes;
  }
}
