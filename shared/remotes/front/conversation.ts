import type { Step } from "../../agents/types.ts";
import type { Part } from "../../wire/index.ts";
import type { Exchange, Outgoing, Seen, Started } from "../exchange/index.ts";
import type { Holding } from "../hitl/mode.ts";
import { Gathered } from "./artifacts.ts";
import type { Front, FrontTask } from "./front.ts";
import {
  FIRST_PAUSE_MS,
  GROWING_MS,
  LONGEST_PAUSE_MS,
  MAX_FAILED_LOOKS,
  MAX_SENDS,
  SILENCE_MS,
  STREAM_MS,
} from "./limits.ts";
import { Live } from "./live.ts";
import { STEPS } from "./names.ts";
import type { Called } from "./open.ts";
import { asks, isOver, type Told, type Trouble } from "./told.ts";
import { troubleOf } from "./trouble.ts";

/** The remote, or the way to it, has failed the task. Uncaught it ends ours as `internal`, in these words. */
export class RemoteTaskError extends Error {
  override readonly name = "RemoteTaskError";
  /** What the remote has told of the task's cost and its course, for the result. */
  metrics?: Readonly<Record<string, number>>;
}

const NOTHING: Told = { artifacts: [], observed: [] };

/** A message that goes out, and how it is looked for when nobody knows what became of it. */
interface Message {
  readonly outgoing: Outgoing;
  readonly step: string;
  readonly send: (exchange: Exchange, signal: AbortSignal) => Promise<Started>;
  readonly find: (exchange: Exchange, signal: AbortSignal) => Promise<Seen | "none" | "unknown">;
}

/**
 * One task of ours at a remote agent, by steps: each exchange is one, and what it has brought is stored before anything
 * else is done. A handler that is run again goes through what is stored, and on from there: what was sent is not sent again.
 */
export class Conversation {
  readonly gathered = new Gathered();
  readonly #task: FrontTask;
  readonly #talk: Step;
  readonly #front: Front;
  /** Told of each text about the progress while a stream is read. */
  readonly #progress: (text: string) => void;
  readonly #held: Holding;
  #told: Told = NOTHING;
  #live: Live | undefined;
  #sent = 0;
  #pauses = 0;
  #failedLooks = 0;

