import { childMessageId } from "../../shared/tasks/delegation.ts";
import { type ControlKind, controlMessage, taskIdOf, taskMessage } from "../../shared/wire/index.ts";
import type { Choices } from "./choices.ts";
import type { Held } from "./parts/streams.ts";
import { delegations, drawProgram, HELPER, type Program } from "./program.ts";
import type { Watch, Watched } from "./watch.ts";
import type { World } from "./world.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** The agent that is asked. */
const WORKER = "acme-worker";

/** What a person does with a question. */
type Answering = "at once" | "never" | "late" | "unfit first" | "twice" | "deny" | "too early";

/** A task that a peer asks for, and all that it will do about it. */
export interface Asked {
  readonly watched: Watched;
  readonly from: string;
  readonly to: string;
  readonly messageId: string;
  readonly program: Program;
  readonly answering: Answering;
  /** Whether its end is asked for by somebody. */
  readonly cancels: boolean;
  /** When it was published first, in milliseconds since 1970. */
  readonly at: number;
  readonly timeoutSec: number;
}

/** Those who ask for tasks, and their persons. */
export class Peers {
  readonly asked: Asked[] = [];
  readonly #programs = new Map<string, Program>();
  readonly #world: World;
  readonly #watch: Watch;
  readonly #choices: Choices;
  /** The revisions that their persons have read. */
  readonly #read = new Set<string>();
  #messages = 0;
  /** What peers have yet to do. */
  #open = 0;

  constructor(world: World, watch: Watch, choices: Choices) {
    this.#world = world;
    this.#watch = watch;
    this.#choices = choices;
  }

  /** The program of a task, whoever has asked for it. */
  programOf(taskId: string): Program | undefined {
    return this.#programs.get(taskId);
  }

  /** Whether nobody has anything to do any more. */
  get done(): boolean {
    return this.#open === 0;
  }

  /** Draws what is asked of an agent, and when. */
  draw(): void {
    const count = this.#choices.of(1, 1, 1, 1, 2, 2, 3);
    for (let n = 0; n < count; n++) this.#drawTask();
  }

