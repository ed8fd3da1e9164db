import { randomUUID } from "node:crypto";
import type { Agent } from "../../shared/agents/index.ts";
import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import type { Timing } from "../../shared/config/timing.ts";
import { ClaimLost, Journal, TaskEnded } from "../../shared/events/journal.ts";
import { Outlet } from "../../shared/events/outlet.ts";
import type { Publisher } from "../../shared/events/publisher.ts";
import { Engine } from "../../shared/steps/engine.ts";
import { failure, type Run, runHandler, timedOut } from "../../shared/steps/run.ts";
import { StatusLine } from "../../shared/steps/status.ts";
import { Writer } from "../../shared/steps/writer.ts";
import type { Entry, Head, StoredStep } from "../../shared/tasks/items.ts";
import type { WorkHint } from "../../shared/tasks/messages.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { patient, type Values } from "../../shared/tasks/values.ts";
import type { Telemetry } from "../../shared/telemetry/index.ts";
import { keepBeating } from "./beat.ts";
import { ownStrays } from "./strays.ts";
import { readTask } from "./task.ts";

/** Claims in a row that stored nothing new; then the task is given up (docs/tasks.md, takeovers). */
export const MAX_FRUITLESS_CLAIMS = 5;

/** What `work` needs besides the hint. */
export interface WorkDeps {
  readonly store: Store;
  readonly values: Values;
  readonly publisher: Publisher;
  readonly deployment: DeploymentConfig;
  readonly agents: readonly Agent[];
  readonly telemetry: Telemetry;
  readonly timing: Timing;
  readonly now: () => number;
  /** Puts a hint on the queue `work`. */
  readonly hint: (hint: WorkHint) => Promise<void>;
  /** Calls back when somebody says that a task has ended; answers with how to stop listening. */
  readonly listen: (taskId: string, told: () => void) => Promise<() => void>;
}

/**
 * How many claims in a row, up to the one in force, have stored no step. Progress texts and answered controls do not
 * count: a handler that says that it begins, and dies, would go on for ever.
 */
function fruitlessClaims(entries: readonly Entry[]): number {
  const last = entries.findLastIndex((entry) => entry.steps !== undefined);
  const claims = entries.slice(last + 1).filter((entry) => entry.claim === true).length;
  // The first claim of a task leaves no entry.
  return claims + (last === -1 ? 1 : 0);
}

/**
 * Takes up the task that a hint speaks of, if nobody else has since, and works on it until it ends, is taken away,
 * or the invocation's time is nearly over.
 *
 * @param invocation.endsAt when Lambda ends this invocation, in milliseconds since 1970
 * @throws when the table or the bucket cannot be reached; another worker will go on
 */
export async function work(deps: WorkDeps, hint: WorkHint, invocation: { endsAt: number }): Promise<void> {
  const head = await deps.store.claim(hint, randomUUID());
  if (head === undefined) {
    deps.telemetry.debug("the hint is stale", { ...hint });
    return;
  }
  await new Worker(deps, head, invocation.endsAt - deps.timing.marginMs).work();
}

/** One claim of one task. */
class Worker {
  readonly #deps: WorkDeps;
  readonly #head: Head;
  readonly #until: number;
  readonly #journal: Journal;
  readonly #outlet: Outlet;
  readonly #stored = new Map<string, StoredStep>();
  readonly #entries: Entry[] = [];
  #beat: number;

