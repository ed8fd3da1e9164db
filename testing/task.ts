import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import type { Agent, Duration } from "../shared/agents/index.ts";
import { milliseconds } from "../shared/steps/duration.ts";
import { openChildren } from "../shared/tasks/delegation.ts";
import { emptyView, foldEntry, type View, type Waiting } from "../shared/tasks/fold.ts";
import { type ControlKind, isTerminal, type TaskEvent, type TaskState } from "../shared/wire/index.ts";
import type { Crashes, CrashPoint } from "./crashes.ts";
import { Delegation } from "./delegation.ts";
import type { LogLine } from "./options.ts";
import type { Simulation } from "./simulation.ts";

/** What {@link TestTask.answer} sends. */
const reply = z.object({ input: z.unknown() });

/** A step that is done. */
export interface StepRecord {
  readonly name: string;
  readonly kind: "run" | "artifact" | "sleep" | "ask" | "approve" | "delegate";
  /** How many attempts it took. */
  readonly attempts: number;
  /** How long it took, in simulated milliseconds, pauses between attempts included. */
  readonly ms: number;
  /** Its result; for a question what was answered, for an artifact the reference, for a delegation how it has ended. */
  readonly value: unknown;
  /** How it failed for good. */
  readonly error?: { readonly name: string; readonly message: string };
}

/** A step that waits. */
export interface WaitingStep {
  readonly name: string;
  readonly kind: StepRecord["kind"];
  /** When its waiting is over at the latest. */
  readonly until?: Date;
  /** For a delegation: the runtime that it waits for. */
  readonly to?: string;
}

/** The question that is open. */
export interface Question {
  readonly kind: "ask" | "approve";
  /** The step that asks. */
  readonly step: string;
  /** What the requester reads. When an answer did not fit, it begins with the reason. */
  readonly prompt: string;
}

/** An artifact as the requester gets it. */
export interface ReceivedArtifact {
  /** Its name with whatever is no letter, digit, `_` or `-` replaced by `-`. */
  readonly id: string;
  /** Its file name. */
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  /** The bytes, read as UTF-8. */
  readonly text: string;
}

/** How a task has ended, as its requester knows it. */
export interface TaskOutcome {
  readonly state: TaskState;
  readonly text: string;
  /** The artifact `data` if there is one, otherwise the text, read as JSON; absent when that is none. */
  readonly data?: unknown;
  readonly artifacts: readonly ReceivedArtifact[];
  readonly metrics: Readonly<Record<string, number>>;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** A task under test. Made by `startTask`. */
export class TestTask {
  readonly id: string;
  /** The runtime that asked. */
  readonly from: string;
  readonly #simulation: Simulation;
  readonly #crashes: Crashes;
  readonly #view: View = emptyView();
  /** The results of steps, by name. */
  readonly #results = new Map<string, unknown>();
  /** What was handed on, by the names of the steps. */
  readonly #delegations = new Map<string, Delegation>();
  #place = 0;

  constructor(options: { id: string; from: string; simulation: Simulation; crashes: Crashes }) {
    this.id = options.id;
    this.from = options.from;
    this.#simulation = options.simulation;
    this.#crashes = options.crashes;
  }

