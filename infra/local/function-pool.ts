import { randomUUID } from "node:crypto";
import { availableParallelism } from "node:os";
import type { Limiter } from "./limiter.ts";
import type { Processors } from "./processors.ts";
import type { InvocationResult } from "./runtime-api.ts";
import { Sandbox, type SandboxOptions } from "./sandbox.ts";

/** How long a sandbox may be idle before it is ended. */
const IDLE_MS = 5 * 60_000;
/** AWS Lambda quotas: an account's concurrent executions, the bound of a function that reserves none. */
const ACCOUNT_CONCURRENCY = 1_000;
/** Sandboxes that are started without a look at the processors: two for each, for one waits while the other computes. */
const AT_ONCE = 2 * availableParallelism();
/** Beyond those, how long none may have come free before another starts, in milliseconds. */
const PATIENCE_MS = { withRoom: 250, busy: 2_000 };
/** How often it is looked whether another may start, in milliseconds. */
const LOOK_MS = 100;

export interface FunctionPoolOptions extends SandboxOptions {
  /** How many sandboxes of the whole host may start at once: starting is what a processor has to do. */
  readonly starts: Limiter;
  readonly processors: Pick<Processors, "haveRoom">;
  readonly onChange: () => void;
  /** Told how many invocations run, with each that begins. */
  readonly onConcurrency?: (running: number) => void;
  /** Told of each invocation that has to wait because as many run as may. */
  readonly onThrottle?: () => void;
}

interface Job {
  readonly payload: string;
  /** When it came, by `performance.now()`. */
  readonly since: number;
  readonly done: (result: InvocationResult) => void;
}

/**
 * The sandboxes of one function: warm ones are used again, new ones started while more invocations wait. On one machine
 * more of them do not do more once its processors are busy: each must first warm up its own code, and with fifty of them
 * a task took four times as much to compute as with three (docs/benchmarks.md). So beyond a few another starts only
 * when none has come free for a while, and for longer when there is no room: as long as they do, whoever waits has its
 * turn soon.
 */
export class FunctionPool {
  readonly #options: FunctionPoolOptions;
  readonly #limit: number;
  readonly #sandboxes = new Set<Sandbox>();
  readonly #idle = new Map<Sandbox, NodeJS.Timeout>();
  readonly #waiting: Job[] = [];
  /** Sandboxes asked for and not yet ready, and all that count against the limit. */
  #starting = 0;
  #total = 0;
  /** When an invocation last began, by `performance.now()`. */
  #begunAt = 0;
  #looking: NodeJS.Timeout | undefined;
  #stopped = false;
  #running = 0;

  constructor(options: FunctionPoolOptions) {
    this.#options = options;
    this.#limit = options.declaration.reservedConcurrency ?? ACCOUNT_CONCURRENCY;
  }

  get name(): string {
    return this.#options.declaration.name;
  }

  /** The processes that run the function now. */
  get pids(): number[] {
    return [...this.#sandboxes].flatMap((sandbox) => sandbox.pid ?? []);
  }

  /** Runs the function once, when its concurrency allows; never rejects. */
  invoke(payload: string): Promise<InvocationResult> {
    if (this.#stopped) return Promise.resolve(STOPPED);
    return new Promise((done) => {
      this.#waiting.push({ payload, since: performance.now(), done });
      this.#pump();
      // In Lambda it would not wait but be refused, and come again.
      if (this.#total >= this.#limit && this.#waiting.length > this.#starting) this.#options.onThrottle?.();
    });
  }

  /** Ends every sandbox; what runs or waits fails. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#looking);
    for (const { done } of this.#waiting.splice(0)) done(STOPPED);
    for (const sandbox of this.#sandboxes) sandbox.kill();
    await Promise.all([...this.#sandboxes].map((sandbox) => sandbox.ended));
  }

  #pump(): void {
    for (const sandbox of [...this.#idle.keys()].reverse()) {
      const job = this.#waiting.shift();
      if (job === undefined) return;
      clearTimeout(this.#idle.get(sandbox));
      this.#idle.delete(sandbox);
      void this.#run(sandbox, job);
    }
    while (this.#starting < this.#waiting.length && this.#total < this.#limit) {
      if (!this.#mayStart()) {
        this.#lookAgain();
        return;
      }
      this.#starting++;
      this.#total++;
      void this.#start();
    }
  }

  #mayStart(): boolean {
    if (this.#total < AT_ONCE) return true;
    const stuckMs = performance.now() - Math.max(this.#begunAt, this.#waiting[0]?.since ?? 0);
    if (this.#options.processors.haveRoom) return stuckMs >= PATIENCE_MS.withRoom;
    return this.#starting === 0 && stuckMs >= PATIENCE_MS.busy;
  }

  #lookAgain(): void {
    this.#looking ??= setTimeout(() => {
      this.#looking = undefined;
      this.#pump();
    }, LOOK_MS).unref();
  }

  async #start(): Promise<void> {
    const { starts, onChange } = this.#options;
    await starts.acquire();
    // While this waited for its turn a warm sandbox may have come free and taken the work.
    const needed = this.#waiting.length > 0 && !this.#stopped;
    if (!needed) {
      this.#starting--;
      this.#total--;
      return starts.release();
    }
    const sandbox = await Sandbox.start(this.#options);
    this.#sandboxes.add(sandbox);
    onChange();
    void sandbox.ended.then(() => this.#forget(sandbox));
    if (this.#stopped) sandbox.kill();
    const failed = await sandbox.ready();
    this.#starting--;
    starts.release();
    if (failed === null) return this.#rest(sandbox);
    // As in Lambda, an invocation that meets a failing initialization fails with its error.
    const met = this.#waiting.shift();
    if (met === undefined) return;
    this.#options.onInvoked?.({ ok: false, durationMs: 0 });
    met.done(failed);
  }

  async #run(sandbox: Sandbox, job: Job): Promise<void> {
    this.#running++;
    this.#begunAt = performance.now();
    this.#options.onConcurrency?.(this.#running);
    job.done(await sandbox.invoke(randomUUID(), job.payload));
    this.#running--;
    if ((await sandbox.ready()) === null) this.#rest(sandbox);
  }

  #forget(sandbox: Sandbox): void {
    this.#sandboxes.delete(sandbox);
    this.#total--;
    clearTimeout(this.#idle.get(sandbox));
    this.#idle.delete(sandbox);
    this.#options.onChange();
    this.#pump();
  }

  #rest(sandbox: Sandbox): void {
    if (!sandbox.alive) return;
    this.#idle.set(sandbox, setTimeout(() => sandbox.kill("idle"), IDLE_MS).unref());
    this.#pump();
  }
}

const STOPPED: InvocationResult = {
  ok: false,
  errorType: "Host.Stopped",
  errorMessage: "the host is stopping",
};
