import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { MAX_INLINE_BYTES } from "../../../functions/bridge/forward.ts";
import { ack, eventsConsumer } from "../../../shared/nats/index.ts";
import { Bench, plain, quiet, until } from "./support/bench.ts";

const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/** How long it is watched that nothing more comes, in milliseconds. */
const WATCHED_MS = 600;

let bench: Bench;
before(async () => {
  bench = await Bench.start();
});
after(() => bench.stop());
beforeEach(() => bench.next());

test("messages go to their queues with all that their decision needs, unacknowledged", async () => {
  const { runtime } = bench;
  const run = bench.begin();
  await bench.prepared();
  const js = jetstream(bench.nc);
  const hdrs = headers();
  hdrs.set("Nats-Msg-Id", `task:peer:${runtime}:m1`);
  hdrs.set("traceparent", TRACE);
  hdrs.set("X-Other", "not needed");
  const { seq } = await js.publish(`a2a.v1.task.peer.${runtime}.m1`, '{"é":"😀\\u0000\uFFFF"}', {
    headers: hdrs,
  });
  await js.publish(`a2a.v1.control.peer.${runtime}.task_1.cancel`, "{}");
  await until("both", () => bench.queued().length === 1 && bench.queued("controls").length === 1);
  const [message] = bench.queued();
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
  assert.equal(bench.tracedBy(), TRACE);
  assert.equal((await bench.consumer()).num_ack_pending, 1);
  assert.equal(await ack(bench.nc, message.ackSubject), true);
  assert.equal((await bench.consumer()).num_ack_pending, 0);
  assert.equal(bench.queued("controls")[0]?.stream, "A2A_CONTROLS");
  assert.deepEqual(await run.end(), { forwarded: 2, givenBack: 0, redelivered: 0 });
});

test("a run ends by itself before its time is over", async () => {
  await bench.publish(1);
  assert.deepEqual(await bench.run(1_500), { forwarded: 1, givenBack: 0, redelivered: 0 });
});

