import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import * as z from "zod";

/** What a function made of an event. */
export type InvocationResult =
  | { readonly ok: true; readonly payload: string }
  | { readonly ok: false; readonly errorType: string; readonly errorMessage: string };

export interface Invocation {
  readonly requestId: string;
  readonly functionArn: string;
  /** When the function's time is over, in milliseconds since 1970. */
  readonly deadline: number;
  readonly payload: string;
}

/** AWS Lambda quotas: the largest payload of a synchronous invocation, either way. */
export const MAX_PAYLOAD_BYTES = 6 * 1024 * 1024;

const errorReport = z
  .object({ errorType: z.string().catch("Error"), errorMessage: z.string().catch("") })
  .catch({
    errorType: "Error",
    errorMessage: "",
  });

/**
 * The Lambda Runtime API of one sandbox (AWS Lambda: "Using the Lambda runtime API for custom runtimes"): one
 * invocation at a time.
 */
export class RuntimeApi {
  readonly #server: Server;
  #waiting: ServerResponse | undefined;
  #onWaiting: (() => void) | undefined;
  #current: { readonly requestId: string; readonly answer: (result: InvocationResult) => void } | undefined;
  /** What the runtime reported about its start, or about a crash between invocations. */
  initError: { errorType: string; errorMessage: string } | undefined;

  static async listen(): Promise<RuntimeApi> {
    const api = new RuntimeApi();
    await new Promise<void>((resolve) => api.#server.listen(0, "127.0.0.1", resolve));
    return api;
  }

  private constructor() {
    this.#server = createServer((request, response) => void this.#handle(request, response));
    this.#server.requestTimeout = 0;
    this.#server.keepAliveTimeout = 0;
  }

  /** `AWS_LAMBDA_RUNTIME_API` for the sandbox. */
  get address(): string {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? `127.0.0.1:${address.port}` : "";
  }

  /** Resolves when the runtime asks for work. */
  async idle(): Promise<void> {
    if (this.#waiting === undefined) await new Promise<void>((resolve) => (this.#onWaiting = resolve));
  }

  /** Hands an invocation to a runtime that is idle; resolves with what it answers, and never if it does not. */
  deliver(invocation: Invocation): Promise<InvocationResult> {
    const response = this.#waiting;
    if (response === undefined) throw new Error("the runtime is not idle");
    this.#waiting = undefined;
    return new Promise((resolve) => {
      this.#current = { requestId: invocation.requestId, answer: resolve };
      response.writeHead(200, {
        "content-type": "application/json",
        "lambda-runtime-aws-request-id": invocation.requestId,
        "lambda-runtime-deadline-ms": String(invocation.deadline),
        "lambda-runtime-invoked-function-arn": invocation.functionArn,
      });
      response.end(invocation.payload);
    });
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, method, requestId, verb] =
      /^(GET|POST) \/2018-06-01\/runtime\/(?:invocation\/([^/]+)(?:\/(response|error))?|init\/error)$/.exec(
        `${request.method} ${request.url}`,
      ) ?? [];
    if (method === "GET" && requestId === "next") {
      this.#waiting = response;
      this.#onWaiting?.();
      this.#onWaiting = undefined;
      return;
    }
    const body = await read(request).catch(() => undefined);
    if (method !== "POST" || body === undefined) return reply(response, 404, "NotFound");
    if (requestId === undefined) {
      this.initError = report(body);
      return reply(response, 202);
    }
    if (this.#current?.requestId !== requestId) return reply(response, 400, "InvalidRequestID");
    const { answer } = this.#current;
    this.#current = undefined;
    if (verb === "error") answer({ ok: false, ...report(body) });
    else if (Buffer.byteLength(body) > MAX_PAYLOAD_BYTES)
      answer({
        ok: false,
        errorType: "Function.ResponseSizeTooLarge",
        errorMessage: `over ${MAX_PAYLOAD_BYTES} bytes`,
      });
    else answer({ ok: true, payload: body });
    reply(response, 202);
  }
}

function report(body: string): { errorType: string; errorMessage: string } {
  try {
    return errorReport.parse(JSON.parse(body));
  } catch {
    return { errorType: "Error", errorMessage: body };
  }
}

function reply(response: ServerResponse, status: number, errorType?: string): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(errorType === undefined ? { status: "OK" } : { errorType }));
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
