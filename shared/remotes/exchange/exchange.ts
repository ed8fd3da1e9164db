import type { Client } from "@a2a-js/sdk/client";
import type { Reading } from "../../wire/reading.ts";
import { isTerminal } from "../../wire/states.ts";
import { understood } from "../extensions.ts";
import { activated, connect, headersOf, type Way, wayTo } from "./connect.ts";
import { RemoteError } from "./errors.ts";
import { remoteError } from "./failures.ts";
import { EXCHANGE_LIMITS } from "./limits.ts";
import { findMessage } from "./lookup.ts";
import { sendRequest, traceOf } from "./message.ts";
import { readSent, readTask } from "./seen.ts";
import { TaskStream } from "./stream.ts";
import { Thread } from "./thread.ts";
import type {
  Canceled,
  Exchange,
  ExchangeLimits,
  ExchangeOptions,
  Outgoing,
  Reply,
  Seen,
  Started,
} from "./types.ts";

/**
 * Opens a conversation with a remote agent; nothing is sent by it.
 *
 * @throws RemoteError `unsupported` when its card has no interface that we speak
 */
export async function openExchange(options: ExchangeOptions): Promise<Exchange> {
  const { remote, facts } = options;
  // At another address it is another agent, whatever it is called.
  const known = facts?.url === remote.url ? options : { ...options, facts: undefined };
  const way = wayTo(remote.name, known.facts?.card.interfaces);
  const limits = { ...EXCHANGE_LIMITS, ...options.limits };
  return new RemoteExchange(known, way, limits, await connect(known, way, limits));
}

class RemoteExchange implements Exchange {
  readonly streams: boolean;
  readonly protocol: Way["protocol"];
  readonly #options: ExchangeOptions;
  readonly #client: Client;
  readonly #thread: Thread;
  readonly #limits: ExchangeLimits;
  readonly #headers: Record<string, string>;

  constructor(options: ExchangeOptions, way: Way, limits: ExchangeLimits, client: Client) {
    const { remote, facts } = options;
    // Over HTTP+JSON an agent is polled: the SDK writes into our log what it cannot read of such a stream.
    this.streams = way.binding === "JSONRPC" && (facts?.card.capabilities.streaming ?? remote.streaming);
    this.protocol = way.protocol;
    this.#options = options;
    this.#client = client;
    this.#thread = new Thread(remote.name, options.before);
    this.#limits = limits;
    this.#headers = headersOf(options);
  }

  start(of: Outgoing, signal: AbortSignal): Promise<Started> {
    return this.#send(of, undefined, signal);
  }

  reply(of: Reply, signal: AbortSignal): Promise<Started> {
    return this.#send(of, of.taskId, signal);
  }

  async #send(of: Outgoing, taskId: string | undefined, signal: AbortSignal): Promise<Started> {
    signal.throwIfAborted();
    this.#checkRequired();
    const { trace, facts, remote } = this.#options;
    if (of.parts.length === 0)
      throw new RemoteError("invalid", remote.name, "expected a message of at least one part", {
        sent: false,
      });
    const request = sendRequest(of, { trace, extensions: facts?.card.extensions });
    if (this.streams && of.stream !== false) {
      try {
        return await this.#streamed(request, taskId, signal);
      } catch (error) {
        if (!isStreamless(error)) throw error;
      }
    }
    const { sendMs } = this.#limits;
    const answer = await this.#ask(signal, (on) => this.#client.sendMessage(request, on), sendMs);
    return { seen: this.#take(readSent(answer), taskId) };
  }

