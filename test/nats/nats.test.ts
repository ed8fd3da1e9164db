import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Objm } from "@nats-io/obj";
import { headers, type NatsConnection, nanos } from "@nats-io/transport-node";
import { eachRecord } from "../../functions/batch.ts";
import { timing } from "../../shared/config/timing.ts";
import {
  ack,
  ackSubjectOf,
  connectNats,
  ensureConsumers,
  ensureStreams,
  eventsConsumer,
  getObject,
  type IntakeDeps,
  intake,
  nak,
  putObject,
  readBySeq,
  readLastOn,
  STREAMS,
  tasksConsumer,
  term,
} from "../../shared/nats/index.ts";
import { taskIdOf } from "../../shared/wire/index.ts";
import { startNats, type TestNats } from "../support/nats-server.ts";
import { recordOf } from "../support/sqs-record.ts";

const HOUR = 3_600_000;
const PLAIN = { runtime: "acme-made", delegates: false };
const silent = { debug() {}, info() {}, warn() {}, error() {}, count() {}, measure() {} };
let server: TestNats;
let nc: NatsConnection;
let jsm: JetStreamManager;

before(async () => {
  server = await startNats();
  nc = await connectNats({ servers: [server.url], credentials: "none", name: "test" });
  jsm = await jetstreamManager(nc);
});
after(async () => {
  await nc.close();
  await server.stop();
});

test("streams are created with the numbers of the wire, by several at once", async () => {
  await Promise.all([ensureStreams(jsm), ensureStreams(jsm), ensureStreams(jsm)]);
  for (const [name, subject, bytes, hours] of [
    ["A2A_TASKS", "a2a.v1.task.>", 1_048_576, 24],
    ["A2A_CONTROLS", "a2a.v1.control.>", 262_144, 24],
    ["A2A_EVENTS", "a2a.v1.event.>", 1_048_576, 72],
  ] as const) {
    const { config } = await jsm.streams.info(name);
    assert.deepEqual(config.subjects, [subject]);
    assert.equal(config.max_msg_size, bytes);
    assert.equal(config.duplicate_window, nanos(hours * HOUR));
    assert.equal(config.discard, "new");
    assert.equal(config.retention, "limits");
    assert.equal(config.storage, "file");
    assert.equal(config.max_age, 0);
  }
  assert.equal(STREAMS.length, 3);
});

test("an operator's settings of a stream stay", async () => {
  await ensureStreams(jsm);
  const before = await jsm.streams.update("A2A_EVENTS", {
    max_age: nanos(7 * 24 * HOUR),
    max_bytes: 50_000_000,
  });
  await ensureStreams(jsm);
  assert.deepEqual((await jsm.streams.info("A2A_EVENTS")).config, before.config);
});

test("durables are created, left alone when right and corrected when not", async () => {
  await ensureStreams(jsm);
  const made = await Promise.all([1, 2, 3].map(() => ensureConsumers(jsm, PLAIN, timing())));
  const config = made[0]?.tasks.config;
  assert.equal(config?.durable_name, "a2a_tasks_acme-made");
  assert.equal(config.filter_subject, "a2a.v1.task.*.acme-made.>");
  assert.equal(config.ack_wait, nanos(120_000));
  assert.equal(config.max_deliver, -1);
  assert.equal(config.max_ack_pending, 1_000);
  assert.equal(config.deliver_policy, "by_start_time");
  const back = Date.now() - Date.parse(config.opt_start_time ?? "");
  assert.ok(back >= 24 * HOUR && back < 24 * HOUR + 60_000);
  assert.equal(made[0]?.controls.config.filter_subject, "a2a.v1.control.*.acme-made.>");

  await jsm.consumers.update("A2A_TASKS", tasksConsumer("acme-made"), {
    max_deliver: 5,
    ack_wait: nanos(1_000),
    max_ack_pending: 10,
    backoff: [nanos(1_000), nanos(2_000)],
  });
  const mended = await ensureConsumers(jsm, PLAIN, timing(2));
  assert.equal(mended.tasks.config.ack_wait, nanos(60_000));
  assert.equal(mended.tasks.config.max_deliver, -1);
  assert.equal(mended.tasks.config.max_ack_pending, 1_000);
  assert.equal(mended.tasks.config.backoff, undefined);
  assert.equal(mended.tasks.config.opt_start_time, config.opt_start_time);
});

