import { mkdirSync, realpathSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { SQSClient } from "@aws-sdk/client-sqs";
import { awsSettings } from "./aws.ts";
import { startDynamoDb } from "./dynamodb.ts";
import { HostError } from "./errors.ts";
import { EventSource } from "./event-source.ts";
import { lockFolder } from "./folder-lock.ts";
import { functionEnvironment } from "./function-environment.ts";
import { FunctionPool } from "./function-pool.ts";
import { HostFile } from "./host-file.ts";
import type { Endpoints, ExistingNats, HostOptions } from "./host-options.ts";
import { ACCOUNT } from "./intrinsics.ts";
import { Limiter } from "./limiter.ts";
import { LogFile } from "./log-file.ts";
import { findNatsServer, startNatsServer } from "./nats-server.ts";
import { Processes } from "./processes.ts";
import { Queues } from "./queues.ts";
import type { InvocationResult } from "./runtime-api.ts";
import { Schedule } from "./schedules.ts";
import { readStack, type Stack } from "./stack.ts";
import { scaledQueue, scaledTimeoutMs } from "./time-scale.ts";

export type { Endpoints, HostEvent, HostOptions } from "./host-options.ts";
export type { InvocationResult } from "./runtime-api.ts";

/** How long a stopping host waits for batches that are being worked on. */
const STOP_GRACE_MS = 2_000;
const DEFAULT_NATS_PORT = 4222;

/** A running host. */
export interface Host {
  /** The real parts, not what `route` made of them. */
  readonly endpoints: Endpoints;
  readonly tableName: string;
  readonly bucketName: string;
  /** Queue URLs by the queues' names. */
  readonly queueUrls: Readonly<Record<string, string>>;
  /** The functions and the processes that run them now. */
  functions(): { readonly name: string; readonly pids: readonly number[] }[];
  /** The processes of the servers that the host runs itself. */
  servers(): { readonly name: string; readonly pid: number | undefined }[];
  /** Invokes a function as a synchronous call would. */
  invoke(name: string, event: unknown): Promise<InvocationResult>;
  /** Ends everything that the host has started; nothing runs when it returns. */
  stop(): Promise<void>;
}

/**
 * Runs what the one stack of a cloud assembly declares on this machine: the table, the queues with their redrive
 * policies, the bucket, the functions with their event source mappings and schedules, and a NATS server.
 *
 * @throws HostError when a part cannot start; nothing is left running then
 */
export async function startHost(options: HostOptions): Promise<Host> {
  const closing = new AsyncDisposableStack();
  try {
    return await start(options, closing);
  } catch (error) {
    await closing.disposeAsync();
    throw error;
  }
}

async function start(options: HostOptions, closing: AsyncDisposableStack): Promise<Host> {
  const { log = () => {}, timeScale: scale = 1 } = options;
  if (!(scale >= 1 && Number.isFinite(scale)))
    throw new RangeError(`time scale: expected a number of at least 1, got ${scale}`);
  const onTrouble = (message: string) => log({ type: "trouble", message });
  const progress = (message: string) => {
    options.signal?.throwIfAborted();
    log({ type: "progress", message });
  };
  mkdirSync(options.dataDir, { recursive: true });
  const dataDir = realpathSync(options.dataDir);

  const lock = lockFolder(dataDir);
  closing.defer(() => lock.release());
  const processes = new Processes(dataDir);
  if ((await processes.reap()) > 0) progress("ended what an earlier host had left running");
  closing.defer(() => processes.stopAll());
  // However this process ends, except by SIGKILL, its children end with it.
  const killAll = () => processes.killAll();
  process.once("exit", killAll);
  closing.defer(() => void process.off("exit", killAll));

  const { assemblyDir: given } = options;
  const assemblyDir = typeof given === "string" ? given : await given();
  progress("starting SQS and S3");
  const queues = await Queues.start(join(dataDir, "queues"));
  closing.defer(() => queues.stop());
  const stack = readStack(assemblyDir, queues.queueUrlBase);
  const scaled = stack.queues.map((queue) => scaledQueue(queue, stack.mappings, stack.functions, scale));
  await queues.declareQueues(scaled);
  await queues.releaseReceived(stack.queues);
  await queues.declareBuckets(stack.buckets);

  progress("starting DynamoDB");
  const dynamodb = await startDynamoDb(dataDir, stack.tables, processes, onTrouble);
  closing.defer(() => dynamodb.server.stop());

  const nats = await natsFor(options, dataDir, processes, progress, onTrouble);
  if (nats.server) closing.defer(() => nats.server?.stop());

  const endpoints: Endpoints = {
    dynamodb: dynamodb.url,
    sqs: queues.url,
    s3: queues.url,
    nats: nats.servers,
  };
  const seen = (await options.route?.(endpoints)) ?? endpoints;

  progress("starting the functions");
  const hostFile = new HostFile(join(dataDir, "host.json"));
  closing.defer(() => hostFile.remove());
  const pools = startPools(readStack(assemblyDir, `${seen.sqs}/${ACCOUNT}`), {
    options,
    dataDir,
    processes,
    scale,
    endpoints: seen,
    nats,
    onChange: () => hostFile.changed(),
  });
  closing.defer(async () => void (await Promise.all(Array.from(pools.values(), (pool) => pool.stop()))));

  const host: Host = {
    endpoints,
    tableName: stack.tables[0]?.name ?? "",
    bucketName: stack.buckets[0] ?? "",
    queueUrls: Object.fromEntries(stack.queues.map(({ name }) => [name, `${queues.queueUrlBase}/${name}`])),
    functions: () => Array.from(pools.values(), ({ name, pids }) => ({ name, pids })),
    servers: () => [
      { name: "dynamodb", pid: dynamodb.server.pid },
      ...(nats.server ? [{ name: "nats", pid: nats.server.pid }] : []),
    ],
    invoke: (name, event) => poolOf(pools, name).invoke(JSON.stringify(event)),
    stop: () => closing.disposeAsync(),
  };
  options.signal?.throwIfAborted();
  hostFile.write(() => describe(host, options, nats, dataDir));
  startSources(stack, pools, queues, scale, onTrouble, closing);
  return host;
}

interface Nats {
  /** Comma-separated. */
  readonly servers: string;
  readonly credentials: string;
  readonly ca: string | undefined;
  readonly server?: Awaited<ReturnType<typeof startNatsServer>>["server"];
}

async function natsFor(
  options: HostOptions,
  dataDir: string,
  processes: Processes,
  progress: (message: string) => void,
  onTrouble: (message: string) => void,
): Promise<Nats> {
  if (options.nats) return existing(options.nats);
  progress("starting NATS");
  const binary = await findNatsServer(progress);
  const port = options.natsPort ?? DEFAULT_NATS_PORT;
  const { url, server } = await startNatsServer(binary, dataDir, port, processes, onTrouble);
  return { servers: url, credentials: "none", ca: undefined, server };
}

function existing({ servers, credentials = "none", ca }: ExistingNats): Nats {
  return { servers: servers.join(","), credentials, ca };
}

interface PoolSettings {
  readonly options: HostOptions;
  readonly dataDir: string;
  readonly processes: Processes;
  readonly scale: number;
  readonly endpoints: Endpoints;
  readonly nats: Nats;
  readonly onChange: () => void;
}

function startPools(stack: Stack, settings: PoolSettings): Map<string, FunctionPool> {
  const { options, dataDir, processes, scale, endpoints, nats, onChange } = settings;
  const starts = new Limiter(Math.max(2, availableParallelism()));
  return new Map(
    stack.functions
      .filter((declaration) => declaration.codeDir !== "")
      .map((declaration) => {
        const file = new LogFile(join(dataDir, "logs", `${declaration.name}.log`));
        const pool = new FunctionPool({
          declaration,
          environment: functionEnvironment(declaration, endpoints, nats, scale, options.env),
          timeoutMs: scaledTimeoutMs(declaration, scale),
          processes,
          starts,
          onChange,
          onLine: (line) => {
            file.write(line);
            options.log?.({ type: "line", functionName: declaration.name, line });
          },
        });
        return [declaration.name, pool];
      }),
  );
}

function startSources(
  stack: Stack,
  pools: ReadonlyMap<string, FunctionPool>,
  queues: Queues,
  scale: number,
  onTrouble: (message: string) => void,
  closing: AsyncDisposableStack,
): void {
  const client = new SQSClient(awsSettings(queues.url));
  closing.defer(() => client.destroy());
  const sources = stack.mappings.map(
    (mapping) =>
      new EventSource({
        mapping,
        client,
        queueUrl: `${queues.queueUrlBase}/${mapping.queueName}`,
        invoke: (payload) => poolOf(pools, mapping.functionName).invoke(payload),
        onTrouble,
      }),
  );
  closing.defer(async () => void (await Promise.all(sources.map((source) => source.stop(STOP_GRACE_MS)))));
  const schedules = stack.schedules.map((schedule) => {
    const invoke = (payload: string) => poolOf(pools, schedule.functionName).invoke(payload);
    return new Schedule({ schedule, scale, invoke, onTrouble });
  });
  closing.defer(() => {
    for (const schedule of schedules) schedule.stop();
  });
  for (const part of [...sources, ...schedules]) part.start();
}

function poolOf(pools: ReadonlyMap<string, FunctionPool>, name: string): FunctionPool {
  const pool = pools.get(name);
  if (pool) return pool;
  throw new HostError("assembly_invalid", `no function ${name}; there are ${[...pools.keys()].join(", ")}`);
}

function describe(host: Host, options: HostOptions, nats: Nats, dataDir: string): object {
  return {
    pid: process.pid,
    dataDir,
    nats: nats.servers,
    natsCredentials: nats.credentials,
    natsCa: nats.ca,
    dynamodb: host.endpoints.dynamodb,
    sqs: host.endpoints.sqs,
    s3: host.endpoints.s3,
    table: host.tableName,
    bucket: host.bucketName,
    queues: host.queueUrls,
    functions: host.functions(),
    servers: host.servers(),
    timeScale: options.timeScale ?? 1,
  };
}
