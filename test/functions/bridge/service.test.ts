import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { DeleteMessageBatchCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { type FauxqsServer, startFauxqs } from "fauxqs";
import { bundleFunctions, KEPT_BUNDLES } from "../../../infra/bundle.ts";
import { healthCommand } from "../../../infra/health-command.ts";
import { freePort } from "../../../infra/local/ports.ts";
import { parseDeployment } from "../../../shared/config/deployment.ts";
import { timing } from "../../../shared/config/timing.ts";
import { ack, connectNats, ensureConsumers, ensureStreams } from "../../../shared/nats/index.ts";
import { forwarded } from "../../../shared/tasks/messages.ts";
import { startNats, type TestNats } from "../../support/nats-server.ts";

/** The bundled service as its container runs it: a process that is told all by its environment, and asked by signals. */
const RUNTIME = "acme-support";
const QUEUES = ["tasks", "controls", "events"];
/** Runs of 3.5 s, of which 0.5 s are for ending; deaf after 6 s. */
const SCALE = 20;

let nats: TestNats;
let nc: NatsConnection;
let sqs: FauxqsServer;
let client: SQSClient;
const ending = new AbortController();
let taking: Promise<void>;
let folder: string;
let bundle: string;
const running = new Set<ChildProcess>();

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-service-"));
  const deployment = parseDeployment({ deployment: "acme", agents: [agent()] });
  bundle = (await bundleFunctions({ deployment, agentFiles: [], outDir: folder, keepIn: KEPT_BUNDLES }))
    .serviceFolder;
  nats = await startNats();
  nc = await connectNats({ servers: [nats.url], credentials: "none", name: "peer" });
  sqs = await startFauxqs({ port: 0, logger: false });
  for (const name of QUEUES) sqs.createQueue(name);
  client = new SQSClient({
    endpoint: `http://127.0.0.1:${sqs.port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
  });
  taking = take(ending.signal);
  // The first message must not be published before there is a stream.
  const jsm = await jetstreamManager(nc);
  await ensureStreams(jsm);
  await ensureConsumers(jsm, { runtime: RUNTIME, delegates: false }, timing(SCALE));
});
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
});
after(async () => {
  ending.abort();
  await taking;
  client.destroy();
  await nc.close();
  await nats.stop();
  await sqs.stop();
  await rm(folder, { recursive: true });
});

function agent() {
  const skills = [{ slug: "task", name: "Task", description: "", tags: [] }];
  const named = { id: "support", runtime: RUNTIME, channelRef: "support", displayName: "Support" };
  return { ...named, description: "", version: "1.0.0", skills, policy: {}, settings: {} };
}

const queueUrl = (name: string) => `http://127.0.0.1:${sqs.port}/000000000000/${name}`;

interface Service {
  readonly child: ChildProcess;
  /** What the container's health command ends with. */
  health(): Promise<number>;
  /** What it has written. */
  said(): string;
}

async function start(): Promise<Service> {
  const port = await freePort();
  const service = run(port);
  const [program, ...args] = healthCommand(port);
  const health = () =>
    promisify(execFile)(program, args).then(
      () => 0,
      (error: { code?: unknown }) => Number(error.code),
    );
  await until("a healthy service", async () => (await health()) === 0, service);
  return { ...service, health };
}

function run(port: number, over: Readonly<Record<string, string>> = {}): Omit<Service, "health"> {
  const child = spawn(process.execPath, ["--enable-source-maps", "index.mjs"], {
    cwd: bundle,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      TASKS_QUEUE_URL: queueUrl("tasks"),
      INSTANCE_ID: "sluice-acme",
      CONTROLS_QUEUE_URL: queueUrl("controls"),
      EVENTS_QUEUE_URL: queueUrl("events"),
      POWERTOOLS_SERVICE_NAME: "bridge",
      POWERTOOLS_METRICS_NAMESPACE: "Sluice",
      AWS_ENDPOINT_URL_SQS: `http://127.0.0.1:${sqs.port}`,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "x",
      AWS_SECRET_ACCESS_KEY: "x",
      NATS_SERVERS: nats.url,
      NATS_CREDENTIALS: "none",
      HEALTH_PORT: String(port),
      TIME_SCALE: String(SCALE),
      ...over,
    },
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (said += chunk));
  return { child, said: () => said };
}

async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  service?: Pick<Service, "said">,
): Promise<void> {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(20)) if (await holds()) return;
  assert.fail(`expected within 30 s: ${what}\n${service?.said()}`);
}

let published = 0;
async function publish(count: number): Promise<void> {
  const js = jetstream(nc);
  const subjects = Array.from({ length: count }, () => `a2a.v1.task.peer.${RUNTIME}.m${published++}`);
  await Promise.all(subjects.map((subject) => js.publish(subject, "{}", { msgID: subject, retries: 10 })));
}

/** How often each sequence has come out of the queue. */
const taken = new Map<number, number>();

/** Takes what is in the queue, as `admit` does: there is room for only so many messages that nobody has decided. */
async function take(stop: AbortSignal): Promise<void> {
  const QueueUrl = queueUrl("tasks");
  while (!stop.aborted) {
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1 }),
    );
    for (const { Body = "" } of Messages) {
      const { seq, ackSubject } = forwarded().parse(JSON.parse(Body));
      await ack(nc, ackSubject);
      taken.set(seq, (taken.get(seq) ?? 0) + 1);
    }
    const Entries = Messages.map(({ ReceiptHandle }, i) => ({ Id: String(i), ReceiptHandle }));
    if (Entries.length > 0) await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
  }
}

