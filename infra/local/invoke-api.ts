import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type InvocationResult, MAX_PAYLOAD_BYTES } from "./runtime-api.ts";

/** What calls the functions, by their names. */
export interface Invocable {
  has(name: string): boolean;
  invoke(name: string, payload: string): Promise<InvocationResult>;
}

/**
 * The one request of Lambda's API by which a function is called and its answer waited for (AWS Lambda API Reference,
 * Invoke), on the loopback interface: the command asks a local host as it asks AWS.
 */
export class InvokeApi {
  readonly #server: Server;
  readonly #functions: Invocable;

  static async listen(functions: Invocable): Promise<InvokeApi> {
    const api = new InvokeApi(functions);
    await new Promise<void>((resolve, reject) => {
      api.#server.once("error", reject).listen(0, "127.0.0.1", resolve);
    });
    return api;
  }

  private constructor(functions: Invocable) {
    this.#functions = functions;
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch(() => response.destroy());
    });
  }

  get url(): string {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? `http://127.0.0.1:${address.port}` : "";
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, named] =
      /^POST \/2015-03-31\/functions\/([^/?]+)\/invocations$/.exec(`${request.method} ${request.url}`) ?? [];
    const name = named === undefined ? "" : decodeURIComponent(named);
    // A page in a browser on this machine may send what it likes to any port, and tells that it is one.
    if (request.headers.origin !== undefined)
      return refuse(response, 403, "AccessDeniedException", "no page may call functions");
    if (named === undefined || !this.#functions.has(name))
      return refuse(response, 404, "ResourceNotFoundException", "there is no such function");
    const { "x-amz-invocation-type": type = "RequestResponse" } = request.headers;
    if (type !== "RequestResponse")
      return refuse(response, 400, "InvalidParameterValueException", "expected RequestResponse");
    const payload = await read(request);
    if (payload === undefined)
      return refuse(response, 413, "RequestTooLargeException", `over ${MAX_PAYLOAD_BYTES} bytes`);
    answer(response, await this.#functions.invoke(name, payload || "{}"));
  }
}

function answer(response: ServerResponse, result: InvocationResult): void {
  const json = { "content-type": "application/json" };
  if (result.ok) return void response.writeHead(200, json).end(result.payload);
  const { errorType, errorMessage } = result;
  response.writeHead(200, { ...json, "x-amz-function-error": "Unhandled" });
  response.end(JSON.stringify({ errorType, errorMessage }));
}

function refuse(response: ServerResponse, status: number, type: string, Message: string): void {
  response.writeHead(status, { "content-type": "application/json", "x-amzn-errortype": type });
  response.end(JSON.stringify({ Message }));
}

async function read(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.byteLength;
    if (size > MAX_PAYLOAD_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
