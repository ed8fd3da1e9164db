import type { Attempt, Part, Step } from "../agents/types.ts";
import { ClaimLost, TaskEnded } from "../events/journal.ts";
import type { StoredStep } from "../tasks/items.ts";
import type { Values } from "../tasks/values.ts";
import { errorFields, type Telemetry } from "../telemetry/index.ts";
import type { ArtifactRef } from "../wire/index.ts";
import { encodeArtifact, MAX_ARTIFACTS } from "./artifacts.ts";
import { durable } from "./durable.ts";
import { ArtifactError, StepClosedError, StepNameError, StoreError } from "./errors.ts";
import { fromJson, toJson } from "./json.ts";
import type { StatusLine } from "./status.ts";
import type { Writer } from "./writer.ts";

/** Why a run of a handler is over before the handler is. */
export type Halt =
  | { readonly kind: "ended" }
  | { readonly kind: "lost" }
  | { readonly kind: "suspended" }
  | { readonly kind: "deadline" }
  /** The handler has left an error to nobody. */
  | { readonly kind: "threw"; readonly error: unknown }
  | { readonly kind: "broken"; readonly error: unknown };

/** The longest name of a step, in characters. */
export const MAX_NAME = 200;

/** Progress texts are for a person's glance; more is cut. */
const MAX_STATUS_CHARACTERS = 2_000;

/** A promise that never settles: a handler that has lost its task simply goes no further. */
const never = () => new Promise<never>(() => {});

/**
 * The steps of one run of one handler. What is stored is returned, what is new is run and stored before its promise
 * resolves. When the task is taken away, calls never resolve and {@link Engine.halted} tells why.
 */
export class Engine implements Step {
  readonly #taskId: string;
  readonly #stored: ReadonlyMap<string, StoredStep>;
  readonly #writer: Writer;
  readonly #values: Values;
  readonly #status: StatusLine;
  readonly #telemetry: Telemetry;
  readonly #now: () => number;
  readonly #before: (name: string) => Promise<Halt | undefined>;
  readonly #abort = new AbortController();
  readonly #open = new Set<string>();
  readonly #uses = new Map<string, number>();
  /** The identities of all steps so far. */
  readonly #ids = new Set<string>();
  readonly #artifacts = new Map<string, ArtifactRef>();
  readonly #halted = Promise.withResolvers<Halt>();
  #replayed = 0;
  #news = false;
  #closed = false;

