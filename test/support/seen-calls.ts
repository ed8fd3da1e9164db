import { appendFileSync } from "node:fs";
import { createServer, type IncomingMessage, request as send } from "node:http";
import type { Socket } from "node:net";
import type { Endpoints } from "../../infra/local/host.ts";
import { callsIn, type Seen } from "../infra/support/calls.ts";
import { callerOf, type Running } from "./proxy/callers.ts";

/** The variable that names the file to which end-to-end runs add what functions ask AWS for (test/infra/record.ts). */
export const SEEN_CALLS_FILE = "SLUICE_SEEN_CALLS_FILE";

/** A request as it came, and what it was for: of S3 the method. */
export interface Came extends Pick<Seen, "service" | "operation" | "path"> {
  readonly body: Buffer;
}

/** What notes in a file which function asks for what, a line each, once: its name, a tab, the call. Others are not noted. */
export function callNoter(file: string): (name: string | undefined, came: Came) => void {
  const known = new Set<string>();
  return (name, { service, operation, path, body: bytes }) => {
    if (name === undefined) return;
    const body: unknown = service === "s3" ? {} : JSON.parse(bytes.toString());
    for (const call of callsIn({ service, operation, path, body })) {
      const line = `${name}\t${call}\n`;
      if (known.has(line)) continue;
      known.add(line);
      appendFileSync(file, line);
    }
  };
}

/**
 * For a host's option `route`: lets everything pass, and notes it ({@link callNoter}).
 *
 * @param running the functions' processes, asked for at each new connection
 */
export function noteCalls(file: string, running: () => Running): (real: Endpoints) => Promise<Endpoints> {
  const noted = callNoter(file);
  const note = (socket: Socket, came: Came) => noted(nameAt(socket, running), came);
  return async (real) => ({
    ...real,
    dynamodb: await startNoting("dynamodb", real.dynamodb, note),
    sqs: await startNoting("sqs", real.sqs, note),
    s3: await startNoting("s3", real.s3, note),
  });
}

const names = new WeakMap<Socket, string>();

function nameAt(socket: Socket, running: () => Running): string | undefined {
  const { remotePort, localPort } = socket;
  if (remotePort === undefined || localPort === undefined) return undefined;
  const name = names.get(socket) ?? callerOf({ remotePort, localPort }, running())?.name;
  if (name !== undefined) names.set(socket, name);
  return name;
}

/** A server that hands everything on, and ends with its process. */
async function startNoting(
  service: Seen["service"],
  target: string,
  note: (socket: Socket, came: Came) => void,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const { method = "GET", url: path = "/", headers, socket } = request;
    const body = await read(request);
    const operation = String(headers["x-amz-target"] ?? `.${method}`).split(".")[1] ?? "";
    note(socket, { service, operation, path, body });
    const outgoing = send(
      target + path,
      { method, headers: { ...headers, "content-length": body.byteLength } },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    outgoing.on("error", () => response.destroy());
    outgoing.end(body);
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
}

async function read(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks);
}
