import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import * as z from "zod";

/** A request as it came. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The method of JSON-RPC, if the body has one. */
  readonly rpc: string | undefined;
}

/** Answers a request in place of the server, or leaves it to it by `false`. */
export type Intercept = (request: SeenRequest, response: ServerResponse) => boolean;

/** A server of HTTP on this machine that notes down what it is asked. */
export interface HttpServer {
  readonly origin: string;
  readonly port: number;
  readonly requests: SeenRequest[];
  /** Whoever answers first: for what no SDK would answer. */
  intercept(by: Intercept | undefined): void;
  /** Breaks all connections, as a restart would; the server goes on. */
  drop(): void;
  close(): Promise<void>;
}

const rpcOf = z.object({ method: z.string() });

/** Serves on this machine, on a free port if none is given. */
export async function serveHttp(
  answer: (request: SeenRequest, response: ServerResponse) => Promise<void>,
  port = 0,
): Promise<HttpServer> {
  const requests: SeenRequest[] = [];
  let first: Intercept | undefined;
  const server = createServer(async (incoming, response) => {
    const request = await readRequest(incoming);
    requests.push(request);
    if (first?.(request, response)) return;
    await answer(request, response);
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = z.object({ port: z.number() }).parse(server.address());
  return {
    origin: `http://127.0.0.1:${address.port}`,
    port: address.port,
    requests,
    intercept: (by) => {
      first = by;
    },
    drop: () => server.closeAllConnections(),
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function readRequest(incoming: IncomingMessage): Promise<SeenRequest> {
  const body = await text(incoming);
  const headers = Object.entries(incoming.headersDistinct).map(([name, values = []]) => [
    name,
    values.join(", "),
  ]);
  return {
    method: incoming.method ?? "",
    path: incoming.url ?? "",
    headers: Object.fromEntries(headers),
    body,
    rpc: rpcIn(body),
  };
}

function rpcIn(body: string): string | undefined {
  try {
    return rpcOf.safeParse(JSON.parse(body)).data?.method;
  } catch {
    return undefined;
  }
}

/** Answers with JSON. */
export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}
