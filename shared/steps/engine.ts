import type { Step } from "../agents/types.ts";
import type { HostedAgent } from "../config/deployment.ts";
import type { AgentPolicy } from "../config/policy.ts";
import { ClaimLost, TaskEnded } from "../events/journal.ts";
import type { Messenger } from "../events/messenger.ts";
import type { Addressee, Choosing } from "../policy/choosing/choosing.ts";
import { listed } from "../policy/listed.ts";
import type { Clock } from "../tasks/clock.ts";
import { deadlineOf, lifeEnd, type View } from "../tasks/fold.ts";
import type { Head, StoredStep } from "../tasks/items.ts";
import type { Values } from "../tasks/values.ts";
import type { LogFields } from "../telemetry/fields.ts";
import type { Telemetry } from "../telemetry/index.ts";
import type { ArtifactRef } from "../wire/index.ts";
import { Alarm } from "./alarm.ts";
import { Artifacts } from "./artifacts.ts";
import { durable } from "./durable.ts";
import { isA, StepClosedError, StepNameError, StepNestedError, StoreError } from "./errors.ts";
import { describeError, reviveError } from "./failures.ts";
import { inside } from "./inside.ts";
import { fromJson } from "./json.ts";
import { Lot, type Settling } from "./lot.ts";
import type { Names } from "./names.ts";
import { Scope } from "./scope.ts";
import { progressOf, type StatusLine } from "./status.ts";
import type { Writer } from "./writer.ts";

/** Why a run of a handler is over before the handler is. */
export type Halt =
  | { readonly kind: "ended" }
  | { readonly kind: "lost" }
  /** All that is open waits, at the longest until then; without a time only for what others bring. */
  | { readonly kind: "suspended"; readonly until?: number | undefined }
  | { readonly kind: "deadline" }
  /** The handler has waited for a whole invocation, and not for a step. */
  | { readonly kind: "stuck" }
  /** The handler has left an error to nobody. */
  | { readonly kind: "threw"; readonly error: unknown }
  | { readonly kind: "broken"; readonly error: unknown };

/** How a step came out, and when that was stored: its branch's time from then on. */
export type Done =
  | { readonly at: number; readonly value: unknown }
  | { readonly at: number; readonly error: Error };

export type StepKind = StoredStep["kind"];

/** A step that takes longer has a line in the log, in milliseconds. */
const SLOW_STEP_MS = 5_000;

/** A promise that never settles: a handler that has lost its task simply goes no further. */
const never = () => new Promise<never>(() => {});

/** How an agent hands tasks on. */
export interface Delegating {
  readonly messenger: Messenger;
  /** To whom it may, and what it may fetch of what comes of it: as it is now. */
  readonly policy: () => Promise<Pick<AgentPolicy, "delegateTargets" | "delegateMedia">>;
  /** The agents of our own deployment: their channelRefs are known. */
  readonly agents: readonly Pick<HostedAgent, "runtime" | "channelRef">[];
  /** Of the task, which what is handed on shares. */
  readonly contextId?: string | undefined;
  /** How often the task was handed on before it came here. */
  readonly hops: number;
  /** Chooses who gets it; loaded when something is handed on. */
  readonly choosing: () => Promise<Pick<Choosing, "choose" | "note">>;
}

/** What a run of a handler needs. */
export interface EngineOptions {
  readonly head: Head;
  /** What the journal says; whoever folds an entry into it calls {@link Engine.news}. */
  readonly view: View;
  readonly writer: Writer;
  readonly values: Values;
  readonly status: StatusLine;
  readonly delegating: Delegating;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  /** When the invocation's time is nearly over, in milliseconds since 1970. */
  readonly limit: number;
  /** How the engine waits until it looks whether a handler still does something; by the machine's time unless said. */
  readonly settling?: Settling | undefined;
  /** Publishes what is stored. True when all of it is known to be on its stream. */
  readonly published: () => Promise<boolean>;
  /** Called before each new step. */
  readonly before?: (step: string) => Promise<void>;
}

/**
 * One run of one handler. What is stored is returned, what is new is run and stored before its promise resolves, and
 * what waits is parked; what each kind of step does is in `kinds/`. When the task is taken away, or all of it waits,
 * calls never resolve and {@link Engine.halted} tells why.
 */