  /** The time by the simulated clock. */
  get now(): Date {
    return new Date(this.#simulation.clock.now());
  }

  /** What was published of the task, in order, as the requester reads it (docs/wire.md §7). */
  get events(): readonly TaskEvent[] {
    return this.#simulation.publisher.events(this.id).map(({ event }) => event);
  }

  /** The steps that are done, in the order in which they were. */
  get steps(): readonly StepRecord[] {
    const stored = [...this.#view.steps.values()].map((step) => ({ ...step, attempts: step.attempts ?? 1 }));
    const waited = [...this.#view.open.values()].flatMap((step) => {
      const at = this.#doneAt(step);
      return at === undefined ? [] : [{ ...step, attempts: 1, ms: at - step.since, at }];
    });
    // Of what happened at one time, the waiting came first: the others waited for it.
    return [...waited, ...stored]
      .sort((one, other) => one.at - other.at)
      .map(({ name, kind, attempts, ms, error }) => ({
        name,
        kind,
        attempts,
        ms,
        value: this.#results.get(name),
        ...(error && { error }),
      }));
  }

  /** The steps that wait. */
  get waiting(): readonly WaitingStep[] {
    if (this.#ended !== undefined) return [];
    return [...this.#view.open.values()]
      .filter((step) => this.#doneAt(step) === undefined)
      .map(({ name, kind, until, child }) => ({
        name,
        kind,
        ...(until !== undefined && { until: new Date(until) }),
        ...(child !== undefined && { to: child.to }),
      }));
  }

  /** The question that the requester is to answer. */
  get question(): Question | undefined {
    const { question } = this.#view;
    const event = this.events.find(({ revision }) => revision === question?.asked);
    if (question === undefined || event === undefined || this.#ended !== undefined) return undefined;
    return {
      kind: question.kind === "approve" ? "approve" : "ask",
      step: question.name,
      prompt: event.content,
    };
  }

  /**
   * Goes on until the agent has handed a task on; gives the first that is open, as its executor sees it.
   *
   * @param step the step that delegates
   * @throws Error when the task ends instead
   */
  async delegation(step?: string): Promise<Delegation> {
    const simulation = this.#simulation;
    let delegation: Delegation | undefined;
    const what = step === undefined ? "a task is handed on" : `step ${JSON.stringify(step)} hands a task on`;
    await simulation.until(what, async () => {
      await this.#look();
      for (const { step: name, child } of openChildren(this.#view)) {
        const sent = simulation.messenger.sent.find(({ msgId }) => msgId.endsWith(`:${child.messageId}`));
        if (sent === undefined || (step !== undefined && name !== step)) continue;
        delegation ??= this.#delegations.get(name) ?? new Delegation({ simulation, step: name, child, sent });
        this.#delegations.set(delegation.step, delegation);
      }
      if (delegation === undefined) this.#mustLive(what);
      return delegation !== undefined;
    });
    if (delegation === undefined) throw new Error(what);
    return delegation;
  }

  /** What the functions and the handler's `step.log` wrote. */
  get log(): readonly LogLine[] {
    return this.#simulation.log;
  }

  /**
   * Goes on until the task waits for an answer or another agent, or sleeps. What lasts up to five seconds is passed:
   * for so short a wait the worker does not leave the task.
   *
   * @throws Error when it ends instead
   */
  async untilWaiting(): Promise<void> {
    const what = "the task waits";
    await this.#simulation.until(what, async () => {
      await this.#look();
      this.#mustLive(what);
      const head = await this.#simulation.store.head(this.id);
      if (head?.waiting !== true) return false;
      return this.#view.question !== undefined || this.waiting.some(({ kind }) => kind !== "run");
    });
  }

  /**
   * Answers the question that is open: a text as it is, anything else as data. An answer that does not fit the step's
   * schema is met by another question.
   */
  async answer(input: unknown): Promise<void> {
    await this.#reply("ask", "input_reply", { input });
  }

  /** Approves, or denies for a reason, as the operator: for what only the operator may approve. */
  async approveAsOperator(approve = true, denyReason?: string): Promise<void> {
    const answered = await this.#simulation.operator(this.id, { approve, denyReason });
    if ("none" in answered) throw new Error(`the operator's answer was refused: ${answered.none}`);
    await this.#simulation.advance(0);
    await this.#look();
  }

  /** Approves, or denies for a reason. */
  async approve(approve = true, denyReason?: string): Promise<void> {
    await this.#reply("approve", "auth_reply", { approve, ...(denyReason !== undefined && { denyReason }) });
  }

  /** Cancels the task, as its requester may at any time. */
  async cancel(reason?: string): Promise<void> {
    await this.control("cancel", { reason });
  }

  /**
   * Sends any control, as the task's requester or as somebody else.
   *
   * @returns what becomes of the message: acknowledged, or terminated and why
   */
  async control(
    kind: ControlKind,
    of: { a2a?: unknown; reason?: string | undefined; revision?: number; from?: string } = {},
  ): Promise<{ readonly ack: true } | { readonly term: string } | { readonly nakMs: number }> {
    const { a2a, reason, from = this.from, revision = (this.events.at(-1)?.revision ?? 0) + 1 } = of;
    const verdict = await this.#simulation.control({
      taskId: this.id,
      from,
      kind,
      revision,
      a2a,
      ...(reason !== undefined && { reason }),
    });
    await this.#look();
    return verdict;
  }

  /** Lets simulated time pass, and everything happen that is due meanwhile. */
  async skip(duration: Duration): Promise<void> {
    await this.#simulation.advance(milliseconds(duration, "skip"));
    await this.#look();
  }

  /**
   * Kills the worker, as `kill -9` would: now, or at a point yet to come. Another takes over when the lease is over,
   * which takes simulated minutes.
   */
  crash(at?: CrashPoint): void {
    if (at === undefined) this.#simulation.kill();
    else this.#crashes.plan(at);
  }

  /**
   * Deploys another version of the agent, of the same id: the task goes on with it when it is next taken up, after a
   * wait or a crash (docs/changing-handlers.md).
   *
   * @param settings the agent's settings, which do not stay as they were
   */
  deploy(agent: Agent, settings: unknown = {}): void {
    this.#simulation.deploy(agent, settings);
  }

  /** How many of the crashes that were planned have happened. */
  get crashes(): number {
    return this.#crashes.happened;
  }

  /**
   * Goes on until the task has ended.
   *
   * @throws Error when a crash at a step was planned, and no step of that name was stored since
   */
  async outcome(): Promise<TaskOutcome> {
    await this.#simulation.until("the task ends", () => this.#ended !== undefined);
    await this.#look();
    this.#crashes.mustNotMiss([...this.#view.steps.keys()]);
    const end = this.#ended;
    if (end === undefined) throw new Error("the task has no end");
    const artifacts = this.#artifacts();
    const data = readJson(artifacts.find(({ id }) => id === "data")?.text ?? end.content);
    return {
      state: end.state,
      text: end.content,
      ...(data !== undefined && { data }),
      artifacts,
      metrics: end.result?.metrics ?? {},
      error: end.error && { code: end.error.code, message: end.error.message },
    };
  }

  get #ended(): TaskEvent | undefined {
    return this.events.find(({ state }) => isTerminal(state));
  }

  /**
   * @param what what the test waits for
   * @throws Error that says how and why the task has ended
   */
  #mustLive(what: string): void {
    const end = this.#ended;
    if (end === undefined) return;
    const why = end.error ? `${end.error.code}: ${end.error.message}` : JSON.stringify(end.content);
    throw new Error(`${what}: the task has ended instead, as ${end.state}, ${why}`);
  }

