import { join } from "node:path";
import { type DynamoDb, startDynamoDb } from "./dynamodb.ts";
import type { FileTrouble } from "./file-trouble.ts";
import type { Endpoints, HostOptions } from "./host-options.ts";
import { findNatsServer, startNatsServer } from "./nats-server.ts";
import type { Processes } from "./processes.ts";
import { Queues } from "./queues.ts";
import type { Server } from "./server.ts";
import { readStack, type Stack } from "./stack.ts";
import { scaledQueue } from "./time-scale.ts";

const DEFAULT_NATS_PORT = 4222;

/** What everything that a host starts has in common. */
export interface Stage {
  readonly options: HostOptions;
  readonly dataDir: string;
  /** How many times faster than declared. */
  readonly scale: number;
  readonly processes: Processes;
  /** Ends what was started, the last first. */
  readonly closing: AsyncDisposableStack;
  readonly progress: (message: string) => void;
  readonly onTrouble: (message: string) => void;
  /** What becomes of files that cannot be written. */
  readonly files: FileTrouble;
}

export interface Nats {
  /** Divided by commas. */
  readonly servers: string;
  readonly credentials: string;
  /** The path of a PEM file. */
  readonly ca: string | undefined;
  /** The host's own server. */
  readonly server?: Server;
}

/** The parts that the functions work with, running. */
export interface Parts {
  /** What the assembly declares, with the real queues' URLs. */
  readonly stack: Stack;
  readonly queues: Queues;
  readonly dynamodb: DynamoDb;
  readonly nats: Nats;
  readonly endpoints: Endpoints;
}

/** Starts what the functions work with, and creates in it what the assembly declares. */
export async function startParts(stage: Stage, assemblyDir: string): Promise<Parts> {
  const { options, dataDir, scale, processes, closing, progress, onTrouble, files } = stage;
  progress("starting SQS and S3");
  const queues = await Queues.start(join(dataDir, "queues"));
  closing.defer(() => queues.stop());
  const stack = readStack(assemblyDir, queues.queueUrlBase);
  await queues.declareQueues(
    stack.queues.map((queue) =>
      scaledQueue(queue, stack.mappings, stack.functions, scale, options.shortestTimeoutMs),
    ),
  );
  await queues.releaseReceived(stack.queues);
  await queues.declareBuckets(stack.buckets);

  progress("starting DynamoDB");
  const dynamodb = await startDynamoDb(dataDir, stack.tables, processes, onTrouble, files);
  closing.defer(() => dynamodb.server.stop());

  const nats = await natsFor(stage);
  closing.defer(() => nats.server?.stop());

  const endpoints = { dynamodb: dynamodb.url, sqs: queues.url, s3: queues.url, nats: nats.servers };
  return { stack, queues, dynamodb, nats, endpoints };
}

async function natsFor({ options, dataDir, processes, progress, onTrouble, files }: Stage): Promise<Nats> {
  if (options.nats) {
    const { servers, credentials = "none", ca } = options.nats;
    return { servers: servers.join(","), credentials, ca };
  }
  progress("starting NATS");
  const binary = await findNatsServer(progress);
  const port = options.natsPort ?? DEFAULT_NATS_PORT;
  const { url, server } = await startNatsServer(binary, dataDir, port, processes, onTrouble, files);
  return { servers: url, credentials: "none", ca: undefined, server };
}