  /** @param options.before asked before each new step: whether to halt there */
  constructor(options: {
    taskId: string;
    stored: ReadonlyMap<string, StoredStep>;
    writer: Writer;
    values: Values;
    status: StatusLine;
    telemetry: Telemetry;
    now: () => number;
    before: (name: string) => Promise<Halt | undefined>;
  }) {
    this.#taskId = options.taskId;
    this.#stored = options.stored;
    this.#writer = options.writer;
    this.#values = options.values;
    this.#status = options.status;
    this.#telemetry = options.telemetry;
    this.#now = options.now;
    this.#before = options.before;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Resolves when the run is to stop before its handler has. */
  get halted(): Promise<Halt> {
    return this.#halted.promise;
  }

  /** All artifacts given out so far. */
  get artifacts(): readonly ArtifactRef[] {
    return [...this.#artifacts.values()];
  }

  /** Stops the run: the signal fires, and no step goes on. */
  halt(halt: Halt): void {
    this.#closed = true;
    this.#halted.resolve(halt);
    this.#abort.abort(new Error(`the task is over for this worker: ${halt.kind}`));
  }

  /** The handler has ended by itself; a step that it calls now is a mistake. */
  close(): void {
    this.#closed = true;
    this.#status.close();
  }

  run<T>(name: string, fn: (attempt: Attempt) => T | Promise<T>): Promise<T> {
    const ran = this.#step(name, "run", async (id) => {
      const started = this.#now();
      const text = toJson(await fn({ signal: this.signal }), `the result of step ${JSON.stringify(id)}`);
      const ms = this.#since(started);
      const value = await durable(this.#values.keep(this.#taskId, text));
      await durable(this.#writer.add({ step: { name: id, kind: "run", value, ms } }));
      return text;
    });
    return unforced(ran as Promise<T>); // What was stored is what `fn` returned, as far as JSON tells.
  }

  artifact(name: string, parts: string | Part | readonly Part[]): Promise<void> {
    return unforced(this.#artifact(name, parts));
  }

  async #artifact(name: string, parts: string | Part | readonly Part[]): Promise<void> {
    const ref = await this.#step(name, "artifact", async (id) => {
      const started = this.#now();
      const { ref, bytes } = encodeArtifact(this.#taskId, id, parts);
      this.#register(ref);
      const value = await durable(this.#values.put(this.#taskId, bytes));
      const text = toJson(ref, "artifact");
      await durable(
        this.#writer.add({
          step: { name: id, kind: "artifact", value: { text }, ms: this.#since(started) },
          events: [{ kind: "artifact", artifact: ref, value }],
        }),
      );
      return text;
    });
    const known = ref as ArtifactRef; // Written by the lines above, by this run or an earlier one.
    this.#artifacts.set(known.id, known);
  }

  status(text: string): void {
    if (typeof text !== "string") throw new TypeError(`step.status: expected a text, got ${typeof text}`);
    if (this.#closed || this.#replaying) return;
    this.#status.set(text.length > MAX_STATUS_CHARACTERS ? `${text.slice(0, MAX_STATUS_CHARACTERS)}…` : text);
  }

  log(message: string, fields?: Readonly<Record<string, unknown>>): void {
    if (this.#replaying) return;
    try {
      this.#telemetry.info(message, { ...fields, taskId: this.#taskId });
    } catch {
      // A field that throws when it is looked at: no log line is worth a task.
    }
  }

  /** Whether the handler still goes through what is stored, and so tells nothing new. */
  get #replaying(): boolean {
    return !this.#news && this.#replayed < this.#stored.size;
  }

  /** Milliseconds since then; a clock may be set back meanwhile. */
  #since(started: number): number {
    return Math.max(0, Math.round(this.#now() - started));
  }

  #register(ref: ArtifactRef): void {
    if (this.#artifacts.has(ref.id))
      throw new ArtifactError(
        `artifact ${JSON.stringify(ref.id)}: expected an id that no other artifact has`,
      );
    if (this.#artifacts.size >= MAX_ARTIFACTS)
      throw new ArtifactError(
        `artifact ${JSON.stringify(ref.id)}: expected at most ${MAX_ARTIFACTS} in a task`,
      );
    this.#artifacts.set(ref.id, ref);
  }

  async #step(
    name: string,
    kind: StoredStep["kind"],
    make: (id: string) => Promise<string>,
  ): Promise<unknown> {
    const id = this.#enter(name);
    try {
      const stored = this.#stored.get(id);
      if (stored !== undefined) {
        if (stored.kind !== kind)
          throw new StepNameError(
            `step ${JSON.stringify(id)}: expected the kind that is stored under this name (${stored.kind}), got ${kind}`,
          );
        this.#replayed++;
        return fromJson(await durable(this.#values.text(stored.value)));
      }
      this.#news = true;
      const halt = await this.#before(id);
      if (halt !== undefined) this.halt(halt);
      if (this.#closed) return await never();
      const text = await make(id);
      if (this.#closed) return await never();
      return fromJson(text);
    } catch (error) {
      return await this.#failed(id, error);
    } finally {
      this.#open.delete(id);
    }
  }

  /** What the task's own end or loss does is no error of the handler's. */
  async #failed(step: string, error: unknown): Promise<never> {
    if (error instanceof TaskEnded) this.halt({ kind: "ended" });
    else if (error instanceof ClaimLost) this.halt({ kind: "lost" });
    else if (error instanceof StoreError) this.halt({ kind: "broken", error: error.cause });
    else if (!this.signal.aborted) {
      // Its message is the handler's, and may hold what a peer has sent: the requester reads it, logs do not.
      const { errorName } = errorFields(error);
      this.#telemetry.warn("a step has failed", { taskId: this.#taskId, step, errorName });
      throw error;
    }
    return never();
  }

  /** The step's identity: its name, and `#2`, `#3` when the name is used again after the first is done. */
  #enter(name: string): string {
    if (typeof name !== "string" || name === "" || name.length > MAX_NAME || !name.isWellFormed())
      throw new StepNameError(
        `a step's name: expected 1 to ${MAX_NAME} characters, got ${JSON.stringify(name)}`,
      );
    if (this.#closed && !this.signal.aborted) throw new StepClosedError(name);
    const uses = (this.#uses.get(name) ?? 0) + 1;
    const id = uses === 1 ? name : `${name}#${uses}`;
    const before = uses === 2 ? name : `${name}#${uses - 1}`;
    if (this.#open.has(name) || (uses > 1 && this.#open.has(before)))
      throw new StepNameError(`step ${JSON.stringify(name)}: another step of this name is still open`);
    if (this.#ids.has(id))
      throw new StepNameError(
        `step ${JSON.stringify(name)}: expected a name other than ${JSON.stringify(id)}, which another step has`,
      );
    this.#uses.set(name, uses);
    this.#ids.add(id);
    this.#open.add(id);
    return id;
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