  /** @param of.held how what is sent is held before; the remote is told */
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
    this.#progress = of.progress;
    this.#held = of.held;
  }

  /** Sends the task. @throws RemoteTaskError */
  send(parts: readonly Part[]): Promise<Told> {
    const message = this.#outgoing(parts);
    return this.#deliver({
      outgoing: message,
      step: STEPS.send,
      send: (exchange, signal) => exchange.start(message, signal),
      find: (exchange, signal) => exchange.find(message, signal),
    });
  }

  /**
   * Sends an answer to what the remote has asked.
   *
   * @param asked what was told when it asked
   * @throws RemoteTaskError
   */
  async reply(parts: readonly Part[], asked: Told): Promise<Told> {
    const { taskId = "" } = this.#told;
    const message = { ...this.#outgoing(parts), taskId };
    const sent = this.#deliver({
      outgoing: message,
      step: STEPS.reply,
      send: (exchange, signal) => exchange.reply(message, signal),
      find: async (exchange, signal) => {
        const found = await exchange.find(message, signal);
        if (found !== "unknown") return found;
        // Where nobody can be asked for the message, the task tells whether it still waits for it.
        const seen = await exchange.get(taskId, signal);
        return isSameQuestion(seen, asked) ? "none" : seen;
      },
    });
    try {
      return await sent;
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
    if (this.#told.live !== true) await this.#pause(this.#pauses++, this.#told.trouble?.waitMs);
    const told = this.#take(
      await this.#talk.run(STEPS.look, ({ signal }) => this.#looked(signal), { retry: false }),
    );
    const { trouble } = told;
    this.#failedLooks = trouble === undefined ? 0 : this.#failedLooks + 1;
    if (trouble !== undefined && (!trouble.again || this.#failedLooks >= MAX_FAILED_LOOKS))
      throw new RemoteTaskError(trouble.reason);
    return told;
  }

  /** Lets go of what is open. */
  async close(): Promise<void> {
    const live = this.#live;
    this.#live = undefined;
    await live?.close();
  }

  #outgoing(parts: readonly Part[]): Outgoing {
    const { id, skill } = this.#task;
    // The same whenever it is sent, and of this task alone; until the remote calls the conversation something, we do.
    const messageId = `${id}-${++this.#sent}`;
    const contextId = this.#told.contextId ?? this.#task.contextId ?? id;
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
      await this.#talk.run(
        STEPS.call,
        (): Called => {
          own = true;
          return { messageId, contextId };
        },
        { retry: false },
      );
      const told = this.#take(
        await this.#talk.run(message.step, ({ signal }) => this.#sentOnce(message, unsure || !own, signal), {
          retry: false,
        }),
      );
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

  async #sentOnce({ send, find }: Message, unsure: boolean, signal: AbortSignal): Promise<Told> {
    const found = unsure ? await this.#found(find, signal) : "none";
    if (typeof found === "object") return found;
    if (found === "unknown") return this.#failed({ reason: this.#unknownFate(), again: false });
    let begun = false;
    try {
      const { seen, rest } = await this.#front.ask((exchange) => {
        begun = true;
        // The stream outlives this step.
        return send(exchange, this.#talk.signal);
      });
      await this.close();
      if (rest !== undefined) this.#live = new Live(rest, this.#front.now() + STREAM_MS / this.#front.scale);
      return await this.#toldOf(seen);
    } catch (error) {
      signal.throwIfAborted();
      return this.#failed(troubleOf(error, { begun, now: this.#front.now() }));
    }
  }

  /** Looks for a message of which nobody knows whether it has arrived. */
  async #found(find: Message["find"], signal: AbortSignal): Promise<Told | "none" | "unknown"> {
    let begun = false;
    try {
      const seen = await this.#front.ask((exchange) => {
        begun = true;
        return find(exchange, signal);
      });
      return typeof seen === "string" ? seen : await this.#toldOf(seen);
    } catch (error) {
      signal.throwIfAborted();
      return this.#failed(troubleOf(error, { begun, unsure: true, now: this.#front.now() }));
    }
  }

  #unknownFate(): string {
    return `${this.#front.remote} may have the message, and cannot be asked whether it has: it is not sent again`;
  }

  async #looked(signal: AbortSignal): Promise<Told> {
    if (this.#live !== undefined) return await this.#read(this.#live);
    let begun = false;
    try {
      const seen = await this.#front.ask((exchange) => {
        begun = true;
        return exchange.get(this.#told.taskId ?? "", signal);
      });
      return await this.#toldOf(seen);
    } catch (error) {
      signal.throwIfAborted();
      return this.#failed(troubleOf(error, { begun, now: this.#front.now() }));
    }
  }

  /** Reads a stream until there is something that must be stored, or nothing comes. */
  async #read(live: Live): Promise<Told> {
    const { now, scale } = this.#front;
    let told: Told = { ...this.#carried(), artifacts: [], observed: [] };
    let flushAt = Number.POSITIVE_INFINITY;
    for (;;) {
      const wait = Math.min(SILENCE_MS / scale, live.until - now(), flushAt - now());
      const next = await live.next(wait);
      if (next === "over") return await this.#left(told);
      if (next === "silent") {
        if (now() >= flushAt && now() < live.until) return this.#withNews(told, true);
        return await this.#left(told);
      }
      told = this.#absorbed(told, next.seen);
      if (isOver(told) || asks(told)) return await this.#left(told);
      if (next.seen.artifacts.some(({ last }) => last)) return this.#withNews(told, true);
      if (next.seen.kind === "artifact") flushAt = Math.min(flushAt, now() + GROWING_MS / scale);
    }
  }

  /** The stream is let go of. */
  async #left(told: Told): Promise<Told> {
    await this.close();
    return this.#withNews(told, false);
  }

  async #toldOf(seen: Seen): Promise<Told> {
    const told = this.#absorbed({ ...this.#carried(), artifacts: [], observed: [] }, seen);
    if (this.#live === undefined || isOver(told) || asks(told)) return await this.#left(told);
    return this.#withNews(told, true);
  }

  #withNews(told: Told, live: boolean): Told {
    return { ...told, artifacts: this.gathered.news(), ...(live && { live: true }) };
  }

  /** Takes in what was seen. */
  #absorbed(told: Told, seen: Seen): Told {
    for (const artifact of seen.artifacts)
      this.gathered.take(seen.kind === "task" ? { ...artifact, append: false } : artifact);
    const { taskId = told.taskId, contextId = told.contextId, state = told.state, message, kind } = seen;
    const says =
      message ?? (seen.text === undefined ? undefined : { text: seen.text, parts: [{ text: seen.text }] });
    const isNew = says !== undefined && (says.text !== this.#told.says?.text || state !== this.#told.state);
    if (isNew && kind === "status" && !isOver({ state }) && !asks({ state })) this.#progress(says.text);
    return {
      ...told,
      ...(taskId !== undefined && { taskId }),
      ...(contextId !== undefined && { contextId }),
      ...(state !== undefined && { state }),
      ...(says !== undefined && (isNew || kind === "message") && { says }),
      ...(kind === "message" && { whole: true }),
      observed: [...told.observed, ...seen.observed],
    };
  }

  #failed(trouble: Trouble): Told {
    return { ...this.#carried(), artifacts: [], observed: [], trouble };
  }

  /** What goes along from one exchange to the next. */
  #carried(): Pick<Told, "taskId" | "contextId" | "state"> {
    const { taskId, contextId, state } = this.#told;
    return {
      ...(taskId !== undefined && { taskId }),
      ...(contextId !== undefined && { contextId }),
      ...(state !== undefined && { state }),
    };
  }

  /** Takes in what is stored, now or by an earlier run. */
  #take(told: Told): Told {
    for (const artifact of told.artifacts) this.gathered.gave(artifact);
    const isNews = told.says !== undefined || told.artifacts.length > 0 || told.state !== this.#told.state;
    if (isNews && told.trouble === undefined) this.#pauses = 0;
    const says = told.says ?? this.#told.says;
    this.#told = says === undefined ? told : { ...told, says };
    return this.#told;
  }

  /** Waits: longer each time, and as long as is asked for. */
  async #pause(times: number, atLeastMs = 0): Promise<void> {
    const ms = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(times, 30)) / this.#front.scale;
    await this.#talk.sleep(STEPS.pause, Math.ceil(Math.max(ms, atLeastMs)));
  }
}

/** Whether a task asks what it has asked before: then it has not read the answer. */
export function isSameQuestion(
  seen: Pick<Seen, "state" | "message" | "text">,
  asked: Pick<Told, "state" | "says">,
): boolean {
  if (seen.state !== asked.state) return false;
  const { messageId, text = seen.text ?? "" } = seen.message ?? {};
  if (messageId !== undefined && asked.says?.messageId !== undefined)
    return messageId === asked.says.messageId;
  return text === (asked.says?.text ?? "");
}
