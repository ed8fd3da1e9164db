import { Agent, createServer, type IncomingMessage, request as send } from "node:http";
import * as z from "zod";
import type { Endpoints } from "../../infra/local/host.ts";
import { startNatsProxy } from "../support/proxy/nats-proxy.ts";

/** What went by of one kind of request. */
export interface Usage {
  requests: number;
  /** DynamoDB's capacity units, read and written together; 0 for the other parts. */
  units: number;
}

const consumed = z.object({ CapacityUnits: z.number() });
/** A transaction tells of each table. */
const capacity = z.object({ ConsumedCapacity: z.union([consumed, z.array(consumed)]) });
const QUIET = new Set(["nats pull", "nats create stream", "nats create consumer"]);

/** Counts what the functions ask of DynamoDB, SQS, S3 and NATS, reads included, on its way. */
export class Meter {
  readonly usage = new Map<string, Usage>();
  readonly #stops: (() => void)[] = [];

  /** For a host's option `route`. */
  readonly route = async (real: Endpoints): Promise<Endpoints> => ({
    dynamodb: await this.#http("dynamodb", real.dynamodb),
    sqs: await this.#http("sqs", real.sqs),
    s3: await this.#http("s3", real.s3),
    nats: await this.#nats(real.nats),
  });

  reset(): void {
    this.usage.clear();
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  #count(kind: string, units = 0): void {
    const usage = this.usage.get(kind) ?? { requests: 0, units: 0 };
    usage.requests++;
    usage.units += units;
    this.usage.set(kind, usage);
  }

  async #http(part: string, target: string): Promise<string> {
    const agent = new Agent({ keepAlive: true });
    const server = createServer(async (request, response) => {
      const operation = String(request.headers["x-amz-target"] ?? `.${request.method}`).split(".")[1];
      const body = part === "dynamodb" ? askingForUnits(await read(request)) : await read(request);
      const headers = { ...request.headers, "content-length": String(body.byteLength) };
      const outgoing = send(
        target + request.url,
        { method: request.method, headers, agent },
        async (answer) => {
          const answered = await read(answer);
          this.#count(`${part} ${operation}`, part === "dynamodb" ? unitsOf(answered) : 0);
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          response.end(answered);
        },
      );
      outgoing.on("error", () => response.destroy());
      outgoing.end(body);
    });
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.#stops.push(() => {
      agent.destroy();
      server.close();
      server.closeAllConnections();
    });
    const address = server.address();
    return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  }

  async #nats(target: string): Promise<string> {
    const proxy = await startNatsProxy({
      target,
      taskOfAck: () => undefined,
      pointOf: ({ kind }, { body, subject }) => {
        if (!QUIET.has(kind)) this.#count(kind);
        return { part: "nats", kind, tasks: [], body, subject, caller: undefined };
      },
      before: async () => "pass",
      after: async () => "pass",
    });
    this.#stops.push(() => void proxy.stop());
    return proxy.url;
  }
}

/** The same request, to be answered with what it costs (DynamoDB API: ReturnConsumedCapacity). */
function askingForUnits(body: Buffer): Buffer {
  const request: Record<string, unknown> = JSON.parse(body.toString());
  return Buffer.from(JSON.stringify({ ...request, ReturnConsumedCapacity: "TOTAL" }));
}

function unitsOf(answer: Buffer): number {
  const read = capacity.safeParse(JSON.parse(answer.toString()));
  const all = read.success ? [read.data.ConsumedCapacity].flat() : [];
  return all.reduce((sum, { CapacityUnits }) => sum + CapacityUnits, 0);
}

async function read(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks);
}