  async #streamed(
    request: ReturnType<typeof sendRequest>,
    taskId: string | undefined,
    signal: AbortSignal,
  ): Promise<Started> {
    const rest = this.#stream(signal, taskId, (options) => this.#client.sendMessageStream(request, options));
    const seen = await rest.next();
    if (seen !== undefined) return { seen, rest };
    // Unreachable: a stream that ends before it has said anything is an error.
    throw new RemoteError("lost", this.#options.remote.name, "it says nothing", { sent: true });
  }

  /** An agent that insists on what we do not understand is not asked (A2A 1.0 §4.6.1). */
  #checkRequired(): void {
    const { remote, facts } = this.#options;
    const required = facts?.card.extensions.required ?? [];
    const fine = new Set([...understood(required), ...activated(remote.headers)]);
    if (required.every((uri) => fine.has(uri))) return;
    throw new RemoteError("unsupported", remote.name, "its card requires an extension that we do not have", {
      sent: false,
    });
  }

  find(of: Pick<Outgoing, "contextId" | "messageId">, signal: AbortSignal) {
    if (this.protocol === "0.3") return Promise.resolve("unknown" as const);
    return findMessage(of, {
      list: (request) => this.#ask(signal, (options) => this.#client.listTasks(request, options)),
      get: (taskId) => this.get(taskId, signal),
      remote: this.#options.remote.name,
    });
  }

  async get(taskId: string, signal: AbortSignal): Promise<Seen> {
    const request = { tenant: "", id: taskId, historyLength: 0 };
    const task = await this.#ask(signal, (options) => this.#client.getTask(request, options));
    return this.#take(readTask(task), taskId);
  }

  async *follow(taskId: string, signal: AbortSignal): AsyncGenerator<Seen, void, undefined> {
    const { name } = this.#options.remote;
    if (!this.streams) throw new RemoteError("unsupported", name, "it has no streams", { sent: false });
    const stream = this.#stream(signal, taskId, (options) =>
      this.#client.resubscribeTask({ tenant: "", id: taskId }, options),
    );
    try {
      yield* stream;
    } catch (error) {
      // A task that is over has no stream (A2A 1.0 §3.1.6).
      const over = isRemote(error, "unsupported") ? await this.get(taskId, signal) : undefined;
      if (over?.state === undefined || !isTerminal(over.state)) throw error;
      yield over;
    } finally {
      await stream.close();
    }
  }

  async cancel(taskId: string, signal: AbortSignal): Promise<Canceled> {
    const metadata = { "a2a.trace": traceOf(this.#options.trace) };
    try {
      const task = await this.#ask(signal, (options) =>
        this.#client.cancelTask({ tenant: "", id: taskId, metadata }, options),
      );
      return outcomeOf(this.#take(readTask(task), taskId), "asked");
    } catch (error) {
      if (isRemote(error, "not_found")) return { outcome: "gone" };
      if (isRemote(error, "unsupported")) return { outcome: "unsupported" };
      if (isRemote(error, "not_cancelable")) return this.#whyNot(taskId, signal);
      throw error;
    }
  }

  /** A task cannot be cancelled because it is over, or because the agent does not. */
  async #whyNot(taskId: string, signal: AbortSignal): Promise<Canceled> {
    try {
      const seen = await this.get(taskId, signal);
      return seen.state !== undefined && isTerminal(seen.state)
        ? outcomeOf(seen, "over")
        : { outcome: "unsupported" };
    } catch (error) {
      if (isRemote(error, "not_found")) return { outcome: "gone" };
      throw error;
    }
  }

  #take(read: Reading<Seen>, taskId?: string): Seen {
    return this.#thread.take(read, taskId);
  }

  #stream(
    signal: AbortSignal,
    taskId: string | undefined,
    open: (options: CallOptions) => AsyncIterable<unknown>,
  ): TaskStream {
    return new TaskStream({
      remote: this.#options.remote.name,
      limits: this.#limits,
      thread: this.#thread,
      taskId,
      signal,
      open: (within) => open({ signal: within, serviceParameters: { ...this.#headers } }),
    });
  }

  async #ask<T>(
    signal: AbortSignal,
    call: (options: CallOptions) => Promise<T>,
    ms = this.#limits.askMs,
  ): Promise<T> {
    signal.throwIfAborted();
    const { name } = this.#options.remote;
    const late = new AbortController();
    const what = new RemoteError("timeout", name, `it did not answer within ${ms} ms`, { sent: true });
    const timer = setTimeout(() => late.abort(what), ms);
    try {
      const within = AbortSignal.any([signal, late.signal]);
      return await call({ signal: within, serviceParameters: { ...this.#headers } });
    } catch (error) {
      signal.throwIfAborted();
      throw remoteError(name, error);
    } finally {
      clearTimeout(timer);
    }
  }
}

interface CallOptions {
  readonly signal: AbortSignal;
  readonly serviceParameters: Record<string, string>;
}

/** Canceled is canceled, whoever has done it; any other end came before. */
function outcomeOf(seen: Seen, otherwise: "asked" | "over"): Canceled {
  if (seen.state === "TASK_STATE_CANCELED") return { outcome: "canceled", seen };
  const isOver = seen.state !== undefined && isTerminal(seen.state);
  return { outcome: isOver ? "over" : otherwise, seen };
}

/**
 * Whether an agent says that it has no streams after all, whatever its card says (A2A 1.0 §3.3.4): then it has not taken
 * the message, and may be sent it without one.
 */
function isStreamless(error: unknown): boolean {
  return error instanceof RemoteError && !error.sent && [-32_601, -32_004].includes(error.rpcCode ?? 0);
}

function isRemote(error: unknown, code: RemoteError["code"]): boolean {
  return error instanceof RemoteError && error.code === code;
}
