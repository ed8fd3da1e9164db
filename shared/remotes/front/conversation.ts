import type { Attempt, Step } from "../../agents/types.ts";
import { isA, StepTimeout } from "../../steps/errors.ts";
import type { Part } from "../../wire/index.ts";
import type { Exchange, Outgoing, Seen, Started } from "../exchange/index.ts";
import type { Holding } from "../hitl/mode.ts";
import type { Front, FrontTask } from "./front.ts";
import { MAX_FAILED_LOOKS, MAX_SENDS } from "./limits.ts";
import { Listening } from "./listening.ts";
import { STEPS } from "./names.ts";
import type { Called } from "./open.ts";
import { isOver, isSameQuestion, type Told } from "./told.ts";
import { conversationOf } from "./trace.ts";
import { troubleOf } from "./trouble.ts";
import { type Course, pauseMs, Troubles } from "./troubles.ts";

/** The remote, or the way to it, has failed the task. Uncaught it ends ours as `internal`, in these words. */
export class RemoteTaskError extends Error {
  override readonly name = "RemoteTaskError";
  /** What the remote has told of the task's cost and its course, for the result. */
  metrics?: Readonly<Record<string, number>>;
}

/** A message that goes out, and how it is looked for when nobody knows what became of it. */
interface Message {
  readonly outgoing: Outgoing;
  readonly step: string;
  readonly send: (exchange: Exchange, signal: AbortSignal) => Promise<Started>;
  readonly find: (exchange: Exchange, signal: AbortSignal) => Promise<Seen | "none" | "unknown">;
}

/** A step's own end is its result: what failed is tried again by another. */
const ONCE = { retry: false } as const;

/**
 * One task of ours at a remote agent, by steps: each exchange is one, and what it has brought is stored before anything
 * else is done. A handler that is run again goes through what is stored, and on from there: what was sent is not sent again.
 */
export class Conversation {
  readonly #task: FrontTask;
  readonly #talk: Step;
  readonly #front: Front;
  readonly #held: Holding;
  readonly #listening: Listening;
  readonly #troubles: Troubles;
  /** Why the last exchange has failed, in words of our own. */
  #reason: string | undefined;
  #sent = 0;
  #pauses = 0;
  #failedLooks = 0;

  /**
   * @param of.held how what is sent is held before; the remote is told
   * @param of.progress told of each text about the progress while a stream is read
   */
  constructor(of: {
    task: FrontTask;
    talk: Step;
    front: Front;
    held: Holding;
    progress: (text: string) => void;
  }) {
    this.#task = of.task;
    this.#talk = of.talk;
    this.#front = of.front;
    this.#held = of.held;
    this.#listening = new Listening(of);
    this.#troubles = new Troubles({ task: of.task, front: of.front, step: of.talk });
  }

  /** Whether what was given out can be read in the result itself. */
  get readable(): boolean {
    return this.#listening.gathered.readable;
  }

