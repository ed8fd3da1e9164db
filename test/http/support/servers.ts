import { createServer as createHttp, type IncomingMessage, type RequestListener } from "node:http";
import { createServer as createHttps } from "node:https";
import { createServer as createTcp, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import * as z from "zod";

/** A request that a server was asked. */
export interface Seen {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  /** The address that the connection went to. */
  readonly address: string | undefined;
  /** The name that TLS was told. */
  readonly servername: unknown;
}

export interface TestServer {
  readonly origin: string;
  readonly port: number;
  readonly seen: Seen[];
}

interface Where {
  readonly host?: string;
  readonly port?: number;
  /** Over TLS, under this name. */
  readonly tls?: { readonly name: string; readonly cert: string; readonly key: string };
}

/** A real server on this machine, that is gone after the test. */
export async function serve(t: TestContext, answer: RequestListener, where: Where = {}): Promise<TestServer> {
  const seen: Seen[] = [];
  const listener: RequestListener = async (request, response) => {
    const { method, url, headers, socket } = request;
    const body = await text(request);
    const servername: unknown = Reflect.get(socket, "servername");
    seen.push({ method, path: url, headers, body, address: socket.localAddress, servername });
    answer(request, response);
  };
  const { tls } = where;
  const server = tls === undefined ? createHttp(listener) : createHttps(tls, listener);
  const port = await listen(t, server, where);
  t.after(() => server.closeAllConnections());
  const scheme = tls === undefined ? "http" : "https";
  return { origin: `${scheme}://${tls?.name ?? where.host ?? "127.0.0.1"}:${port}`, port, seen };
}

/** A server that speaks what it likes. */
export async function serveRaw(t: TestContext, speak: (socket: Socket) => void): Promise<TestServer> {
  const sockets = new Set<Socket>();
  const server = createTcp((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", () => speak(socket));
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  const port = await listen(t, server, {});
  return { origin: `http://127.0.0.1:${port}`, port, seen: [] };
}

const address = z.object({ port: z.int() });

function listen(t: TestContext, server: Server, { host = "127.0.0.1", port = 0 }: Where): Promise<number> {
  t.after(() => void server.close());
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => resolve(address.parse(server.address()).port));
  });
}