test("the events of what an agent has handed on go to a queue of their own, and nobody else's", async () => {
  const { runtime } = bench;
  const js = jetstream(bench.nc);
  const other = `${runtime}-plain`;
  const jsm = await jetstreamManager(bench.nc);
  const run = bench.begin({ settings: bench.settings([{ runtime, delegates: true }, plain(other)]) });
  await until("durables", () =>
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
  await until("both", () => bench.queued("events").length === 2);
  await sleep(WATCHED_MS);
  assert.deepEqual(await run.end(), { forwarded: 2, givenBack: 0, redelivered: 0 });
  const got = bench.queued("events").toSorted((a, b) => a.seq - b.seq);
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
  const delegating = { runtime: bench.runtime, delegates: true };
  await bench.prepare(delegating);
  const js = jetstream(bench.nc);
  await Promise.all(
    Array.from({ length: 60 }, (_, i) =>
      js.publish(`a2a.v1.event.peer.${bench.runtime}.task_${i}.status`, "{}"),
    ),
  );
  const run = bench.begin({ settings: bench.settings([delegating], 20) });
  await until("events", () => bench.queued("events").length > 0);
  await bench.publish(3);
  await until("the tasks", () => bench.queued().length === 3);
  await sleep(WATCHED_MS);
  await run.end();
  const held = bench.queued("events").length;
  assert.ok(held <= 20, `the queue held ${held}`);
});

test("a body is inline up to the bound and if it is clean UTF-8, and by sequence otherwise", async () => {
  const run = bench.begin();
  await bench.prepared();
  const js = jetstream(bench.nc);
  const bodies = [
    "x".repeat(MAX_INLINE_BYTES),
    "x".repeat(MAX_INLINE_BYTES + 1),
    Uint8Array.of(0x7b, 0xff, 0x7d),
    "\uFEFF{}",
    "",
    new Uint8Array(1_048_500),
    "\u0001".repeat(MAX_INLINE_BYTES),
  ];
  for (const [i, body] of bodies.entries()) await js.publish(`a2a.v1.task.peer.${bench.runtime}.b${i}`, body);
  await until("all", () => bench.queued().length === bodies.length);
  const inline = new Map(bench.queued().map((message) => [message.subject.at(-1), message.body]));
  assert.deepEqual(
    bodies.map((body, i) => inline.get(String(i)) === body),
    [true, false, false, true, true, false, true],
  );
  assert.equal(inline.get("1") ?? inline.get("2") ?? inline.get("5"), undefined);
  await run.end();
});

test("a hostile subject or header harms nobody else", async () => {
  const run = bench.begin();
  await bench.prepared();
  const js = jetstream(bench.nc);
  const hdrs = headers();
  hdrs.set("Nats-Msg-Id", "x".repeat(60_000));
  hdrs.set("traceparent", "not one");
  await js.publish(`a2a.v1.task.peer.${bench.runtime}.\uFFFF`, "{}", { headers: hdrs });
  await js.publish(`a2a.v1.task.peer.${bench.runtime}.good`, "{}");
  await until("both", () => bench.queued().length === 2);
  assert.deepEqual(
    bench.queued().map((message) => message.headers),
    [{}, {}],
  );
  await run.end();
});

test("a backlog arrives once each, and other agents' messages stay", async () => {
  await bench.publish(1);
  await bench.publish(3, "{}", "other");
  const first = bench.begin();
  await until("what was there before the durable", () => bench.queued().length === 1);
  assert.equal((await first.end()).forwarded, 1);
  await bench.publish(300);
  const run = bench.begin();
  await until("all", () => bench.queued().length >= 301);
  assert.equal((await run.end()).forwarded, 300);
  const seqs = bench.queued().map((message) => message.seq);
  assert.equal(new Set(seqs).size, seqs.length);
  assert.equal(seqs.length, 301);
  await assert.rejects(bench.consumer("other"), /not found/);
});

test("while the queue is over its bound nothing more is pulled; two runs at once keep it too", async () => {
  const bound = 60;
  await bench.prepare();
  await bench.publish(200);
  const settings = bench.settings(undefined, bound);
  const two = [bench.begin({ settings }), bench.begin({ settings })];
  let most = 0;
  await until("half of it", () => bench.queued().length >= bound / 2);
  for (const end = Date.now() + 2 * WATCHED_MS; Date.now() < end; await sleep(10))
    most = Math.max(most, bench.queued().length);
  await Promise.all(two.map((run) => run.end()));
  most = Math.max(most, bench.queued().length);
  assert.ok(most <= bound, `the queue held ${most}`);
  const info = await bench.consumer();
  assert.equal(info.num_pending + info.num_ack_pending, 200);
  assert.equal(info.num_ack_pending, bench.queued().length);
});

test("a deployment without agents makes the streams and is done", async () => {
  const run = await bench.run(60_000, { settings: bench.settings([]) });
  assert.deepEqual(run, { forwarded: 0, givenBack: 0, redelivered: 0 });
});

test("a run tells how far its durables lag, as it finds them and from then on", async () => {
  const told: string[] = [];
  const telemetry = {
    ...quiet,
    measure: (metric: string, value: number, dimensions: Readonly<Record<string, string>> = {}) =>
      void told.push(`${metric} ${value} ${Object.values(dimensions)}`),
  };
  const first = bench.begin({ telemetry });
  await until("it tells something, again and again", () => told.length >= 2);
  await first.end();
  assert.deepEqual([...new Set(told)], ["MessagesPending 0 "]);
  await bench.publish(10);
  const run = bench.begin({ telemetry, settings: bench.settings(undefined, 4) });
  const durable = `a2a_tasks_${bench.runtime}`;
  for (const line of [
    "MessagesPending 10 ",
    `ConsumerPending 10 ${durable}`,
    "MessagesPending 8 ",
    `ConsumerPending 8 ${durable}`,
    `ConsumerAckPending 2 ${durable}`,
  ])
    await until(line, () => told.includes(line));
  await run.end();
});
