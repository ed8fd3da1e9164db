import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { SQSClient } from "@aws-sdk/client-sqs";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/transport-node";
import { type FauxqsServer, startFauxqs } from "fauxqs";
import { type BridgeDeps, runBridge } from "../../../functions/bridge/bridge.ts";
import { MAX_INLINE_BYTES } from "../../../functions/bridge/forward.ts";
import { timing } from "../../../shared/config/timing.ts";
import {
  ack,
  connectNats,
  eventsConsumer,
  NatsError,
  NatsLink,
  tasksConsumer,
} from "../../../shared/nats/index.ts";
import { type Forwarded, forwarded } from "../../../shared/tasks/messages.ts";
import { startNats, type TestNats } from "../../support/nats-server.ts";

const quiet = { debug() {}, info() {}, warn() {}, error() {}, count() {}, measure() {} };
/** How long a run may take where a busy machine must not matter. */
const BUSY_MS = 6_000;
const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

let server: TestNats;
let nc: NatsConnection;
let link: NatsLink;
let sqs: FauxqsServer;
let client: SQSClient;
let runs = 0;
let runtime = "";

before(async () => {
  server = await startNats();
  nc = await connectNats({ servers: [server.url], credentials: "none", name: "peer" });
  link = new NatsLink({ servers: [server.url], credentials: "none", name: "bridge" });
  sqs = await startFauxqs({ port: 0, logger: false });
  client = clientFor(sqs.port);
});
after(async () => {
  await link.close();
  await nc.close();
  await server.stop();
  client.destroy();
  await sqs.stop();
});
beforeEach(() => {
  runtime = `acme-r${++runs}`;
  for (const kind of ["tasks", "controls", "events"]) sqs.createQueue(`${kind}${runs}`);
});

function clientFor(port: number): SQSClient {
  return new SQSClient({
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
    maxAttempts: 1,
  });
}

/** A runtime that delegates nothing. */
const plain = (of: string) => ({ runtime: of, delegates: false });

function queueUrls() {
  const url = (kind: string) => `http://127.0.0.1:${sqs.port}/000000000000/${kind}${runs}`;
  return { tasksQueueUrl: url("tasks"), controlsQueueUrl: url("controls"), eventsQueueUrl: url("events") };
}

/** A run of so many milliseconds, of which the last 400 are for ending. */
function start(ms: number, over: Partial<BridgeDeps> = {}, bound = 1_000) {
  const end = Date.now() + ms;
  return runBridge({
    link,
    sqs: client,
    telemetry: quiet,
    timing: { ...timing(100), marginMs: 400, ackWaitMs: 30_000 },
    settings: { ...queueUrls(), runtimes: [plain(runtime)], bound },
    remainingMs: () => end - Date.now(),
    ...over,
  });
}

function queued(kind = "tasks"): Forwarded[] {
  const ready = sqs.inspectQueue(`${kind}${runs}`)?.messages.ready ?? [];
  return ready.map((message) => forwarded.parse(JSON.parse(message.body)));
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 10_000; Date.now() < end; await sleep(5)) if (await holds()) return;
  assert.fail(`expected within 10 s: ${what}`);
}

async function publish(count: number, body: string | Uint8Array = "{}", of = runtime): Promise<void> {
  const js = jetstream(nc);
  const all = Array.from({ length: count }, (_, i) => js.publish(`a2a.v1.task.peer.${of}.m${i}`, body));
  await Promise.all(all);
}

async function consumerInfo(of = runtime) {
  return (await jetstreamManager(nc)).consumers.info("A2A_TASKS", tasksConsumer(of));
}

