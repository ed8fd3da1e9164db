import { Agent, createServer, type IncomingMessage, type ServerResponse, request as send } from "node:http";
import type { Socket } from "node:net";
import type { Came } from "../seen-calls.ts";
import { awsWrite, type Write } from "./aws-writes.ts";
import type { Part, Point, Refusal, Verdict } from "./points.ts";

export interface HttpProxyOptions {
  readonly part: Exclude<Part, "nats">;
  /** The real part's URL. */
  readonly target: string;
  /** The point that a write is. */
  readonly pointOf: (
    part: Part,
    write: Write,
    of: { body: Buffer; subject: string; socket: Socket },
  ) => Point;
  readonly before: (point: Point) => Promise<Verdict>;
  readonly after: (point: Point, refused: boolean) => Promise<Verdict>;
  /** Asked about a request that only reads. */
  readonly read: (part: Part, kind: string) => Promise<Verdict>;
  /** Told of every request. */
  readonly came?: (came: Came, socket: Socket) => void;
}

/** What stands before a part and can be made to look as if the part were out of reach. */
export interface PartProxy {
  readonly url: string;
  /** While set, connections are reset, those that exist and those that are tried. */
  outOfReach(out: boolean): void;
  stop(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** Starts a proxy before one of AWS's stand-ins. */
export async function startHttpProxy(options: HttpProxyOptions): Promise<PartProxy> {
  const agent = new Agent({ keepAlive: true });
  const target = new URL(options.target);
  const sockets = new Set<Socket>();
  let out = false;
  const server = createServer((request, response) => {
    handle(options, target, agent, request, response).catch(() => request.socket.destroy());
  });
  server.requestTimeout = 0;
  server.keepAliveTimeout = 60_000;
  server.on("connection", (socket) => {
    if (out) return void socket.resetAndDestroy();
    sockets.add(socket);
    socket.on("error", () => {}); // a killed process resets its connections
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    outOfReach(value) {
      out = value;
      if (out) for (const socket of sockets) socket.resetAndDestroy();
    },
    async stop() {
      agent.destroy();
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function handle(
  options: HttpProxyOptions,
  target: URL,
  agent: Agent,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { socket } = request;
  const body = await read(request);
  const { method = "GET", url: path = "/" } = request;
  const header = request.headers["x-amz-target"];
  const operation = typeof header === "string" ? header : undefined;
  options.came?.(
    { service: options.part, operation: operation?.split(".")[1] ?? method, path, body },
    socket,
  );
  const write = awsWrite(options.part, { method, path, target: operation, body });
  const forward = () => forwardTo(target, agent, request, body);
  if (write === undefined) {
    const verdict = await options.read(options.part, operation?.split(".")[1] ?? method);
    if (verdict === "drop" || verdict === "cut") return void socket.destroy();
    if (typeof verdict === "object") return refuse(response, verdict);
    return deliver(response, await forward());
  }

  const point = options.pointOf(options.part, write, { body, subject: path, socket });
  const sending = await options.before(point);
  if (sending === "drop" || sending === "cut") return void socket.destroy();
  if (typeof sending === "object") return refuse(response, sending);
  let answer = await forward();
  if (sending === "twice") answer = await forward();
  const telling = await options.after(point, answer.status >= 400);
  if (telling === "drop" || telling === "cut") return void socket.destroy();
  deliver(response, answer);
}

function forwardTo(target: URL, agent: Agent, from: IncomingMessage, body: Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { ...from.headers, host: target.host, "content-length": String(body.byteLength) };
    const { hostname, port } = target;
    const { "transfer-encoding": _, expect: __, ...rest } = headers;
    const outgoing = send(
      { hostname, port, method: from.method, path: from.url, headers: rest, agent },
      (answer) => {
        const { statusCode: status = 502, headers } = answer;
        read(answer).then((body) => resolve({ status, headers, body }), reject);
      },
    );
    outgoing.once("error", reject);
    outgoing.end(body);
  });
}

function refuse(response: ServerResponse, { status, headers, body }: Refusal): void {
  response.writeHead(status, { ...headers, "content-length": String(Buffer.byteLength(body)) });
  response.end(body);
}

function deliver(response: ServerResponse, { status, headers, body }: Answer): void {
  const { "transfer-encoding": _, connection: __, "keep-alive": ___, ...rest } = headers;
  // An answer to HEAD tells the length of a body that it does not have.
  const length = response.req.method === "HEAD" ? {} : { "content-length": String(body.byteLength) };
  response.writeHead(status, { ...rest, ...length });
  response.end(body);
}

async function read(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks);
}
