import { isTerminal, type TaskState } from "../../wire/states.ts";
import { RemoteError } from "./errors.ts";
import { remoteError } from "./failures.ts";
import { readEvent } from "./seen.ts";
import type { Thread } from "./thread.ts";
import type { ExchangeLimits, Rest, Seen } from "./types.ts";

/** What a stream is read with. */
export interface StreamCall {
  readonly remote: string;
  readonly limits: ExchangeLimits;
  readonly thread: Thread;
  /** The task that was asked about, if it was one. */
  readonly taskId?: string | undefined;
  /** The caller's. */
  readonly signal: AbortSignal;
  /** Opens the stream; it is called once. */
  readonly open: (signal: AbortSignal) => AsyncIterable<unknown>;
}

/** In which a stream may end before its task does (A2A 1.0 §3.1.2). */
const INTERRUPTED: ReadonlySet<TaskState> = new Set([
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_AUTH_REQUIRED",
]);

/** A stream of events of one task, or of one message. It is opened when it is first read. */
export class TaskStream implements Rest {
  readonly #call: StreamCall;
  readonly #own = new AbortController();
  readonly #events: AsyncGenerator<Seen, void, undefined>;

  constructor(call: StreamCall) {
    this.#call = call;
    this.#events = this.#read();
  }

  [Symbol.asyncIterator](): AsyncIterator<Seen, void, undefined> {
    return this.#events;
  }

  /** The next thing that is said; nothing once the task, or its turn, is over. */
  async next(): Promise<Seen | undefined> {
    const { done, value } = await this.#events.next();
    return done ? undefined : value;
  }

  async close(): Promise<void> {
    this.#own.abort(new DOMException("the stream was closed", "AbortError"));
    // What the reader throws now is that it was closed.
    await this.#events.return().catch(() => {});
  }

  async *#read(): AsyncGenerator<Seen, void, undefined> {
    const { remote, limits, signal, open } = this.#call;
    const late = new RemoteError("timeout", remote, `its stream went on for over ${limits.streamMs} ms`, {
      sent: true,
    });
    const timer = setTimeout(() => this.#own.abort(late), limits.streamMs).unref();
    const mute = new RemoteError("timeout", remote, `its stream said nothing within ${limits.sendMs} ms`, {
      sent: true,
    });
    // Comments keep a connection open, and say nothing of the task.
    const begin = setTimeout(() => this.#own.abort(mute), limits.sendMs).unref();
    let state: TaskState | undefined;
    let taskId = this.#call.taskId;
    let events = 0;
    try {
      for await (const event of open(AbortSignal.any([signal, this.#own.signal]))) {
        clearTimeout(begin);
        if (++events > limits.streamEvents)
          throw new RemoteError("too_large", remote, `expected at most ${limits.streamEvents} events`, {
            sent: true,
          });
        const seen = this.#take(event, taskId);
        taskId ??= seen.taskId;
        state = seen.state ?? state;
        yield seen;
        // Nothing follows, whatever is sent: the stream is closed.
        if (seen.kind === "message" || (seen.state !== undefined && isTerminal(seen.state))) return;
      }
    } catch (error) {
      signal.throwIfAborted();
      this.#own.signal.throwIfAborted();
      throw remoteError(remote, error);
    } finally {
      clearTimeout(begin);
      clearTimeout(timer);
    }
    if (state === undefined || !INTERRUPTED.has(state))
      throw new RemoteError("lost", remote, `its stream ended after ${events} events, and the task had not`, {
        sent: true,
      });
  }

  /** One message, or a task and what becomes of it (A2A 1.0 §3.1.2). */
  #take(event: unknown, taskId: string | undefined): Seen {
    const { remote, thread } = this.#call;
    const seen = thread.take(readEvent(event), taskId);
    if (seen.kind === "message" && taskId !== undefined)
      throw new RemoteError("protocol", remote, "it answers with a message within the stream of a task", {
        sent: true,
      });
    return seen;
  }
}
