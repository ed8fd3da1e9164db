import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { AgentCard, Extensions, formatSSEErrorEvent, formatSSEEvent, SSE_HEADERS } from "@a2a-js/sdk";
import { LegacyJsonRpcTransportHandler } from "@a2a-js/sdk/compat/v0_3/server";
import {
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
  validateVersion,
} from "@a2a-js/sdk/server";
import { type CardOptions, currentCard, legacyCard } from "./card.ts";
import { type Execution, ScriptedExecutor } from "./executor.ts";
import { type HttpServer, type SeenRequest, sendJson, serveHttp } from "./http.ts";

export { blast, type CardOptions, extension, hitl } from "./card.ts";
export type { Execution } from "./executor.ts";
export { type SeenRequest, sendJson } from "./http.ts";

/** How a server is to be. */
export interface RemoteServerOptions {
  readonly card?: CardOptions;
  /** What each skill does whatever the message says (script.ts). */
  readonly skills?: Readonly<Record<string, string>>;
  /** Whether a request to the agent (not for its card) is let in; else it is answered with 401. */
  readonly authorize?: (request: SeenRequest) => boolean | Promise<boolean>;
  /** Free, if it is not given: a server that comes back has to be where it was. */
  readonly port?: number;
}

/** A real A2A agent of `@a2a-js/sdk`, which does what its messages say (script.ts). */
export interface RemoteServer extends Omit<HttpServer, "origin"> {
  /** What an operator writes as its `url`; its origin is what `outbound.allow` has. */
  readonly url: string;
  readonly origin: string;
  /** What was executed, in order. */
  readonly executions: readonly Execution[];
  /** How often a message was executed. */
  executed(messageId: string): number;
  /** The ids of the tasks whose cancel came as far as the agent. */
  readonly canceled: readonly string[];
  /** Lets a script go on that holds for this name. */
  release(name: string): void;
  /** From now on the card is so; what is not given is as at the start. */
  setCard(card: CardOptions): Promise<void>;
  /** From now on these methods of JSON-RPC are answered with an error of this code; with none they are served again. */
  refuse(methods: readonly string[], code?: number): void;
}

/** An agent of A2A 1.0 that has streams. */
export function streamingServer(options: RemoteServerOptions = {}): Promise<RemoteServer> {
  return serve(options, { streaming: true, legacy: false });
}

/** An agent of A2A 1.0 that has none: it is asked how far it is. */
export function pollingServer(options: RemoteServerOptions = {}): Promise<RemoteServer> {
  return serve(options, { streaming: false, legacy: false });
}

/** An agent of A2A 0.3 that has streams, with its card at the path of before alone. */
export function legacyServer(options: RemoteServerOptions = {}): Promise<RemoteServer> {
  return serve(options, { streaming: true, legacy: true });
}

interface Kind {
  readonly streaming: boolean;
  readonly legacy: boolean;
}

async function serve(options: RemoteServerOptions, kind: Kind): Promise<RemoteServer> {
  const executor = new ScriptedExecutor(options.skills);
  const agent = await Agent.of(options, kind, executor);
  const http = await serveHttp((request, response) => agent.answer(request, response), options.port);
  const { origin } = http;
  return {
    ...http,
    url: `${origin}/a2a`,
    executions: executor.executions,
    executed: (id) => executor.executions.filter(({ messageId }) => messageId === id).length,
    canceled: executor.canceled,
    release: (name) => executor.release(name),
    setCard: (card) => agent.setCard({ ...options.card, ...card }),
    refuse: (methods, code) => agent.refuse(methods, code),
  };
}

/** What is behind the HTTP of a server. */
class Agent {
  readonly #options: RemoteServerOptions;
  readonly #kind: Kind;
  /** What the SDK goes by; it stays the same object. */
  readonly #known: AgentCard = AgentCard.fromJSON({});
  readonly #handler: JsonRpcTransportHandler | LegacyJsonRpcTransportHandler;
  readonly #refused = new Map<string, number>();
  #card = "";