export class Engine {
  readonly head: Head;
  readonly taskId: string;
  readonly view: View;
  readonly writer: Writer;
  readonly values: Values;
  readonly delegating: Delegating;
  readonly clock: Clock;
  readonly limit: number;
  readonly startedAt: number;
  /** The last time at which the task may live, in milliseconds since 1970. */
  readonly lifeEnd: number;
  /** Publishes what is stored. True when all of it is known to be on its stream. */
  readonly published: () => Promise<boolean>;
  readonly artifacts = new Artifacts();
  readonly lot: Lot;
  /** The questions that are put and whose answers are not read: only one may be open. */
  readonly asked = new Set<string>();
  readonly #status: StatusLine;
  readonly #telemetry: Telemetry;
  readonly #before: (step: string) => Promise<void>;
  readonly #abort = new AbortController();
  readonly #halted = Promise.withResolvers<Halt>();
  /** The identities of all steps so far. */
  readonly #ids = new Set<string>();
  readonly #scopes = new Map<string, Scope>();
  readonly #deadline: Alarm;
  readonly #timeUp: Alarm;
  /** How many steps the handler has to go through again. */
  readonly #known: number;
  #replayed = 0;
  #news = false;
  #closed = false;

  constructor(options: EngineOptions) {
    this.head = options.head;
    this.taskId = options.head.taskId;
    this.lifeEnd = lifeEnd(options.head);
    this.view = options.view;
    this.writer = options.writer;
    this.values = options.values;
    this.delegating = options.delegating;
    this.clock = options.clock;
    this.limit = options.limit;
    this.published = options.published;
    this.startedAt = options.clock.now();
    this.#status = options.status;
    this.#telemetry = options.telemetry;
    this.#before = options.before ?? (async () => {});
    this.#known = this.view.steps.size + this.view.open.size;
    const { clock, limit } = this;
    this.lot = new Lot({ clock, limit, settling: options.settling, idle: (until) => this.#idle(until) });
    this.#deadline = new Alarm(clock, () => this.halt({ kind: "deadline" }));
    this.#deadline.set(deadlineOf(this.head, this.view));
    this.#timeUp = new Alarm(clock, () => this.lot.close());
    this.#timeUp.set(limit);
  }

  /** The steps of the task itself, outside all branches. */
  get step(): Step {
    return this.scope("", this.head.decidedAt);
  }

  /** The steps of a branch, the same whenever it is asked for. */
  scope(path: string, since: number): Scope {
    let scope = this.#scopes.get(path);
    if (scope === undefined) {
      scope = new Scope({ engine: this, path, since, taken: this.#ids });
      this.#scopes.set(path, scope);
    }
    return scope;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Whether the run is over: what comes now reaches no step. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Resolves when the run is to stop before its handler has. */
  get halted(): Promise<Halt> {
    return this.#halted.promise;
  }

  /** Whether any step waits for what others bring. */
  get listening(): boolean {
    return this.lot.watching || this.asked.size > 0;
  }

  /** Whether the handler has called this step in this run. */
  called(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Stops the run: the signal fires, and no step goes on. */
  halt(halt: Halt): void {
    this.#stop();
    this.#halted.resolve(halt);
    this.#abort.abort(new Error(`the task is over for this worker: ${halt.kind}`));
  }

  /** The handler has returned: nobody waits for what still waits. */
  returned(): void {
    this.#news = true;
    this.lot.forget();
  }

  /** The run is over; a step that it calls now is a mistake. */
  close(): void {
    this.#stop();
    this.#status.close();
  }

  #stop(): void {
    this.#closed = true;
    this.#deadline.set(Number.POSITIVE_INFINITY);
    this.#timeUp.set(Number.POSITIVE_INFINITY);
    this.lot.stop();
  }

  /** The view has changed. */
  news(): void {
    if (this.#closed) return;
    this.#deadline.set(deadlineOf(this.head, this.view));
    this.lot.poke();
  }

  #idle(until: number | undefined): void {
    const now = this.clock.now();
    const empty = until === undefined && now >= this.limit && !this.lot.watching;
    if (!empty) this.halt({ kind: "suspended", until });
    else if (this.#news) this.halt({ kind: "suspended", until: now });
    else this.halt({ kind: "stuck" });
  }

  /**
   * One call of a step: its identity, what is stored of it, and else what its kind does.
   *
   * @throws what the handler is to see: mistakes of its author, and nothing that is the task's own fate
   */
  async call(
    names: Names,
    name: string,
    kind: StepKind,
    perform: (id: string) => Promise<Done>,
  ): Promise<Done> {
    const id = this.#enter(names, name);
    this.lot.enter();
    try {
      const stored = this.view.steps.get(id);
      const known = stored ?? this.view.open.get(id);
      if (known !== undefined) {
        this.#replayed++;
        if (known.kind !== kind)
          throw new StepNameError(
            `step ${JSON.stringify(id)}: expected the kind that is stored under this name (${known.kind}), got ${kind}`,
          );
      }
      const done = stored === undefined ? await perform(id) : await this.#replay(stored, names.path(name));
      return this.#closed ? await never() : done;
    } catch (error) {
      return await this.#failed(id, error);
    } finally {
      names.leave(id);
      this.lot.leave();
    }
  }

  /** @param path the name that the step shares with those of other numbers */
  async #replay(stored: StoredStep & { readonly at: number }, path: string): Promise<Done> {
    const { at } = stored;
    if (stored.error !== undefined) return { at, error: reviveError(stored.error) };
    const value = fromJson(await durable(this.values.text(stored.value)));
    if (stored.kind === "artifact") this.artifacts.give(value as ArtifactRef, path); // Written by `artifactStep`.
    return { at, value };
  }

  /** To be awaited before anything new: it does not resolve in this run when there is no time for it. */
  async begin(id: string): Promise<void> {
    this.#news = true;
    if (this.clock.now() >= this.limit) {
      await this.lot.park({ until: this.clock.now(), elsewhere: true });
      return never();
    }
    await this.#before(id);
    await this.still();
  }

  /** The handler is told something new: what it says of it is no repetition. */
  told(): void {
    this.#news = true;
  }

  /** Resolves only while the run goes on. */
  async still(): Promise<void> {
    if (this.#closed) await never();
  }

  status(text: string, data?: unknown): void {
    const progress = progressOf(text, data);
    if (this.#closed || this.#replaying) return;
    this.#status.set(progress);
  }

  log(message: string, fields?: Readonly<Record<string, unknown>>): void {
    if (this.#replaying) return;
    try {
      this.#telemetry.info(message, { ...fields, taskId: this.taskId });
    } catch {
      // A field that throws when it is looked at: no log line is worth a task.
    }
  }

  /** Tells whom a step has chosen, and of each that it was not why (docs/choosing.md). */
  chose(step: string, { to: executor, why, passedOver }: Pick<Addressee, "to" | "why" | "passedOver">): void {
    const others = passedOver.map(({ agent, reasons }) => `${agent}: ${reasons.join(" and ")}`);
    const { taskId, to } = this.head;
    this.#telemetry.info("an agent is chosen", {
      taskId,
      to,
      step,
      executor,
      why,
      passedOver: listed(others),
    });
  }

  /** Counts a question that was put. */
  countQuestion(): void {
    this.#telemetry.count("QuestionsAsked", 1, { runtime: this.head.to });
  }

  /**
   * Notes what a `run` step has taken.
   *
   * @param ms from its first attempt to its result, in milliseconds
   */
  measureStep(step: string, ms: number, attempts: number): void {
    const { taskId, to: runtime } = this.head;
    this.#telemetry.measure("StepDuration", ms, { runtime });
    if (ms >= SLOW_STEP_MS)
      this.#telemetry.info("a step took long", { taskId, to: runtime, step, ms, attempts });
    if (attempts > 1) this.#telemetry.count("StepsRetried", attempts - 1, { runtime });
  }

  warn(message: string, fields: LogFields): void {
    this.#telemetry.warn(message, { ...fields, taskId: this.taskId });
  }

  /** Whether the handler still goes through what is stored, and so tells nothing new. */
  get #replaying(): boolean {
    return !this.#news && this.#replayed < this.#known;
  }

  /** What the task's own end or loss does is no error of the handler's. */
  async #failed(step: string, error: unknown): Promise<never> {
    if (isA(error, TaskEnded)) this.halt({ kind: "ended" });
    else if (isA(error, ClaimLost)) this.halt({ kind: "lost" });
    else if (isA(error, StoreError)) this.halt({ kind: "broken", error: error.cause });
    else if (!this.signal.aborted) {
      // Its message is the handler's, and may hold what a peer has sent: the requester reads it, logs do not.
      this.warn("a step has failed", { step, errorName: describeError(error).name });
      throw error;
    }
    return never();
  }

  #enter(names: Names, name: string): string {
    const within = inside.getStore();
    if (within !== undefined) throw new StepNestedError(name, within.id);
    if (this.#closed && !this.signal.aborted) throw new StepClosedError(name);
    return names.enter(name);
  }
}