test("messages go to their queues with all that their decision needs, unacknowledged", async () => {
  const run = start(1_500);
  await until("consumers", () =>
    consumerInfo().then(
      () => true,
      () => false,
    ),
  );
  const js = jetstream(nc);
  const hdrs = headers();
  hdrs.set("Nats-Msg-Id", `task:peer:${runtime}:m1`);
  hdrs.set("traceparent", TRACE);
  hdrs.set("X-Other", "not needed");
  const { seq } = await js.publish(`a2a.v1.task.peer.${runtime}.m1`, '{"é":"😀\\u0000\uFFFF"}', {
    headers: hdrs,
  });
  await js.publish(`a2a.v1.control.peer.${runtime}.task_1.cancel`, "{}");
  await until("both", () => queued().length === 1 && queued("controls").length === 1);
  const [message] = queued();
  assert.ok(message);
  assert.deepEqual(
    { ...message, ackSubject: "", storedAt: 0 },
    {
      stream: "A2A_TASKS",
      consumer: `a2a_tasks_${runtime}`,
      seq,
      ackSubject: "",
      subject: `a2a.v1.task.peer.${runtime}.m1`,
      headers: { "Nats-Msg-Id": `task:peer:${runtime}:m1`, traceparent: TRACE },
      deliveries: 1,
      storedAt: 0,
      body: '{"é":"😀\\u0000\uFFFF"}',
    },
  );
  const raw = sqs.inspectQueue(`tasks${runs}`)?.messages.ready[0];
  assert.equal(raw?.messageAttributes.traceparent?.StringValue, TRACE);
  assert.equal((await consumerInfo()).num_ack_pending, 1);
  assert.equal(await ack(nc, message.ackSubject), true);
  assert.equal((await consumerInfo()).num_ack_pending, 0);
  assert.equal(queued("controls")[0]?.stream, "A2A_CONTROLS");
  assert.deepEqual(await run, { forwarded: 2, givenBack: 0, redelivered: 0 });
});

test("the events of what an agent has handed on go to a queue of their own, and nobody else's", async () => {
  const js = jetstream(nc);
  const other = `${runtime}-plain`;
  const settings = {
    ...queueUrls(),
    runtimes: [{ runtime, delegates: true }, plain(other)],
    bound: 1_000,
  };
  const jsm = await jetstreamManager(nc);
  const run = start(2_500, { settings });
  await until("consumers", () =>
    jsm.consumers.info("A2A_EVENTS", eventsConsumer(runtime)).then(
      () => true,
      () => false,
    ),
  );
  const body = "x".repeat(MAX_INLINE_BYTES + 1);
  await js.publish(`a2a.v1.event.peer.${runtime}.task_1.accepted`, "{}");
  await js.publish(`a2a.v1.event.peer.${runtime}.task_1.result`, body);
  await js.publish(`a2a.v1.event.peer.${other}.task_2.accepted`, "{}");
  await js.publish(`a2a.v1.event.${runtime}.peer.task_3.accepted`, "{}");
  await until("both", () => queued("events").length === 2);
  assert.deepEqual(await run, { forwarded: 2, givenBack: 0, redelivered: 0 });
  const got = queued("events").toSorted((a, b) => a.seq - b.seq);
  assert.deepEqual(
    got.map(({ stream, consumer, subject, body: inline }) => [stream, consumer, subject, inline]),
    [
      ["A2A_EVENTS", `a2a_events_${runtime}`, `a2a.v1.event.peer.${runtime}.task_1.accepted`, "{}"],
      ["A2A_EVENTS", `a2a_events_${runtime}`, `a2a.v1.event.peer.${runtime}.task_1.result`, undefined],
    ],
  );
  await assert.rejects(jsm.consumers.info("A2A_EVENTS", eventsConsumer(other)), /not found/);
  const { num_ack_pending } = await jsm.consumers.info("A2A_EVENTS", eventsConsumer(runtime));
  assert.equal(num_ack_pending, 2);
});

test("a flood of events keeps its own bound, and no task waits for it", async () => {
  const settings = { ...queueUrls(), runtimes: [{ runtime, delegates: true }], bound: 20 };
  await start(1_200, { settings });
  const js = jetstream(nc);
  await Promise.all(
    Array.from({ length: 60 }, (_, i) => js.publish(`a2a.v1.event.peer.${runtime}.task_${i}.status`, "{}")),
  );
  const run = start(3_000, { settings });
  await until("events", () => queued("events").length > 0);
  await publish(3);
  await until("the tasks", () => queued().length === 3);
  await run;
  assert.ok(queued("events").length <= 20, `the queue held ${queued("events").length}`);
});

test("a body is inline up to the bound and if it is clean UTF-8, and by sequence otherwise", async () => {
  const run = start(1_800);
  await until("consumers", () =>
    consumerInfo().then(
      () => true,
      () => false,
    ),
  );
  const js = jetstream(nc);
  const bodies = [
    "x".repeat(MAX_INLINE_BYTES),
    "x".repeat(MAX_INLINE_BYTES + 1),
    Uint8Array.of(0x7b, 0xff, 0x7d),
    "\uFEFF{}",
    "",
    new Uint8Array(1_048_500),
    "\u0001".repeat(MAX_INLINE_BYTES),
  ];
  for (const [i, body] of bodies.entries()) await js.publish(`a2a.v1.task.peer.${runtime}.b${i}`, body);
  await until("all", () => queued().length === bodies.length);
  const inline = new Map(queued().map((message) => [message.subject.at(-1), message.body]));
  assert.deepEqual(
    bodies.map((body, i) => inline.get(String(i)) === body),
    [true, false, false, true, true, false, true],
  );
  assert.equal(inline.get("1") ?? inline.get("2") ?? inline.get("5"), undefined);
  await run;
});

