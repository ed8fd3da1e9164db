import { availableParallelism } from "node:os";
import { join } from "node:path";
import { SQSClient } from "@aws-sdk/client-sqs";
import { keyFolder } from "../../shared/cards/folder-vault.ts";
import { busyAwsSettings } from "./busy-aws.ts";
import { openDataFolder } from "./data-folder.ts";
import { HostError } from "./errors.ts";
import { EventSource } from "./event-source.ts";
import { FileTrouble } from "./file-trouble.ts";
import { lockFolder } from "./folder-lock.ts";
import { functionEnvironment, heldCredentials } from "./function-environment.ts";
import { FunctionPool } from "./function-pool.ts";
import { HostFile } from "./host-file.ts";
import type { Endpoints, HostOptions } from "./host-options.ts";
import { ACCOUNT } from "./intrinsics.ts";
import { InvokeApi } from "./invoke-api.ts";
import { Limiter } from "./limiter.ts";
import { dated, LogFile } from "./log-file.ts";
import { readAlarms } from "./metrics/definitions.ts";
import { Metrics } from "./metrics/watch.ts";
import { type Parts, type Stage, startParts } from "./parts.ts";
import { Processes } from "./processes.ts";
import { Processors } from "./processors.ts";
import type { InvocationResult } from "./runtime-api.ts";
import { Schedule } from "./schedules.ts";
import { type FunctionDeclaration, readStack, type Stack } from "./stack.ts";
import { scaledTimeoutMs } from "./time-scale.ts";

export type { Endpoints, HostEvent, HostOptions } from "./host-options.ts";
export type { InvocationResult } from "./runtime-api.ts";

/** How long a stopping host waits for batches that are being worked on. */
const STOP_GRACE_MS = 2_000;

/** A running host. */
export interface Host {
  /** The real parts, not what `route` made of them. */
  readonly endpoints: Endpoints;
  readonly tableName: string;
  readonly bucketName: string;
  /** Queue URLs by the queues' names. */
  readonly queueUrls: Readonly<Record<string, string>>;
  /** The stack's outputs. */
  readonly outputs: Readonly<Record<string, string>>;
  /** The functions and the processes that run them now. */
  functions(): { readonly name: string; readonly pids: readonly number[] }[];
  /** The processes of the servers that the host runs itself. */
  servers(): { readonly name: string; readonly pid: number | undefined }[];
  /** Where functions are called as in AWS (AWS Lambda API Reference, Invoke). */
  readonly lambda: string;
  /** Invokes a function as a synchronous call would. */
  invoke(name: string, event: unknown): Promise<InvocationResult>;
  /** What is measured, and the alarms that watch it. */
  readonly metrics: Pick<Metrics, "store" | "status" | "look" | "judge">;
  /** Ends everything that the host has started; nothing runs when it returns. */
  stop(): Promise<void>;
}

type Pools = ReadonlyMap<string, FunctionPool>;

/**
 * Runs what the one stack of a cloud assembly declares on this machine: the table, the queues with their redrive
 * policies, the bucket, the functions with their event source mappings and schedules, and a NATS server.
 *
 * @throws HostError when a part cannot start; nothing is left running then
 */
export async function startHost(options: HostOptions): Promise<Host> {
  const closing = new AsyncDisposableStack();
  try {
    const stage = await prepare(options, closing);
    const { assemblyDir } = options;
    return await start(stage, typeof assemblyDir === "string" ? assemblyDir : await assemblyDir());
  } catch (error) {
    await closing.disposeAsync();
    throw error;
  }
}