  #drawTask(): void {
    const choices = this.#choices;
    const now = this.#world.scheduler.clock.now();
    const to = WORKER;
    const from = choices.of("adam-lobby", "eve-lobby");
    const messageId = `msg_${String(this.asked.length + 1).padStart(6, "0")}`;
    const wait = choices.of(0, 0, SECOND, 2 * MINUTE);
    const timeoutSec = choices.of(300, 60, 3_600);
    const program = drawProgram(choices);
    const answering = choices.of<Answering>(
      "at once",
      "at once",
      "never",
      "late",
      "unfit first",
      "twice",
      "deny",
      "too early",
    );
    const text = "x".repeat(choices.of(10, 10, 10, 10, 10, 10, 10, 10, 2_000, 2_000, 2_000, 40_000));
    const invalid = choices.below(20) === 1;
    const cancels = choices.below(4) === 1;
    const watched = this.#watch.expect(from, to, messageId);
    this.asked.push({
      watched,
      from,
      to,
      messageId,
      program,
      answering,
      cancels,
      at: now + wait,
      timeoutSec,
    });
    this.#programs.set(watched.taskId, program);
    for (const { step, program: inner } of delegations(program.parts))
      this.#programs.set(taskIdOf(to, HELPER, childMessageId(watched.taskId, step)), inner);
    const message = (a2a: unknown) =>
      taskMessage({
        from,
        to,
        messageId,
        request: {
          a2a,
          channelRef: "worker",
          skillId: invalid ? "unknown" : "task",
          delivery: { timeoutSec, maxDelegationDepth: 1 },
        },
        createdAt: new Date(now).toISOString(),
      });
    this.#publishLater(wait, message(text), "");
    for (let copies = choices.of(0, 0, 0, 0, 0, 1, 2); copies > 0; copies--)
      this.#publishLater(wait + this.#some(), message(text), `copy ${copies}`);
    if (choices.below(6) === 1) this.#publishLater(wait + this.#some(), message("another body"), "other");
    if (cancels) this.#controlLater(wait + this.#some(), this.asked.length - 1, "cancel");
    for (let asks = choices.of(0, 0, 0, 0, 0, 1, 2); asks > 0; asks--)
      this.#controlLater(wait + this.#some(), this.asked.length - 1, "status");
  }

  /** Some time: at once, a moment, a while. */
  #some(): number {
    return this.#choices.of(0, 20, SECOND, 20 * SECOND, 100 * SECOND, 4 * MINUTE);
  }

  #later(ms: number, what: () => string, act: () => void): void {
    this.#open++;
    this.#world.scheduler.later(ms, {
      what,
      happen: () => {
        this.#open--;
        this.#world.scheduler.say(what);
        act();
      },
    });
  }

  #publishLater(ms: number, message: { subject: string; msgId: string; body: string }, copy: string): void {
    const msgId = copy === "" ? message.msgId : `${message.msgId}:${copy}`;
    const what = () => `a peer publishes ${message.subject}${copy === "" ? "" : ` (${copy})`}`;
    this.#later(ms, what, () => this.#world.publish({ ...message, msgId }));
  }

  #controlLater(ms: number, task: number, kind: ControlKind, a2a?: unknown, revision?: number): void {
    const asked = this.asked[task];
    if (asked === undefined) return;
    this.#later(
      ms,
      () => `the requester of ${asked.messageId} sends ${kind} ${JSON.stringify(a2a) ?? ""}`,
      () => this.#control(asked, kind, a2a, revision),
    );
  }

  #control({ watched, from, to }: Asked, kind: ControlKind, a2a: unknown, revision?: number): void {
    const message = controlMessage({
      from,
      to,
      taskId: watched.taskId,
      kind,
      revision: revision ?? watched.events.revision + 1,
      messageId: `control-${++this.#messages}`,
      ...(a2a !== undefined && { a2a }),
      createdAt: new Date(this.#world.scheduler.clock.now()).toISOString(),
    });
    // What one revision has asked for already would be a duplicate, and peers repeat what is not answered.
    this.#world.publish({ ...message, msgId: `${message.msgId}:${this.#messages}` });
  }

  /** A person reads what is published, and answers a question in its own way. */
  read({ subject }: Held): void {
    const index = this.asked.findIndex(({ watched }) => subject.includes(`.${watched.taskId}.`));
    const asked = this.asked[index];
    const last = asked?.watched.events.last;
    if (asked === undefined || last === undefined) return;
    const revision = `${asked.messageId} ${last.revision}`;
    if (this.#read.has(revision)) return;
    this.#read.add(revision);
    if (last.state === "TASK_STATE_INPUT_REQUIRED") this.#answer(index, asked, last.revision, "input_reply");
    if (last.state === "TASK_STATE_AUTH_REQUIRED") this.#answer(index, asked, last.revision, "auth_reply");
  }

  #answer(index: number, { answering }: Asked, question: number, kind: "input_reply" | "auth_reply"): void {
    const good = kind === "input_reply" ? { input: "blue" } : { approve: answering !== "deny" };
    const unfit = kind === "input_reply" ? { input: "" } : { approve: "perhaps" };
    const send = (ms: number, a2a: unknown, revision?: number) =>
      this.#controlLater(ms, index, kind, a2a, revision);
    switch (answering) {
      case "at once":
      case "deny":
        send(this.#choices.of(SECOND, 0, 10), good);
        return;
      case "late":
        send(this.#choices.of(MINUTE, 7 * MINUTE, 40 * MINUTE), good);
        return;
      case "twice":
        send(this.#choices.of(SECOND, 0), good);
        send(this.#choices.of(SECOND, 0, MINUTE), good);
        return;
      case "unfit first":
        // Once asked again, a person has learnt.
        send(SECOND, question > 4 ? good : unfit);
        return;
      case "too early":
        send(0, unfit, question);
        send(SECOND, good);
        return;
      case "never":
        return;
    }
  }
}
