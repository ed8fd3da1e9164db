import { appendFileSync } from "node:fs";
import { createServer, type IncomingMessage, request as send } from "node:http";
import type { Socket } from "node:net";
import type { Endpoints } from "../../infra/local/host.ts";
import { callsIn, type Seen } from "../infra/support/calls.ts";
import { callerOf, type Running } from "./proxy/callers.ts";

/** The variable that names the file to which end-to-end runs add what functions ask AWS for (test/infra/record.ts). */
export const SEEN_CALLS_FILE = "SLUICE_SEEN_CALLS_FILE";

/**
 * For a host's option `route`: lets everything pass, and notes which function asks for what, a line each: its name, a
 * tab, the call.
 *
 * @param running the functions' processes, asked for at each new connection
 */
export function noteCalls(file: string, running: () => Running): (real: Endpoints) => Promise<Endpoints> {
  const known = new Set<string>();
  const note = (socket: Socket, seen: Seen) => {
    const name = nameAt(socket, running);
    for (const call of name === undefined ? [] : callsIn(seen)) {
      const line = `${name}\t${call}\n`;
      if (known.has(line)) continue;
      known.add(line);
      appendFileSync(file, line);
    }
  };
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
  note: (socket: Socket, seen: Seen) => void,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const { method = "GET", url: path = "/", headers, socket } = request;
    const body = await read(request);
    const operation = String(headers["x-amz-target"] ?? `.${method}`).split(".")[1] ?? "";
    note(socket, { service, operation, path, body: service === "s3" ? {} : JSON.parse(body.toString()) });
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