/** Takes the data folder, and ends what a host that was killed left running on it. */
async function prepare(options: HostOptions, closing: AsyncDisposableStack): Promise<Stage> {
  const { log = () => {}, timeScale: scale = 1, signal } = options;
  if (!(scale >= 1 && Number.isFinite(scale)))
    throw new RangeError(`time scale: expected a number of at least 1, got ${scale}`);
  const progress = (message: string) => {
    signal?.throwIfAborted();
    log({ type: "progress", message });
  };
  const dataDir = openDataFolder(options.dataDir);
  const lock = lockFolder(dataDir);
  closing.defer(() => lock.release());

  const processes = new Processes(dataDir);
  if ((await processes.endAll()) > 0) progress("ended what an earlier host had left running");
  closing.defer(async () => void (await processes.endAll()));
  // However this process ends, except by SIGKILL, its children end with it.
  const killAll = () => processes.killAll();
  process.once("exit", killAll);
  closing.defer(() => void process.off("exit", killAll));
  const onTrouble = (message: string) => log({ type: "trouble", message });
  const files = new FileTrouble(dataDir, onTrouble);
  return { options, dataDir, scale, processes, closing, progress, onTrouble, files };
}

async function start(stage: Stage, assemblyDir: string): Promise<Host> {
  const { options, dataDir, closing, progress } = stage;
  const parts = await startParts(stage, assemblyDir);
  const seen = (await options.route?.(parts.endpoints)) ?? parts.endpoints;

  progress("starting the functions");
  const hostFile = new HostFile(join(dataDir, "host.json"), stage.files);
  closing.defer(() => hostFile.remove());
  const declared = readStack(assemblyDir, `${seen.sqs}/${ACCOUNT}`);
  const metrics = watchMetrics(stage, parts, assemblyDir);
  const pools = makePools(stage, declared, parts, { seen, metrics, onChange: () => hostFile.changed() });
  closing.defer(async () => void (await Promise.all(Array.from(pools.values(), (pool) => pool.stop()))));

  const invoke = (name: string, payload: string) => poolOf(pools, name).invoke(payload);
  const lambda = await InvokeApi.listen({ has: (name) => pools.has(name), invoke });
  closing.defer(() => lambda.close());
  const host = hostOf(stage, parts, pools, { metrics, lambda: lambda.url });
  hostFile.write(() => describe(stage, parts, host));
  startSources(stage, parts, pools);
  return host;
}

function makePools(
  { options, dataDir, processes, scale, files }: Stage,
  stack: Stack,
  { nats }: Parts,
  { seen, metrics, onChange }: { seen: Endpoints; metrics: Metrics; onChange: () => void },
): Pools {
  const starts = new Limiter(Math.max(2, availableParallelism()));
  const processors = new Processors();
  const invocable = stack.functions.filter(({ codeDir }) => codeDir !== "");
  return new Map(
    invocable.map((declaration) => {
      const { name } = declaration;
      const timeoutMs = scaledTimeoutMs(declaration, scale, options.shortestTimeoutMs);
      const further = typeof options.env === "function" ? options.env(name) : options.env;
      const file = new LogFile(join(dataDir, "logs", `${name}.log`));
      const pool = new FunctionPool({
        declaration,
        environment: functionEnvironment(declaration, seen, nats, scale, {
          ...keyOf(declaration, dataDir),
          ...further,
        }),
        timeoutMs,
        processes,
        runtime: options.runtime,
        starts,
        processors,
        onChange,
        // By its own clock an invocation takes as much of its declared time as it took of what it had.
        onInvoked: ({ ok, durationMs }) =>
          metrics.invoked(name, {
            ok,
            durationMs: (durationMs * declaration.timeoutSec * 1_000) / timeoutMs,
          }),
        onConcurrency: (running) => metrics.concurrent(name, running),
        // Of a function that has longer than the time scale gives it more run at once than are declared.
        onThrottle: () => {
          if (timeoutMs * scale <= declaration.timeoutSec * 1_000) metrics.throttled(name);
        },
        onLine: (line) => {
          files.attempt(() => file.write(dated(line)));
          metrics.line(line);
          options.log?.({ type: "line", functionName: name, line });
        },
      });
      return [name, pool];
    }),
  );
}

/** A function that is told the secret of the signing key finds it in the data folder here. */
function keyOf({ environment }: FunctionDeclaration, dataDir: string): Record<string, string> {
  return "SIGNING_KEY_SECRET" in environment ? { SIGNING_KEY_FOLDER: keyFolder(dataDir) } : {};
}