  /** Sends the task. @throws RemoteTaskError */
  send(parts: readonly Part[]): Promise<Told> {
    const outgoing = this.#outgoing(parts);
    return this.#deliver({
      outgoing,
      step: STEPS.send,
      send: (exchange, signal) => exchange.start(outgoing, signal),
      find: (exchange, signal) => exchange.find(outgoing, signal),
    });
  }

  /**
   * Sends an answer to what the remote has asked.
   *
   * @param asked what was told when it asked
   * @throws RemoteTaskError
   */
  async reply(parts: readonly Part[], asked: Told): Promise<Told> {
    const { taskId = "" } = asked;
    const outgoing = { ...this.#outgoing(parts), taskId };
    const find: Message["find"] = async (exchange, signal) => {
      const found = await exchange.find(outgoing, signal);
      if (found !== "unknown") return found;
      // Where nobody can be asked for the message, the task tells whether it still waits for it.
      const seen = await exchange.get(taskId, signal);
      return isSameQuestion(seen, asked) ? "none" : seen;
    };
    try {
      const send: Message["send"] = (exchange, signal) => exchange.reply(outgoing, signal);
      return await this.#deliver({ outgoing, step: STEPS.reply, send, find });
    } catch (error) {
      if (!(error instanceof RemoteTaskError)) throw error;
      // It may have given up waiting: then that is what the requester should hear.
      const told = await this.look();
      if (isOver(told)) return told;
      throw error;
    }
  }

  /** Looks at how it stands: reads the stream on, or asks after a pause. @throws RemoteTaskError */
  async look(): Promise<Told> {
    const { live, trouble: before } = this.#listening.told;
    if (live !== true) await this.#pause(this.#pauses++, before?.waitMs);
    const tries = this.#failedLooks + 1;
    const course = { step: STEPS.look, tries, left: MAX_FAILED_LOOKS - tries, pause: this.#pauses };
    const told = await this.#exchange(course, (signal) => this.#looked(live === true, signal));
    const { trouble } = told;
    this.#failedLooks = trouble === undefined ? 0 : this.#failedLooks + 1;
    if (trouble !== undefined && (!trouble.again || this.#failedLooks >= MAX_FAILED_LOOKS))
      throw new RemoteTaskError(trouble.reason);
    return told;
  }

  /** Lets go of what is open. */
  close(): Promise<void> {
    return this.#listening.close();
  }

  #outgoing(parts: readonly Part[]): Outgoing {
    const { id, skill } = this.#task;
    // The same whenever it is sent, and of this task alone; until the remote calls the conversation something, we do.
    const messageId = `${id}-${++this.#sent}`;
    const contextId = this.#listening.told.contextId ?? conversationOf(id, this.#task.contextId);
    return { messageId, contextId, skill, parts, held: this.#held };
  }

  /**
   * Sends a message until it has arrived. That it is about to be sent is stored first: whoever finds that, and not what
   * came of it, looks for the message before it is sent again.
   */
  async #deliver(message: Message): Promise<Told> {
    const { messageId, contextId } = message.outgoing;
    let unsure = false;
    for (let tries = 1; ; tries++) {
      let own = false;
      const call = (): Called => {
        own = true;
        return { messageId, contextId };
      };
      await this.#talk.run(STEPS.call, call, ONCE);
      const course = { step: message.step, tries, left: MAX_SENDS - tries, pause: tries - 1 };
      const told = await this.#exchange(course, (signal) => this.#sentOnce(message, unsure || !own, signal));
      const { trouble } = told;
      if (trouble === undefined) {
        this.#pauses = 0;
        return told;
      }
      if (!trouble.again || tries >= MAX_SENDS) throw new RemoteTaskError(trouble.reason);
      unsure = trouble.unsure === true;
      await this.#pause(tries - 1, trouble.waitMs);
    }
  }

  /** One exchange as a step. Of one that outlasts its invocation nobody knows what became of it. */
  async #exchange(course: Course, what: (signal: AbortSignal) => Promise<Told>): Promise<Told> {
    const { live } = this.#listening.told;
    // A run that finds it stored has told it before.
    let own = false;
    try {
      const attempt = ({ signal }: Attempt) => {
        own = true;
        return this.#telling(course, what(signal));
      };
      return this.#take(await this.#talk.run(course.step, attempt, ONCE));
    } catch (error) {
      if (!isA(error, StepTimeout)) throw error;
      await this.#listening.close();
      // Where there was a stream nothing else was done: it has gone on until then, and the task is asked for.
      if (live === true) return this.#take(this.#listening.unchanged());
      const reason = `${this.#front.remote} did not answer before the end of an invocation`;
      const trouble = { reason, code: "timeout", again: true, unsure: true };
      if (own) this.#troubles.tell(trouble, reason, course);
      return this.#take(this.#listening.failed(trouble));
    }
  }

  /** @param unsure whether the message may have been sent before, and nobody knows what became of it */
  async #sentOnce({ send, find }: Message, unsure: boolean, signal: AbortSignal): Promise<Told> {
    if (unsure) {
      const looked = await this.#exchanged(signal, (exchange) => find(exchange, signal), true);
      if ("failed" in looked) return looked.failed;
      if (looked.value === "unknown") return this.#lost();
      if (looked.value !== "none") return await this.#listening.seen(looked.value);
    }
    // The stream outlives this step.
    const sent = await this.#exchanged(signal, (exchange) => send(exchange, this.#talk.signal));
    return "failed" in sent ? sent.failed : await this.#listening.started(sent.value);
  }

  #lost(): Told {
    const reason = `${this.#front.remote} may have the message, and cannot be asked whether it has: it is not sent again`;
    this.#reason = reason;
    return this.#listening.failed({ reason, code: "unknown_fate", again: false });
  }

  /** @param live whether there is a stream, be it that of a run that is gone: then the next look asks for the task */
  async #looked(live: boolean, signal: AbortSignal): Promise<Told> {
    if (live) return await this.#listening.readOn();
    const { taskId = "" } = this.#listening.told;
    const seen = await this.#exchanged(signal, (exchange) => exchange.get(taskId, signal));
    return "failed" in seen ? seen.failed : await this.#listening.seen(seen.value);
  }

  /** One exchange, or what is to be stored of one that fails. */
  async #exchanged<T>(
    signal: AbortSignal,
    what: (exchange: Exchange) => Promise<T>,
    unsure = false,
  ): Promise<{ readonly value: T } | { readonly failed: Told }> {
    let begun = false;
    try {
      const value = await this.#front.ask((exchange) => {
        begun = true;
        return what(exchange);
      }, this.#listening.told);
      return { value };
    } catch (error) {
      signal.throwIfAborted();
      const trouble = troubleOf(error, { begun, unsure, now: this.#front.now() });
      // An error's message quotes nothing of the remote; the trouble's reason may (errors.ts).
      this.#reason = error instanceof Error ? error.message : undefined;
      return { failed: this.#listening.failed(trouble) };
    }
  }

  #take(told: Told): Told {
    this.#troubles.take(told.trouble);
    if (this.#listening.take(told)) this.#pauses = 0;
    return this.#listening.told;
  }

  /** Tells of what came of an exchange, within its step. */
  async #telling(course: Course, exchanged: Promise<Told>): Promise<Told> {
    const told = await exchanged;
    this.#troubles.tell(told.trouble, this.#reason, course);
    return told;
  }

  /** Waits: longer each time, and as long as is asked for. */
  async #pause(times: number, atLeastMs = 0): Promise<void> {
    await this.#talk.sleep(STEPS.pause, pauseMs(times, atLeastMs, this.#front.scale));
  }
}