  private constructor(options: RemoteServerOptions, kind: Kind, executor: ScriptedExecutor) {
    this.#options = options;
    this.#kind = kind;
    const handler = new DefaultRequestHandler(this.#known, new InMemoryTaskStore(), executor);
    this.#handler = kind.legacy
      ? new LegacyJsonRpcTransportHandler(handler)
      : new JsonRpcTransportHandler(handler);
  }

  static async of(options: RemoteServerOptions, kind: Kind, executor: ScriptedExecutor): Promise<Agent> {
    const agent = new Agent(options, kind, executor);
    await agent.setCard(options.card ?? {});
    return agent;
  }

  async setCard(options: CardOptions): Promise<void> {
    const told = { streaming: this.#kind.streaming, ...options };
    const current = await currentCard(told);
    Object.assign(this.#known, AgentCard.fromJSON(current));
    this.#card = JSON.stringify(this.#kind.legacy ? legacyCard(told) : current);
  }

  refuse(methods: readonly string[], code?: number): void {
    for (const method of methods)
      if (code === undefined) this.#refused.delete(method);
      else this.#refused.set(method, code);
  }

  async answer(request: SeenRequest, response: ServerResponse): Promise<void> {
    const cardPath = this.#kind.legacy ? "/.well-known/agent.json" : "/.well-known/agent-card.json";
    if (request.method === "GET" && request.path === cardPath) return this.#sendCard(request, response);
    if (request.method !== "POST" || request.path !== "/a2a")
      return void response.writeHead(404).end("not here");
    if (!((await this.#options.authorize?.(request)) ?? true))
      return void response.writeHead(401, { "www-authenticate": "Bearer" }).end("who are you?");
    await this.#call(request, response);
  }

  #sendCard({ headers }: SeenRequest, response: ServerResponse): void {
    const etag = `"${createHash("sha256").update(this.#card).digest("hex").slice(0, 16)}"`;
    if (headers["if-none-match"] === etag) return void response.writeHead(304, { etag }).end();
    response.writeHead(200, { "content-type": "application/json", etag }).end(this.#card);
  }

  async #call({ headers, body, rpc = "" }: SeenRequest, response: ServerResponse): Promise<void> {
    const { id } = JSON.parse(body);
    const code = this.#refused.get(rpc);
    if (code !== undefined)
      return sendJson(response, { jsonrpc: "2.0", id, error: { code, message: `${rpc} is refused` } });
    const failure = (error: unknown) => {
      const mapped = this.#kind.legacy
        ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error)
        : JsonRpcTransportHandler.mapToJSONRPCError(error);
      return { jsonrpc: "2.0", id, error: mapped };
    };
    const requestedVersion = headers["a2a-version"] ?? "0.3";
    const named = headers[this.#kind.legacy ? "x-a2a-extensions" : "a2a-extensions"];
    const context = new ServerCallContext({
      requestedVersion,
      requestedExtensions: Extensions.parseServiceParameter(named),
    });
    try {
      if (!this.#kind.legacy) validateVersion(requestedVersion, this.#known, "JSONRPC");
      const answer = await this.#handler.handle(body, context);
      if (Symbol.asyncIterator in answer) await sendStream(response, answer, failure);
      else sendJson(response, answer);
    } catch (error) {
      sendJson(response, failure(error));
    }
  }
}

/**
 * As the SDK's own handlers for express do it: what fails before the first event is an answer of JSON; and it is read to
 * its end though nobody listens any more, for a task is only kept while its events are read.
 */
async function sendStream(
  response: ServerResponse,
  events: AsyncIterable<unknown>,
  failure: (error: unknown) => object,
): Promise<void> {
  try {
    for await (const event of events) {
      if (!response.headersSent) response.writeHead(200, SSE_HEADERS);
      if (!response.destroyed) response.write(formatSSEEvent(event));
    }
    if (!response.headersSent) response.writeHead(200, SSE_HEADERS);
  } catch (error) {
    if (!response.headersSent) return sendJson(response, failure(error));
    response.write(formatSSEErrorEvent(failure(error)));
  }
  response.end();
}