/** Lets messages and schedules invoke the functions. */
function startSources({ scale, closing, onTrouble }: Stage, { stack, queues }: Parts, pools: Pools): void {
  const invoker = (name: string) => (payload: string) => poolOf(pools, name).invoke(payload);
  const client = new SQSClient(busyAwsSettings(queues.url));
  closing.defer(() => client.destroy());
  const sources = stack.mappings.map(
    (mapping) =>
      new EventSource({
        mapping,
        client,
        queueUrl: `${queues.queueUrlBase}/${mapping.queueName}`,
        invoke: invoker(mapping.functionName),
        onTrouble,
      }),
  );
  closing.defer(async () => void (await Promise.all(sources.map((source) => source.stop(STOP_GRACE_MS)))));
  const schedules = stack.schedules.map(
    (schedule) => new Schedule({ schedule, scale, invoke: invoker(schedule.functionName), onTrouble }),
  );
  closing.defer(() => {
    for (const schedule of schedules) schedule.stop();
  });
  for (const source of [...sources, ...schedules]) source.start();
}

function poolOf(pools: Pools, name: string): FunctionPool {
  const pool = pools.get(name);
  if (pool) return pool;
  throw new HostError("assembly_invalid", `no function ${name}; there are ${[...pools.keys()].join(", ")}`);
}

function watchMetrics(stage: Stage, { stack, queues }: Parts, assemblyDir: string): Metrics {
  const { dataDir, scale, closing, files, options } = stage;
  const metrics = new Metrics({
    alarms: readAlarms(assemblyDir),
    queues: stack.queues.map(({ name }) => name),
    look: (queue) => queues.look(queue),
    tables: stack.tables.map(({ name }) => name),
    scale,
    ...(options.metricsClock !== undefined && { clock: options.metricsClock }),
    file: join(dataDir, "alarms.json"),
    attempt: (write) => files.attempt(write),
    onChange: (change) =>
      options.log?.({ type: "alarm", message: `${change.name}: ${change.from} → ${change.to}`, ...change }),
  });
  metrics.start();
  closing.defer(() => metrics.stop());
  return metrics;
}

function hostOf(
  { closing }: Stage,
  { stack, queues, dynamodb, nats, endpoints }: Parts,
  pools: Pools,
  { metrics, lambda }: Pick<Host, "lambda"> & { readonly metrics: Metrics },
): Host {
  return {
    endpoints,
    tableName: stack.tables[0]?.name ?? "",
    bucketName: stack.buckets[0] ?? "",
    queueUrls: Object.fromEntries(stack.queues.map(({ name }) => [name, `${queues.queueUrlBase}/${name}`])),
    // What agents.yaml names is of the cloud: here NATS is where the host was told, or has started it.
    outputs: { ...stack.outputs, NatsServers: nats.servers, NatsCredentials: nats.credentials },
    functions: () => Array.from(pools.values(), ({ name, pids }) => ({ name, pids })),
    servers: () => [
      { name: "dynamodb", pid: dynamodb.server.pid },
      ...(nats.server ? [{ name: "nats", pid: nats.server.pid }] : []),
    ],
    lambda,
    invoke: (name, event) => poolOf(pools, name).invoke(JSON.stringify(event)),
    metrics,
    stop: () => closing.disposeAsync(),
  };
}

/** What `host.json` says. */
function describe({ dataDir, scale, options }: Stage, { stack, nats, endpoints }: Parts, host: Host): object {
  return {
    pid: process.pid,
    dataDir,
    files: options.files,
    nats: nats.servers,
    natsCredentials: nats.credentials,
    natsCa: nats.ca,
    dynamodb: endpoints.dynamodb,
    sqs: endpoints.sqs,
    s3: endpoints.s3,
    lambda: host.lambda,
    table: host.tableName,
    bucket: host.bucketName,
    queues: host.queueUrls,
    outputs: host.outputs,
    functions: host.functions(),
    servers: host.servers(),
    timeScale: scale,
    // Their names: what is in them is told to the functions alone.
    credentialVariables: heldCredentials(stack.functions),
  };
}
