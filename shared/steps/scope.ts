import type * as z from "zod";
import type {
  ApproveOptions,
  ArtifactOptions,
  AskOptions,
  Attempt,
  Delegated,
  DelegateOptions,
  Duration,
  EachOptions,
  RunOptions,
  Step,
} from "../agents/types.ts";
import type { Parts } from "./artifacts.ts";
import { randomOf, uuidOf } from "./chance.ts";
import { milliseconds } from "./duration.ts";
import type { Done, Engine, StepKind } from "./engine.ts";
import { StepOptionError } from "./errors.ts";
import { inside } from "./inside.ts";
import { artifactStep } from "./kinds/artifact.ts";
import { approveStep, askStep } from "./kinds/ask.ts";
import { delegateStep } from "./kinds/delegate.ts";
import { boundedMap, keysOf } from "./kinds/each.ts";
import { runStep } from "./kinds/run.ts";
import { sleepStep } from "./kinds/sleep.ts";
import { Names, pathOf } from "./names.ts";

/** The steps of one branch: their names, its time, and its chance. */
export class Scope implements Step {
  readonly #engine: Engine;
  readonly #path: string;
  readonly #names: Names;
  /** When the last step of this branch was stored: it does not go back. */
  #time: number;
  #turn = 0;

  constructor(of: { engine: Engine; path: string; since: number; taken: Set<string> }) {
    this.#engine = of.engine;
    this.#path = of.path;
    this.#time = of.since;
    this.#names = new Names(of.path, of.taken);
  }

  get signal(): AbortSignal {
    return this.#engine.signal;
  }

  run<T>(name: string, fn: (attempt: Attempt) => T | Promise<T>, options?: RunOptions): Promise<T> {
    const ran = this.#call(name, "run", (id) => runStep(this.#engine, id, fn, options));
    return ran as Promise<T>; // What was stored is what `fn` returned, as far as JSON tells.
  }

  artifact(name: string, parts: Parts, options?: ArtifactOptions): Promise<void> {
    return this.#void(name, "artifact", (id) =>
      artifactStep(this.#engine, { id, path: pathOf(this.#path, name) }, parts, options),
    );
  }

  sleep(name: string, duration: Duration): Promise<void> {
    return this.#void(name, "sleep", (id) => {
      const ms = milliseconds(duration, `duration of step ${JSON.stringify(id)}`);
      return sleepStep(this.#engine, id, (now) => now + ms);
    });
  }

  sleepUntil(name: string, time: Date): Promise<void> {
    return this.#void(name, "sleep", (id) => {
      const at = time instanceof Date ? time.getTime() : Number.NaN;
      const of = `the time of step ${JSON.stringify(id)}`;
      if (Number.isNaN(at)) throw new StepOptionError(`${of}: expected a valid date, got ${String(time)}`);
      return sleepStep(this.#engine, id, (now) =>
        Math.min(at, now + milliseconds(Math.max(0, at - now), of)),
      );
    });
  }

  ask<T extends z.ZodType = z.ZodString>(
    name: string,
    prompt: string,
    options?: AskOptions<T>,
  ): Promise<z.output<T>> {
    const asked = this.#call(name, "ask", (id) => askStep(this.#engine, id, prompt, options));
    return asked as Promise<z.output<T>>; // The schema has made it.
  }

  approve(name: string, prompt: string, options?: ApproveOptions): Promise<void> {
    return this.#void(name, "approve", (id) => approveStep(this.#engine, id, prompt, options));
  }

  delegate(name: string, options: DelegateOptions): Promise<Delegated> {
    const delegated = this.#call(name, "delegate", (id) => delegateStep(this.#engine, id, options));
    return delegated as Promise<Delegated>; // Made by `delegateStep`.
  }

  each<T, R>(
    items: readonly T[],
    keyOf: (item: T) => string,
    fn: (item: T, step: Step) => Promise<R>,
    { concurrency = Number.POSITIVE_INFINITY }: EachOptions = {},
  ): Promise<R[]> {
    return unforced(
      (async () => {
        const branches = keysOf(items, keyOf).map((key) => this.branch(key));
        const results = await boundedMap(items, concurrency, (item, index) =>
          fn(item, branches[index] ?? this),
        );
        for (const branch of branches) this.#pass(branch.#time);
        return results;
      })(),
    );
  }

  branch(name: string): Scope {
    return this.#engine.scope(pathOf(this.#path, name), this.#time);
  }

  status(text: string, data?: unknown): void {
    this.#engine.status(text, data);
  }

  log(message: string, fields?: Readonly<Record<string, unknown>>): void {
    this.#engine.log(message, fields);
  }

  now(): Date {
    return new Date(this.#time);
  }

  random(): number {
    return randomOf(...this.#draw());
  }

  uuid(): string {
    return uuidOf(...this.#draw());
  }

  /** Within a step's function chance is the step's own: it is not called again when the handler is. */
  #draw(): [taskId: string, place: string, turn: number] {
    const within = inside.getStore();
    if (within !== undefined) return [this.#engine.taskId, `step ${within.id}`, within.turn++];
    return [this.#engine.taskId, `branch ${this.#path}`, this.#turn++];
  }

  #call(name: string, kind: StepKind, perform: (id: string) => Promise<Done>): Promise<unknown> {
    return unforced(
      (async () => {
        const done = await this.#engine.call(this.#names, name, kind, perform);
        this.#pass(done.at);
        if ("error" in done) throw done.error;
        return done.value;
      })(),
    );
  }

  #void(name: string, kind: StepKind, perform: (id: string) => Promise<Done>): Promise<void> {
    return unforced(this.#call(name, kind, perform).then(() => {}));
  }

  #pass(at: number): void {
    this.#time = Math.max(this.#time, at);
  }
}

/**
 * A step that fails before its handler waits for it, or without anybody waiting, is the handler's own affair: it must
 * not end the process as an unhandled rejection, and other tasks with it. Whoever waits is told all the same.
 */
function unforced<T>(step: Promise<T>): Promise<T> {
  step.catch(() => {});
  return step;
}
