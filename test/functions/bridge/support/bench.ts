import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { SQSClient } from "@aws-sdk/client-sqs";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { type FauxqsServer, startFauxqs } from "fauxqs";
import { type BridgeDeps, type BridgeRun, runBridge } from "../../../../functions/bridge/bridge.ts";
import { timing } from "../../../../shared/config/timing.ts";
import {
  connectNats,
  ensureConsumers,
  ensureStreams,
  NatsLink,
  type PulledRuntime,
  tasksConsumer,
} from "../../../../shared/nats/index.ts";
import { type Forwarded, forwarded } from "../../../../shared/tasks/messages.ts";
import { startNats, type TestNats } from "../../../support/nats-server.ts";

export const quiet = { debug() {}, info() {}, warn() {}, error() {}, count() {}, measure() {} };

/** How long a run may take that is told when to end. */
const LONG_MS = 60_000;
/** Of a run, what is for ending. */
const MARGIN_MS = 400;
/** What is not acknowledged comes again after longer than any test takes. */
const TIMING = { ...timing(100), marginMs: MARGIN_MS, ackWaitMs: 30_000 };

/** A run of the bridge that is under way. */
export interface Run {
  /** Ends it, and gives what it did. */
  end(): Promise<BridgeRun>;
}

/** A runtime that delegates nothing. */
export const plain = (runtime: string): PulledRuntime => ({ runtime, delegates: false });

export function clientFor(port: number): SQSClient {
  return new SQSClient({
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
    maxAttempts: 1,
  });
}

export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 20_000; Date.now() < end; await sleep(5)) if (await holds()) return;
  assert.fail(`expected within 20 s: ${what}`);
}

/** A broker, and an SQS; each test has a runtime and queues of its own. */
export class Bench {
  readonly server: TestNats;
  readonly nc: NatsConnection;
  readonly link: NatsLink;
  readonly sqs: FauxqsServer;
  readonly client: SQSClient;
  #tests = 0;

  static async start(): Promise<Bench> {
    const server = await startNats();
    const nc = await connectNats({ servers: [server.url], credentials: "none", name: "peer" });
    return new Bench(server, nc, await startFauxqs({ port: 0, logger: false }));
  }

  private constructor(server: TestNats, nc: NatsConnection, sqs: FauxqsServer) {
    this.server = server;
    this.nc = nc;
    this.sqs = sqs;
    this.link = new NatsLink(() => ({ servers: [server.url], credentials: "none", name: "bridge" }));
    this.client = clientFor(sqs.port);
  }

  /** Another test begins. */
  next(): void {
    this.#tests++;
    for (const kind of ["tasks", "controls", "events"]) this.sqs.createQueue(this.#queue(kind));
  }

  get runtime(): string {
    return `acme-r${this.#tests}`;
  }

  /** What a bridge for these runtimes is told; for the test's own if none are given. */
  settings(runtimes: readonly PulledRuntime[] = [plain(this.runtime)], bound = 1_000) {
    const url = (kind: string) => `http://127.0.0.1:${this.sqs.port}/000000000000/${this.#queue(kind)}`;
    const urls = { tasksQueueUrl: url("tasks"), controlsQueueUrl: url("controls") };
    return { ...urls, eventsQueueUrl: url("events"), runtimes, bound };
  }

  /** Makes the streams and the durables, as an earlier run has. */
  async prepare(runtime = plain(this.runtime)): Promise<void> {
    const jsm = await jetstreamManager(this.nc);
    await ensureStreams(jsm);
    await ensureConsumers(jsm, runtime, TIMING);
  }

  /** A run of so many milliseconds. */
  run(ms: number, over: Partial<BridgeDeps> = {}): Promise<BridgeRun> {
    const end = Date.now() + ms;
    return runBridge({ ...this.#deps(), remainingMs: () => end - Date.now(), ...over });
  }

  /** Begins a run that goes on until it is told to end. */
  begin(over: Partial<BridgeDeps> = {}): Run {
    let end = Date.now() + LONG_MS;
    const stop = new AbortController();
    const deps = { ...this.#deps(), remainingMs: () => end - Date.now(), stop: stop.signal };
    const ended = runBridge({ ...deps, ...over });
    ended.catch(() => undefined); // whoever ends it is told
    return {
      end() {
        end = Date.now() + MARGIN_MS;
        stop.abort();
        return ended;
      },
    };
  }

  #deps() {
    const { link, client: sqs } = this;
    return {
      link,
      sqs,
      telemetry: quiet,
      timing: TIMING,
      instance: "sluice-acme",
      settings: this.settings(),
    };
  }

  /** What is in one of the test's queues. */
  queued(kind = "tasks"): Forwarded[] {
    const ready = this.sqs.inspectQueue(this.#queue(kind))?.messages.ready ?? [];
    return ready.map((message) => forwarded().parse(JSON.parse(message.body)));
  }

  /** The `traceparent` with which the first message of the tasks' queue was sent. */
  tracedBy(): string | undefined {
    const [first] = this.sqs.inspectQueue(this.#queue("tasks"))?.messages.ready ?? [];
    return first?.messageAttributes.traceparent?.StringValue;
  }

  /** Publishes so many tasks. */
  async publish(count: number, body: string | Uint8Array = "{}", of = this.runtime): Promise<void> {
    const js = jetstream(this.nc);
    const all = Array.from({ length: count }, (_, i) => js.publish(`a2a.v1.task.peer.${of}.m${i}`, body));
    await Promise.all(all);
  }

  async consumer(of = this.runtime) {
    return (await jetstreamManager(this.nc)).consumers.info("A2A_TASKS", tasksConsumer(of));
  }

  /** Waits until a run has made the durables of the test's runtime. */
  prepared(): Promise<void> {
    return until("its durables", () =>
      this.consumer().then(
        () => true,
        () => false,
      ),
    );
  }

  async stop(): Promise<void> {
    await this.link.close();
    await this.nc.close();
    await this.server.stop();
    this.client.destroy();
    await this.sqs.stop();
  }

  #queue(kind: string): string {
    return `${kind}${this.#tests}`;
  }
}