test("a hostile subject or header harms nobody else", async () => {
  const run = start(1_800);
  await until("consumers", () =>
    consumerInfo().then(
      () => true,
      () => false,
    ),
  );
  const js = jetstream(nc);
  const hdrs = headers();
  hdrs.set("Nats-Msg-Id", "x".repeat(60_000));
  hdrs.set("traceparent", "not one");
  await js.publish(`a2a.v1.task.peer.${runtime}.\uFFFF`, "{}", { headers: hdrs });
  await js.publish(`a2a.v1.task.peer.${runtime}.good`, "{}");
  await until("both", () => queued().length === 2);
  assert.deepEqual(
    queued().map((message) => message.headers),
    [{}, {}],
  );
  await run;
});

test("a backlog arrives once each, and other agents' messages stay", async () => {
  await publish(1);
  await publish(3, "{}", "other");
  const first = await start(1_500);
  assert.ok(first.forwarded <= 1);
  await publish(300);
  await start(2_000);
  const seqs = queued().map((message) => message.seq);
  assert.equal(new Set(seqs).size, seqs.length);
  assert.equal(seqs.length, 301);
  await assert.rejects(consumerInfo("other"), /not found/);
});

test("while the queue is over its bound nothing more is pulled; two runs at once keep it too", async () => {
  const bound = 60;
  await start(1_200);
  await publish(200);
  const two = [start(4_000, {}, bound), start(4_000, {}, bound)];
  let most = 0;
  let over = false;
  const ended = Promise.all(two).finally(() => {
    over = true;
  });
  for (; !over; await sleep(10)) most = Math.max(most, queued().length);
  await ended;
  assert.ok(most <= bound, `the queue held ${most}`);
  assert.ok(most >= bound / 2);
  const info = await consumerInfo();
  assert.equal(info.num_pending + info.num_ack_pending, 200);
  assert.equal(info.num_ack_pending, queued().length);
});

test("what SQS does not take is given back with a delay, and comes again", async () => {
  let refusing = true;
  const proxy = await listen((request, response) => {
    if (refusing && request.headers["x-amz-target"] === "AmazonSQS.SendMessageBatch") {
      response.statusCode = 503;
      response.end("{}");
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => void relay(request, Buffer.concat(chunks), response));
  });
  const through = clientFor((proxy.address() as AddressInfo).port);
  await start(1_200);
  await publish(3);
  const run = start(6_000, { sqs: through });
  await until("given back", async () => (await consumerInfo()).num_redelivered > 0);
  refusing = false;
  await until("all", () => new Set(queued().map((message) => message.seq)).size === 3);
  const { forwarded: count, givenBack } = await run;
  assert.ok(count >= 3 && givenBack >= 3);
  assert.ok(queued().some((message) => message.deliveries > 1));
  through.destroy();
  proxy.closeAllConnections();
  proxy.close();
});

test("with SQS out of reach a run ends in time and everything is still there", async () => {
  await start(1_200);
  await publish(5);
  const run = await start(2_500, { sqs: clientFor(1) });
  assert.equal(run.forwarded, 0);
  assert.equal(queued().length, 0);
  const again = await start(2_500);
  assert.equal(again.forwarded, 5);
});

test("NATS down at the start is a clear error", async () => {
  const other = await startNats();
  await other.stop();
  const lost = new NatsLink({ servers: [other.url], credentials: "none", name: "bridge" });
  await assert.rejects(
    start(3_000, { link: lost }),
    (error) => error instanceof NatsError && error.code === "nats_unreachable",
  );
});

test("a server without JetStream is a clear error; one agent's trouble is not another's", async () => {
  const jsm = await jetstreamManager(nc);
  await start(1_200);
  const [bad, good] = [runtime, `${runtime}-good`];
  await jsm.consumers.delete("A2A_TASKS", tasksConsumer(bad));
  await jsm.consumers.add("A2A_TASKS", { durable_name: tasksConsumer(bad), deliver_subject: "elsewhere" });
  const own = { ...queueUrls(), bound: 1_000 };
  await publish(2, "{}", good);
  const run = await start(BUSY_MS, { settings: { ...own, runtimes: [plain(bad), plain(good)] } });
  assert.equal(run.forwarded, 2);
  await assert.rejects(
    start(2_000, { settings: { ...own, runtimes: [plain(bad)] } }),
    (error) => error instanceof NatsError && error.code === "nats_jetstream",
  );
});