test("only a runtime that delegates has a durable for events; one that no longer does keeps it as it is", async () => {
  await ensureStreams(jsm);
  const [plain, delegating] = [PLAIN, { runtime: "acme-relay", delegates: true }];
  assert.equal((await ensureConsumers(jsm, plain, timing())).events, undefined);
  await assert.rejects(jsm.consumers.info("A2A_EVENTS", eventsConsumer(plain.runtime)), /not found/);

  const { events, tasks } = await ensureConsumers(jsm, delegating, timing());
  assert.ok(events);
  const { durable_name, filter_subject, opt_start_time, ...config } = events.config;
  assert.equal(durable_name, "a2a_events_acme-relay");
  assert.equal(filter_subject, "a2a.v1.event.*.acme-relay.>");
  const back = Date.now() - Date.parse(opt_start_time ?? "");
  assert.ok(back >= 24 * HOUR && back < 24 * HOUR + 60_000);
  const { durable_name: _, filter_subject: __, opt_start_time: ___, ...likeTasks } = tasks.config;
  assert.deepEqual({ ...config, name: "" }, { ...likeTasks, name: "" });

  await ensureConsumers(jsm, { ...delegating, delegates: false }, timing(2));
  const left = await jsm.consumers.info("A2A_EVENTS", eventsConsumer("acme-relay"));
  assert.deepEqual(left.config, events.config);
});

test("ack, nak and term are confirmed, by the ack subject alone", async () => {
  await ensureStreams(jsm);
  const { tasks } = await ensureConsumers(jsm, { runtime: "acme-acks", delegates: false }, timing());
  const js = jetstream(nc);
  const consumer = js.consumers.getConsumerFromInfo(tasks);
  const deliver = async () => {
    const message = await consumer.next({ expires: 5_000 });
    assert.ok(message);
    return message;
  };
  const advisory = nc.subscribe("$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>", { max: 1 });

  await js.publish("a2a.v1.task.peer.acme-acks.m1", "1");
  const first = await deliver();
  assert.equal(await nak(nc, ackSubjectOf(first), 50), true);
  const second = await deliver();
  assert.deepEqual([second.seq, second.info.deliveryCount], [first.seq, 2]);
  assert.equal(await ack(nc, ackSubjectOf(second)), true);

  await js.publish("a2a.v1.task.peer.acme-acks.m2", "2");
  const third = await deliver();
  assert.equal(await term(nc, ackSubjectOf(third), `because\n${"x".repeat(1_000)}`), true);
  for await (const message of advisory) {
    const { stream_seq, reason } = message.json<{ stream_seq: number; reason: string }>();
    assert.deepEqual([stream_seq, reason], [third.seq, `because ${"x".repeat(248)}`]);
  }
  const info = await jsm.consumers.info("A2A_TASKS", tasksConsumer("acme-acks"));
  assert.deepEqual([info.num_ack_pending, info.num_pending, info.num_redelivered], [0, 0, 0]);
});

test("an acknowledgement nobody confirms is false, not an error", async () => {
  assert.equal(await ack(nc, "$JS.ACK.A2A_TASKS.a2a_tasks_gone.1.1.1.1.0", 100), false);
});

test("messages are read by sequence, the largest too, and null when they are gone", async () => {
  await ensureStreams(jsm);
  const js = jetstream(nc);
  const hdrs = headers();
  hdrs.set("Nats-Msg-Id", "read:1");
  const subject = "a2a.v1.task.peer.acme-reads.m1";
  const body = new Uint8Array(1_048_000).map((_, i) => i % 256);
  const { seq } = await js.publish(subject, body, { headers: hdrs });
  const read = await readBySeq(jsm, "A2A_TASKS", seq);
  assert.ok(read);
  assert.equal(read.subject, subject);
  assert.deepEqual(read.headers, { "Nats-Msg-Id": "read:1" });
  assert.equal(Buffer.compare(read.body, body), 0);
  assert.ok(Math.abs(Date.now() - read.time) < 60_000);
  assert.equal((await readLastOn(jsm, "A2A_TASKS", subject))?.body.length, body.length);
  await jsm.streams.deleteMessage("A2A_TASKS", seq);
  assert.equal(await readBySeq(jsm, "A2A_TASKS", seq), null);
  assert.equal(await readBySeq(jsm, "A2A_TASKS", seq + 1_000), null);
  assert.equal(await readLastOn(jsm, "A2A_TASKS", subject), null);
});

test("an artifact is stored once, with its media type, and comes back whole", async () => {
  const bytes = randomBytes(2_000_000);
  const object = {
    key: "tasks/task_1/artifact-1/report.bin",
    mediaType: "application/octet-stream",
    digest: `sha256:${createHash("sha256").update(bytes).digest("hex")}`,
    bytes,
  };
  assert.equal(await getObject(nc, object.key), null);
  await putObject(nc, object);
  const bucket = await new Objm(nc).open("a2a-artifacts");
  const info = await bucket.info(object.key);
  assert.equal(info?.metadata?.media_type, "application/octet-stream");
  await putObject(nc, object);
  assert.equal((await bucket.info(object.key))?.revision, info?.revision);
  const back = await getObject(nc, object.key);
  assert.ok(back !== null && bytes.equals(back));
  assert.equal(await getObject(nc, "tasks/task_1/artifact-2/none"), null);

  await assert.rejects(
    putObject(nc, { ...object, bytes: bytes.subarray(1) }),
    /its digest .* is not that of/,
  );
  const empty = { ...object, key: "tasks/task_1/artifact-3/empty", bytes: new Uint8Array() };
  await putObject(nc, { ...empty, digest: `sha256:${createHash("sha256").digest("hex")}` });
  assert.equal((await getObject(nc, empty.key))?.length, 0);
});

