import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";
import { memoryOf } from "./memory.ts";
import { killGroup, type Processes } from "./processes.ts";
import { sandboxProgram } from "./runtime/program.ts";
import { type InvocationResult, RuntimeApi } from "./runtime-api.ts";
import type { FunctionDeclaration } from "./stack.ts";

/** Loading a bundle is real work on a real processor: its bound does not follow the time scale. */
const INIT_WITHIN_MS = 60_000;
const WATCH_MS = 100;
/** Of the declared memory, as in the managed runtime: the rest is the process's own. */
const HEAP_SHARE = 0.9;

export interface SandboxOptions {
  readonly declaration: FunctionDeclaration;
  readonly environment: Readonly<Record<string, string>>;
  /** How long an invocation may take: the declared timeout, scaled. */
  readonly timeoutMs: number;
  readonly processes: Processes;
  /** See {@link HostOptions}. */
  readonly runtime?: readonly string[] | undefined;
  readonly onLine: (line: string) => void;
  /** Told of each invocation, when it is over. */
  readonly onInvoked?: (invocation: Invocation) => void;
}

/** What became of an invocation. */
export interface Invocation {
  readonly ok: boolean;
  /** In milliseconds, of the `timeoutMs` that it may take. */
  readonly durationMs: number;
}

/** One process that runs a function's bundle, one invocation at a time. */
export class Sandbox {
  readonly #options: SandboxOptions;
  readonly #api: RuntimeApi;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #startedAt = performance.now();
  /** Resolves with why the process ended. */
  readonly ended: Promise<string>;
  #alive = true;
  #initialized = false;
  #initMs: number | undefined;
  #killedFor: string | undefined;

  static async start(options: SandboxOptions): Promise<Sandbox> {
    const runtime = options.runtime ?? [await sandboxProgram()];
    return new Sandbox(options, runtime, await RuntimeApi.listen());
  }

  private constructor(options: SandboxOptions, runtime: readonly string[], api: RuntimeApi) {
    const { declaration, environment, processes, onLine } = options;
    this.#options = options;
    this.#api = api;
    this.#child = processes.start(
      process.execPath,
      [`--max-old-space-size=${Math.floor(declaration.memoryMb * HEAP_SHARE)}`, ...runtime],
      { ...environment, AWS_LAMBDA_RUNTIME_API: api.address },
      declaration.codeDir,
    );
    for (const stream of [this.#child.stdout, this.#child.stderr])
      createInterface({ input: stream }).on("line", onLine);
    this.ended = new Promise<string>((resolve) => {
      this.#child.once("error", (error) => resolve(error.message));
      this.#child.once("exit", (code, signal) => resolve(exitReason(code, signal)));
    }).then((why) => {
      this.#alive = false;
      api.close();
      killGroup(this.#child.pid, "SIGKILL"); // what it started goes with it,
      processes.endOrphans(); // in whatever group
      return this.#killedFor ?? why;
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /**
   * Resolves when the process takes an invocation: with null, or with the error that Lambda would answer to whoever
   * waits for it.
   */
  async ready(): Promise<InvocationResult | null> {
    const timer = setTimeout(() => this.kill("its initialization took too long"), INIT_WITHIN_MS);
    const why = await Promise.race([this.#api.idle().then(() => null), this.ended]);
    clearTimeout(timer);
    if (why === null) {
      if (!this.#initialized) this.#initMs = performance.now() - this.#startedAt;
      this.#initialized = true;
      return null;
    }
    return { ok: false, ...(this.#api.initError ?? { errorType: "Runtime.ExitError", errorMessage: why }) };
  }

  /** Runs one invocation in a sandbox that is ready; never rejects. */
  async invoke(requestId: string, payload: string): Promise<InvocationResult> {
    const { declaration, timeoutMs, onLine, onInvoked } = this.#options;
    const startedAt = performance.now();
    onLine(`START RequestId: ${requestId} Version: $LATEST`);
    const timedOut = `Task timed out after ${declaration.timeoutSec.toFixed(2)} seconds`;
    const timer = setTimeout(() => this.kill(timedOut), timeoutMs);
    let peakMb = 0;
    const watch = setInterval(() => {
      const memory = memoryOf(this.pid ?? 0);
      peakMb = Math.max(peakMb, memory?.peakMb ?? 0);
      if ((memory?.ownMb ?? 0) > declaration.memoryMb)
        this.kill(
          `Runtime exited with error: signal: killed (over its ${declaration.memoryMb} MB of memory)`,
        );
    }, WATCH_MS);
    const answer = this.#api.deliver({
      requestId,
      functionArn: declaration.arn,
      deadline: Date.now() + timeoutMs,
      payload,
    });
    const result = await Promise.race([answer, this.ended.then((why) => failure(requestId, why, timedOut))]);
    clearTimeout(timer);
    clearInterval(watch);
    peakMb = Math.max(peakMb, memoryOf(this.pid ?? 0)?.peakMb ?? 0);
    const durationMs = performance.now() - startedAt;
    this.#report(requestId, durationMs, peakMb, result);
    onInvoked?.({ ok: result.ok, durationMs });
    return result;
  }

  /** Ends the process at once, with what it has started. */
  kill(why = "ended by the host"): void {
    this.#killedFor ??= why;
    killGroup(this.pid, "SIGKILL");
  }

  #report(requestId: string, durationMs: number, peakMb: number, result: InvocationResult): void {
    const { declaration, onLine } = this.#options;
    if (!result.ok) onLine(`ERROR RequestId: ${requestId} ${result.errorType}: ${result.errorMessage}`);
    const init = this.#initMs === undefined ? "" : `\tInit Duration: ${this.#initMs.toFixed(2)} ms`;
    this.#initMs = undefined; // told once, with the first invocation
    onLine(
      `REPORT RequestId: ${requestId}\tDuration: ${durationMs.toFixed(2)} ms\t` +
        `Billed Duration: ${Math.ceil(durationMs)} ms\tMemory Size: ${declaration.memoryMb} MB\t` +
        `Max Memory Used: ${Math.round(peakMb)} MB${init}`,
    );
  }
}

function failure(requestId: string, why: string, timedOut: string): InvocationResult {
  return why === timedOut
    ? { ok: false, errorType: "Sandbox.Timedout", errorMessage: `RequestId: ${requestId} Error: ${why}` }
    : { ok: false, errorType: "Runtime.ExitError", errorMessage: `RequestId: ${requestId} Error: ${why}` };
}

function exitReason(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal !== null) return `Runtime exited with error: signal: ${signal}`;
  return code === 0
    ? "Runtime exited without providing a reason"
    : `Runtime exited with error: exit status ${code}`;
}