async function stop({ child }: Pick<Service, "child">): Promise<unknown> {
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const [code] = await ended;
  return code;
}

test("it carries messages, run after run, and ends with 0 when it is asked to", async () => {
  const service = await start();
  await publish(20);
  await until("the first messages", () => taken.size === 20, service);
  await until("the end of two runs", () => service.said().split("the run is over").length > 2, service);
  await publish(5);
  await until("later ones", () => taken.size === 25, service);
  assert.equal(await stop(service), 0);
  // Its metrics come out as the function's do.
  const counts = [...service.said().matchAll(/"MessagesForwarded":(\d+)/g)].map(([, count]) => Number(count));
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    25,
  );
});

test("asked to end under load it loses nothing, and two at once do no harm", async () => {
  const first = await start();
  let flowing = true;
  const flow = (async () => {
    while (flowing) await publish(5).then(() => sleep(20));
  })();
  const before = published;
  await until("a load", () => published > before + 100, first);
  const second = await start();
  assert.equal(await stop(first), 0);
  const afterwards = published;
  await until("a load for the second", () => published > afterwards + 100, second);
  flowing = false;
  await flow;
  await until("all messages", () => taken.size === published, second);
  assert.equal(await stop(second), 0);
  // None was still on its way to the first when it ended: that would have come again.
  assert.deepEqual(
    [...taken].filter(([, times]) => times > 1),
    [],
  );
});

test("it says that it is not well when NATS is gone for long, and goes on when NATS is back", async () => {
  const service = await start();
  await nats.kill();
  await until("an unhealthy service", async () => (await service.health()) !== 0, service);
  await nats.restart();
  await until("a healthy service", async () => (await service.health()) === 0, service);
  await publish(3);
  await until("messages of afterwards", () => taken.size === published, service);
  assert.equal(await stop(service), 0);
});

test("what it loads only when it is needed it has: what TLS takes, and secrets", async () => {
  // Parts of the bundle that are imported later import its start, whose evaluation must be over by then.
  for (const [over, words] of [
    [{ NATS_SERVERS: "tls://127.0.0.1:1" }, "cannot be reached"],
    [
      { NATS_CREDENTIALS: "secret:nats", AWS_ENDPOINT_URL_SECRETS_MANAGER: "http://127.0.0.1:1" },
      "Secrets Manager cannot be asked",
    ],
  ] as const) {
    const service = run(await freePort(), over);
    await until(words, () => service.said().includes(words), service);
    assert.equal(await stop(service), 0);
  }
});

test("asked to end it ends, though NATS takes connections and says nothing, and a connection to its health is open", async () => {
  const silent = createServer((socket) => socket.resume().on("error", () => {}));
  await once(silent.listen(0, "127.0.0.1"), "listening");
  const { port: natsPort } = silent.address() as AddressInfo;
  const port = await freePort();
  const service = run(port, { NATS_SERVERS: `nats://127.0.0.1:${natsPort}` });
  await until("a run that failed", () => service.said().includes("cannot be reached (timeout)"), service);
  const asking = connect(port, "127.0.0.1").on("error", () => {});
  await once(asking, "connect");
  const ended = stop(service);
  // Ends the test without the mend.
  setTimeout(() => service.child.kill("SIGKILL"), 20_000).unref();
  assert.equal(await ended, 0);
  asking.destroy();
  silent.close();
});

test("what it is not told it names, and ends", async () => {
  const child = spawn(process.execPath, ["index.mjs"], {
    cwd: bundle,
    env: {},
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk));
  const [code] = await once(child, "close");
  assert.equal(code, 1);
  assert.match(said, /TASKS_QUEUE_URL: expected a URL, got nothing/);
});