  async #reply(asks: Question["kind"], kind: ControlKind, a2a: unknown): Promise<void> {
    const what = "a question is open";
    await this.#simulation.until(what, async () => {
      await this.#look();
      this.#mustLive(what);
      return this.question !== undefined;
    });
    const { question } = this;
    if (question === undefined) throw new Error(what);
    if (question.kind !== asks)
      throw new Error(
        `step ${JSON.stringify(question.step)} asks for ${question.kind === "ask" ? "an answer" : "approval"}: call ${question.kind === "ask" ? "answer" : "approve"}`,
      );
    const verdict = await this.control(kind, { a2a });
    if (!isDeepStrictEqual(verdict, { ack: true }))
      throw new Error(`the reply was refused: ${JSON.stringify(verdict)}`);
    await this.#simulation.advance(0);
    await this.#look();
  }

  /** Each in the last version that was given out. */
  #artifacts(): ReceivedArtifact[] {
    const last = new Map(this.events.flatMap(({ artifact }) => (artifact ? [[artifact.id, artifact]] : [])));
    return [...last.values()].map(({ id, name, mediaType, key }) => {
      const bytes = this.#simulation.publisher.objects.get(key) ?? new Uint8Array();
      return { id, name, mediaType, bytes, text: Buffer.from(bytes).toString("utf8") };
    });
  }

  /** When the waiting of a step was over: its answer came, or its time. That is written down nowhere else. */
  #doneAt({ name, kind, until }: Waiting): number | undefined {
    const told = this.#view.heard.get(name);
    const answered = this.#view.answers.get(name)?.at ?? (told?.outcome && told.at);
    if (answered !== undefined || kind !== "sleep" || until === undefined) return answered;
    return until <= this.#simulation.clock.now() ? until : undefined;
  }

  /** Reads what has been put into the task's journal since. */
  async #look(): Promise<void> {
    const { store, values } = this.#simulation;
    for (const entry of await store.entries(this.id, this.#place + 1)) {
      foldEntry(this.#view, entry);
      this.#place = entry.place;
      for (const { name, value } of entry.steps ?? [])
        this.#results.set(name, readJson(await values.text(value)));
      const { outcome, step = "" } = entry.heard ?? {};
      if (outcome !== undefined) this.#results.set(step, readJson(await values.text(outcome)));
      if (entry.answer === undefined) continue;
      const answer = readJson(await values.text(entry.answer.value));
      this.#results.set(entry.answer.step, reply.safeParse(answer).data?.input ?? answer);
    }
  }
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