test("an agent whose events cannot be had is given its tasks, and that is said", async () => {
  const jsm = await jetstreamManager(nc);
  await start(1_200);
  const own = `${runtime}-boss`;
  await jsm.consumers.add("A2A_EVENTS", { durable_name: eventsConsumer(own), deliver_subject: "elsewhere" });
  await publish(2, "{}", own);
  const errors: unknown[] = [];
  const run = await start(BUSY_MS, {
    telemetry: { ...quiet, error: (message) => void errors.push(message) },
    settings: { ...queueUrls(), bound: 1_000, runtimes: [{ runtime: own, delegates: true }] },
  });
  assert.equal(run.forwarded, 2);
  assert.deepEqual(errors, ["a runtime does not hear of what it hands on"]);
});

test("NATS going down during a run is a clear error at its end; coming back, the run goes on", async (t) => {
  const other = await startNats();
  t.after(() => other.stop());
  const own = new NatsLink({ servers: [other.url], credentials: "none", name: "bridge" });
  t.after(() => own.close());
  const peer = await connectNats({ servers: [other.url], credentials: "none", name: "peer" });
  t.after(() => peer.close());
  const run = start(6_000, { link: own });
  run.catch(() => undefined); // it is awaited below
  const publish = (id: string) => jetstream(peer).publish(`a2a.v1.task.peer.${runtime}.${id}`, "{}");
  // What is forwarded shows that the run pulls, and asks nothing more of the server.
  await until("the run has made the streams", () =>
    publish("m0").then(
      () => true,
      () => false,
    ),
  );
  await until("the run pulls", () => queued().length === 1);
  await other.restart();
  await until("connected again", () =>
    peer.flush().then(
      () => true,
      () => false,
    ),
  );
  await publish("m1");
  await until("forwarded", () => queued().length === 2);
  await other.kill();
  await assert.rejects(run, (error) => error instanceof NatsError && error.code === "nats_lost");
  await other.restart();
  assert.equal((await start(1_500, { link: own })).givenBack, 0);
});

test("a deployment without agents makes the streams and is done", async () => {
  const url = "http://127.0.0.1:1/000000000000/q";
  const urls = { tasksQueueUrl: url, controlsQueueUrl: url, eventsQueueUrl: url };
  const settings = { ...urls, runtimes: [], bound: 1_000 };
  assert.deepEqual(await start(60_000, { settings }), { forwarded: 0, givenBack: 0, redelivered: 0 });
});

function listen(listener: RequestListener): Promise<Server> {
  const proxy = createServer(listener);
  return new Promise((resolve) => proxy.listen(0, "127.0.0.1", () => resolve(proxy)));
}

async function relay(
  request: Parameters<RequestListener>[0],
  body: Buffer,
  response: Parameters<RequestListener>[1],
): Promise<void> {
  const { host: _, connection: __, "content-length": ___, expect: ____, ...rest } = request.headers;
  const answer = await fetch(`http://127.0.0.1:${sqs.port}${request.url}`, {
    method: "POST",
    headers: Object.entries(rest).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value]] : [],
    ) as [string, string][],
    body: new Uint8Array(body),
  });
  response.writeHead(answer.status, { "content-type": "application/x-amz-json-1.0" });
  response.end(Buffer.from(await answer.arrayBuffer()));
}

test("a run tells how far its durables lag, as it finds them and from then on", async () => {
  const told: string[] = [];
  const telemetry = {
    ...quiet,
    measure: (metric: string, value: number, dimensions: Readonly<Record<string, string>> = {}) =>
      void told.push(`${metric} ${value} ${Object.values(dimensions)}`),
  };
  await start(1_200, { telemetry });
  assert.deepEqual([...new Set(told)], ["MessagesPending 0 "]);
  await publish(10);
  const run = start(3_000, { telemetry }, 4);
  const durable = `a2a_tasks_${runtime}`;
  for (const line of [
    "MessagesPending 10 ",
    `ConsumerPending 10 ${durable}`,
    "MessagesPending 8 ",
    `ConsumerPending 8 ${durable}`,
    `ConsumerAckPending 2 ${durable}`,
  ])
    await until(line, () => told.includes(line));
  await run;
});