  constructor(deps: WorkDeps, head: Head, until: number) {
    const values = patient(deps.values, { now: deps.now, until: () => until });
    this.#deps = { ...deps, values };
    this.#head = head;
    this.#until = until;
    this.#beat = head.beat;
    const { store, publisher, telemetry, now } = deps;
    this.#journal = new Journal({
      store,
      head,
      now,
      until: () => until,
      found: (entry) => {
        this.#entries.push(entry);
        for (const step of entry.steps ?? [])
          if (!this.#stored.has(step.name)) this.#stored.set(step.name, step);
      },
    });
    this.#outlet = new Outlet({
      journal: this.#journal,
      publisher,
      task: head,
      telemetry,
      now,
      resumed: head.epoch > 1,
      until: () => until,
    });
  }

  async work(): Promise<void> {
    try {
      await this.#takeOver();
      const run = await this.#run();
      if ("halt" in run) await this.#leave(run.halt);
    } catch (error) {
      if (error instanceof TaskEnded) await this.#publishEnd(error.end);
      else if (!(error instanceof ClaimLost)) throw error;
    }
  }

  /** After the first claim, what is stored is read, and an entry of ours keeps out whoever held the task before. */
  async #takeOver(): Promise<void> {
    if (this.#head.epoch === 1) return;
    this.#deps.telemetry.info("a task is taken over", this.#fields());
    await this.#journal.refresh();
    await this.#journal.append(() => ({ claim: true }));
    this.#outlet.kick();
  }

  async #run(): Promise<Run> {
    const { deployment, agents, now } = this.#deps;
    const head = this.#head;
    if (now() >= head.deadline) return this.#end(timedOut(head, now()));
    const fruitless = this.#head.epoch === 1 ? 0 : fruitlessClaims(this.#entries);
    if (fruitless >= MAX_FRUITLESS_CLAIMS) {
      const message = `the worker died ${fruitless} times in a row ${this.#where()}`;
      return this.#end(failure(head, "internal", message, now()));
    }
    const read = await readTask(this.#deps, { deployment, agents, head });
    if (!read.ok) return this.#end(failure(head, read.code, read.message, now()));
    return this.#handle(read, fruitless > 0);
  }

  async #handle(
    read: Extract<Awaited<ReturnType<typeof readTask>>, { ok: true }>,
    careful: boolean,
  ): Promise<Run> {
    const { values, store, telemetry, timing, now, listen } = this.#deps;
    const head = this.#head;
    const status = new StatusLine({
      everyMs: (read.policy.statusEverySec * 1_000) / timing.scale,
      now,
      due: () => void writer.add({}).catch(() => {}),
    });
    const writer = new Writer({
      journal: this.#journal,
      values,
      task: head,
      status,
      stored: () => this.#outlet.kick(),
    });
    this.#restoreStatus(status);
    const engine = new Engine({
      taskId: head.taskId,
      stored: this.#stored,
      writer,
      values,
      status,
      telemetry,
      now,
      before: async (name) => {
        if (now() > this.#until) return { kind: "suspended" };
        // After a death, the step's name is worth a write: if this worker dies too, we can say where. If the table
        // does not take it, the step is run all the same.
        if (careful)
          await store.beat(head.taskId, head.epoch, { beat: ++this.#beat, running: name }).catch(() => {});
        return undefined;
      },
    });
    const beating = keepBeating({
      everyMs: timing.beatMs,
      beat: () => store.beat(head.taskId, head.epoch, { beat: ++this.#beat }),
      lost: () => engine.halt({ kind: "lost" }),
    });
    const told = async () => {
      if ((await store.last(head.taskId))?.end !== undefined) engine.halt({ kind: "ended" });
    };
    const listening = listen(head.taskId, () => void told().catch(() => {})).catch(() => () => {});
    try {
      const run = await ownStrays(
        (error) => engine.halt({ kind: "threw", error }),
        () => runHandler({ skill: read.skill, task: read.task, head, engine, values, now }),
      );
      return "end" in run ? await this.#end(run, writer) : run;
    } finally {
      await beating.stop();
      (await listening)();
    }
  }

  /** Where the workers before this one have died, as far as they could tell. */
  #where(): string {
    const { running } = this.#head;
    if (running !== undefined && !this.#stored.has(running)) return `in step ${JSON.stringify(running)}`;
    const last = [...this.#stored.keys()].at(-1);
    return last === undefined ? "before its first step" : `after step ${JSON.stringify(last)}`;
  }

  /** Puts the end, and publishes it. */
  async #end(run: Run, writer?: Writer): Promise<Run> {
    if (!("end" in run)) return run;
    const { values, telemetry } = this.#deps;
    const status = new StatusLine({ everyMs: 0, now: this.#deps.now, due: () => {} });
    const last =
      writer ?? new Writer({ journal: this.#journal, values, task: this.#head, status, stored: () => {} });
    await last.end(run.end, run.events);
    telemetry.info("a task has ended", { ...this.#fields(), state: run.end.state, code: run.end.code });
    telemetry.count("TasksEnded", 1, { runtime: this.#head.to, outcome: run.end.code ?? "completed" });
    await this.#publishEnd(run.end);
    return run;
  }

  /** What cannot be published now stays due, and `sweep` publishes it. */
  async #publishEnd(end: NonNullable<Entry["end"]>): Promise<void> {
    if (await this.#outlet.drain())
      await this.#deps.store.settle(this.#head.taskId, this.#journal.revision, end.state);
  }

  /** Leaves a task that goes on elsewhere, later, or nowhere. */
  async #leave(halt: Extract<Run, { halt: unknown }>["halt"]): Promise<void> {
    this.#deps.telemetry.info("a task is left", { ...this.#fields(), why: halt.kind });
    await this.#outlet.drain();
    if (halt.kind === "suspended")
      await this.#deps.hint({ taskId: this.#head.taskId, epoch: this.#head.epoch, beat: this.#beat });
    if (halt.kind === "broken") throw halt.error;
  }

  #restoreStatus(status: StatusLine): void {
    const at = this.#entries.findLast(({ events }) => events?.some(({ kind }) => kind === "status"))?.at;
    if (at !== undefined) status.restore(at);
  }

  #fields(): Record<string, unknown> {
    const { taskId, messageId, from, to, epoch, traceparent } = this.#head;
    return { taskId, messageId, from, to, epoch, traceparent, revision: this.#journal.revision };
  }
}