test("the line of a message that is terminated names the task, whatever its body holds", async () => {
  const told: object[] = [];
  const telemetry = { ...silent, warn: (_: string, fields?: object) => void told.push(fields ?? {}) };
  const take = (subject: string) =>
    intake(
      {
        connection: async () => nc,
        telemetry,
        timing: timing(),
        decide: async () => ({ term: "expected JSON" }),
        decided: async () => false,
      },
      {
        body: JSON.stringify({
          stream: "A2A_TASKS",
          consumer: "c",
          seq: 1,
          ackSubject: "$JS.ACK.nobody",
          subject,
          headers: {},
          deliveries: 1,
          storedAt: Date.now(),
          body: "no JSON",
          redriven: true,
        }),
        receives: 1,
        maxReceives: 5,
      },
    );
  const taskId = taskIdOf("a", "b", "m");
  for (const subject of ["a2a.v1.task.a.b.m", `a2a.v1.control.a.b.${taskId}.cancel`, "a2a.v1.task.a.b"])
    await take(subject);
  assert.deepEqual(
    told.map((fields) => Reflect.get(fields, "taskId")),
    [taskId, taskId, undefined],
  );
});

test("a redriven message that cannot be decided now stays in its queue, for JetStream has given it up", async () => {
  const message = {
    stream: "A2A_TASKS",
    consumer: "c",
    seq: 1,
    ackSubject: "$JS.ACK.nobody",
    subject: "a2a.v1.task.a.b.m",
    headers: {},
    deliveries: 5,
    storedAt: Date.now(),
    body: "{}",
  };
  const taken = (redriven: boolean, decide: IntakeDeps["decide"], receives = 1) =>
    intake(
      {
        connection: async () => nc,
        telemetry: silent,
        timing: timing(),
        decide,
        decided: async () => false,
      },
      {
        body: JSON.stringify({ ...message, ...(redriven && { redriven }) }),
        receives,
        maxReceives: 5,
      },
    );
  const tooEarly = async () => ({ nakMs: 1_000 });
  const unreachable = async () => {
    throw new TypeError("the table is out of reach");
  };
  await taken(false, tooEarly);
  await taken(false, unreachable);
  await assert.rejects(taken(true, tooEarly), { name: "NotNow" });
  await assert.rejects(taken(true, unreachable), { name: "TypeError" });
  await taken(true, async () => ({ ack: true }));
  await taken(true, tooEarly, 5).then(
    () => assert.fail("it belongs to the dead letters"),
    (error: Error) => assert.match(error.message, /it was received 4 times in vain/),
  );
});

test("no message waits for another's confirmation, though they are taken one after the other", async () => {
  const jetStreamAnswers = Promise.withResolvers<void>();
  const ids = ["1", "2", "3", "4"];
  const asked = new Set<string>();
  const acks = nc.subscribe("$JS.ACK.late.*", {
    // A server that has lost what it noted last answers none: this one does once it has heard of all.
    callback: (_, message) => {
      asked.add(message.subject);
      void jetStreamAnswers.promise.then(() => message.respond());
      if (asked.size === ids.length) jetStreamAnswers.resolve();
    },
  });
  const unconfirmed: string[] = [];
  const telemetry = { ...silent, count: (metric: string) => void unconfirmed.push(metric) };
  const deps = { connection: async () => nc, telemetry, timing: timing(), decided: async () => true };
  const verdicts = [{ ack: true }, { nakMs: 1 }, { term: "no" }] as const;
  const { batchItemFailures } = await eachRecord(
    { Records: ids.map((id) => recordOf(id, forwardedOf(id), "2")) },
    telemetry,
    ({ body, messageId }, later) =>
      intake(
        {
          ...deps,
          decide: async () => {
            const verdict = verdicts[Number(messageId) - 1];
            if (verdict === undefined) throw new Error("the table is out of reach");
            return verdict;
          },
        },
        { body, receives: 2, maxReceives: 5, later },
      ),
  );
  acks.unsubscribe();
  assert.equal(asked.size, ids.length);
  assert.deepEqual(batchItemFailures, []);
  assert.deepEqual(
    unconfirmed.filter((metric) => metric === "AcksUnconfirmed"),
    [],
  );
});

test("an acknowledgement of what a consumer has not delivered yet, as a restored server believes, is not answered", async () => {
  await jsm.streams.add({ name: "RESTORED", subjects: ["restored.>"] });
  await jsm.consumers.add("RESTORED", { durable_name: "c" });
  assert.equal(await ack(nc, "$JS.ACK.RESTORED.c.1.7.7.1700000000000000000.0", 100), false);
});

function forwardedOf(id: string): string {
  const of = {
    stream: "A2A_TASKS",
    consumer: "c",
    seq: 1,
    subject: "a2a.v1.task.a.b.m",
    headers: {},
    deliveries: 1,
  };
  return JSON.stringify({ ...of, ackSubject: `$JS.ACK.late.${id}`, storedAt: Date.now(), body: "{}" });
}
