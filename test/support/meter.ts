import { Agent, createServer, type IncomingMessage, request as send } from "node:http";
import * as z from "zod";
import type { Endpoints } from "../../infra/local/host.ts";
import { itemBytes, rawItem, writeUnits } from "./item-size.ts";
import { startNatsProxy } from "./proxy/nats-proxy.ts";

/** A request that went by. */
export interface Passed {
  /** The part and what is asked of it: `dynamodb PutItem`, `sqs SendMessageBatch`, `nats publish result`. */
  readonly kind: string;
  /** Of a transaction its items, of a batch its messages, else 1. */
  readonly items: number;
  /** DynamoDB's write request units, those of the index included. */
  readonly writes: number;
  /** DynamoDB's read request units. */
  readonly reads: number;
  /** The request's body; of NATS its subject. */
  readonly body: string;
}

/** Requests taken together. */
export type Usage = Record<"requests" | "items" | "writes" | "reads", number>;

/** What requests come to. */
export function usageOf(passed: readonly Passed[]): Usage {
  const usage = { requests: passed.length, items: 0, writes: 0, reads: 0 };
  for (const { items, writes, reads } of passed) {
    usage.items += items;
    usage.writes += writes;
    usage.reads += reads;
  }
  return usage;
}

/** The requests to one part. */
export function ofPart(passed: readonly Passed[], part: "dynamodb" | "sqs" | "s3" | "nats"): Passed[] {
  return passed.filter(({ kind }) => kind.startsWith(`${part} `));
}

/** What the bridge and `cards` do whether there are tasks or not. */
const IDLE = new Set([
  ...["nats pull", "nats create stream", "nats create consumer"],
  ...["nats card", "nats heartbeat"],
]);

/** Counts what the functions ask of DynamoDB, SQS, S3 and NATS, reads included, on its way. */
export class Meter {
  #passed: Passed[] = [];
  #underWay = 0;
  readonly #stops: (() => void)[] = [];

  /** For a host's option `route`. */
  readonly route = async (real: Endpoints): Promise<Endpoints> => ({
    dynamodb: await this.#http("dynamodb", real.dynamodb),
    sqs: await this.#http("sqs", real.sqs),
    s3: await this.#http("s3", real.s3),
    nats: await this.#nats(real.nats),
  });

  /** Everything since {@link Meter.reset}, in the order of the answers. */
  get passed(): readonly Passed[] {
    return this.#passed;
  }

  /** Whether everything that was asked over HTTP is answered, and so counted. */
  get settled(): boolean {
    return this.#underWay === 0;
  }

  reset(): void {
    this.#passed = [];
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  async #http(part: "dynamodb" | "sqs" | "s3", target: string): Promise<string> {
    const agent = new Agent({ keepAlive: true });
    const server = createServer(async (request, response) => {
      this.#underWay++;
      response.once("close", () => this.#underWay--);
      const operation = String(request.headers["x-amz-target"] ?? `.${request.method}`).split(".")[1];
      const body = part === "dynamodb" ? askingForUnits(await read(request)) : await read(request);
      const headers = { ...request.headers, "content-length": String(body.byteLength) };
      const outgoing = send(
        target + request.url,
        { method: request.method, headers, agent },
        async (answer) => {
          const answered = await read(answer);
          const units = part === "dynamodb" ? dynamodbUnits(operation, body, answered) : NO_UNITS;
          const text = part === "s3" ? String(request.url) : body.toString();
          const items = part === "s3" ? 1 : itemsOf(body);
          this.#passed.push({ kind: `${part} ${operation}`, items, body: text, ...units });
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
    const note = (kind: string, subject: string) => {
      if (!IDLE.has(kind)) this.#passed.push({ kind, items: 1, body: subject, ...NO_UNITS });
    };
    const proxy = await startNatsProxy({
      target,
      taskOfAck: () => undefined,
      reads: (subject) => {
        if (READS.test(subject) && !OF_CARDS.test(subject)) note("nats read", subject);
      },
      pointOf: ({ kind }, { body, subject }) => {
        note(kind, subject);
        return { part: "nats", kind, tasks: [], body, subject, caller: undefined };
      },
      before: async () => "pass",
      after: async () => "pass",
    });
    this.#stops.push(() => void proxy.stop());
    return proxy.url;
  }
}

/** Reads of messages (NATS docs: "JetStream wire API reference"); what clients ask about streams is none. */
const READS = /^\$JS\.API\.(DIRECT\.GET|STREAM\.MSG\.GET)\./;

const OF_CARDS = /\.KV_A2A_PEERS(\.|$)/;

/** The same request, to be answered with what it costs (DynamoDB API: ReturnConsumedCapacity). */
function askingForUnits(body: Buffer): Buffer {
  const request: Record<string, unknown> = JSON.parse(body.toString());
  return Buffer.from(JSON.stringify({ ...request, ReturnConsumedCapacity: "INDEXES" }));
}

type Units = Pick<Passed, "writes" | "reads">;
const NO_UNITS: Units = { writes: 0, reads: 0 };

const consumed = z.object({ CapacityUnits: z.number() });
const capacity = z.union([
  z.object({ ConsumedCapacity: consumed.transform((one) => [one]) }),
  z.object({ ConsumedCapacity: z.array(consumed) }),
]);
const READING = /^(GetItem|Query|Scan|BatchGetItem|TransactGetItems)$/;

function dynamodbUnits(operation: string | undefined, request: Buffer, answer: Buffer): Units {
  const answered: unknown = JSON.parse(answer.toString());
  const read = capacity.safeParse(answered);
  const units = read.success
    ? read.data.ConsumedCapacity.reduce((sum, { CapacityUnits }) => sum + CapacityUnits, 0)
    : refusedUnits(answered, itemsOf(request));
  return READING.test(operation ?? "") ? { writes: 0, reads: units } : { writes: units, reads: 0 };
}

const refused = z.object({ __type: z.string(), Item: rawItem.optional() });
const TRANSACTION_FACTOR = 2;

/**
 * A write whose condition fails is charged by the item that it has found, and says nothing of it (Developer Guide,
 * "Condition expressions"); of a transaction that is cancelled, at least a unit for each item, twice.
 */
function refusedUnits(answer: unknown, items: number): number {
  const error = refused.safeParse(answer);
  if (!error.success) return 0;
  const { __type: type, Item } = error.data;
  if (type.endsWith("ConditionalCheckFailedException"))
    return Item === undefined ? 1 : writeUnits(itemBytes(Item));
  return type.endsWith("TransactionCanceledException") ? items * TRANSACTION_FACTOR : 0;
}

const many = z.union([
  z.object({ TransactItems: z.array(z.unknown()) }).transform(({ TransactItems }) => TransactItems.length),
  z.object({ Entries: z.array(z.unknown()) }).transform(({ Entries }) => Entries.length),
]);

function itemsOf(body: Buffer): number {
  return many.safeParse(JSON.parse(body.toString())).data ?? 1;
}

async function read(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks);
}
