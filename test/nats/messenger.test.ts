import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { AckPolicy, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Objm } from "@nats-io/obj";
import type { NatsConnection } from "@nats-io/transport-node";
import { MAX_FETCHED_BYTES, type Messenger, natsMessenger } from "../../shared/events/messenger.ts";
import { connectNats, ensureStreams, putObject, readLastOn } from "../../shared/nats/index.ts";
import {
  acceptedEvent,
  artifactEvent,
  artifactRef,
  controlMessage,
  taskMessage,
} from "../../shared/wire/index.ts";
import { startNats, type TestNats } from "../support/nats-server.ts";

const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const CREATED = "2026-08-01T12:00:00.000Z";

let server: TestNats;
let nc: NatsConnection;
let jsm: JetStreamManager;
let messenger: Messenger;

before(async () => {
  server = await startNats();
  nc = await connectNats({ servers: [server.url], credentials: "none", name: "test" });
  jsm = await jetstreamManager(nc);
  messenger = natsMessenger({ connection: async () => nc });
});
after(async () => {
  await nc.close();
  await server.stop();
});

const task = (messageId: string, a2a: unknown = "hello") =>
  taskMessage({
    from: "acme-relay",
    to: "peer-1",
    messageId,
    request: { a2a, channelRef: "peer", skillId: "task" },
    createdAt: CREATED,
  });

test("without streams a message is not sent, and says so", async () => {
  await assert.rejects(messenger.send(task("m0")));
});

test("a task and a control are on their streams once, however often they are sent, with their trace", async () => {
  await ensureStreams(jsm);
  const message = task("m1");
  await messenger.send(message, TRACE);
  await messenger.send(message, TRACE);
  const cancel = controlMessage({
    from: "acme-relay",
    to: "peer-1",
    taskId: "task_1",
    kind: "cancel",
    revision: 3,
    reason: "the parent has ended",
    createdAt: CREATED,
  });
  await messenger.send(cancel);
  await messenger.send(cancel);
  for (const [stream, { subject, msgId, body }, trace] of [
    ["A2A_TASKS", message, { traceparent: TRACE }],
    ["A2A_CONTROLS", cancel, {}],
  ] as const) {
    assert.equal((await jsm.streams.info(stream)).state.messages, 1, stream);
    const stored = await readLastOn(jsm, stream, subject);
    assert.deepEqual(stored?.headers, { "Nats-Msg-Id": msgId, ...trace });
    assert.equal(Buffer.from(stored?.body ?? "").toString(), body);
  }
});

test("what no stream takes is an error: too large a message, a subject that is nobody's", async () => {
  await ensureStreams(jsm);
  await assert.rejects(messenger.send(task("large", "x".repeat(1_048_576))), /payload/);
  await assert.rejects(
    messenger.send({ subject: "a2a.v1.nothing.x", msgId: "1", body: "{}" }),
    /jetstream is not enabled/,
  );
});

/** A server on which `u` may do what a delegator needs (docs/wire.md §13), and `admin` everything. */
async function guarded(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), "sluice-permissions-"));
  t.after(() => rm(dir, { recursive: true }));
  const publish = [
    "a2a.v1.task.acme-relay.>",
    "a2a.v1.control.acme-relay.>",
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.OBJ_a2a-artifacts",
    "$JS.API.STREAM.MSG.GET.OBJ_a2a-artifacts",
    "$JS.API.CONSUMER.CREATE.OBJ_a2a-artifacts.>",
    "$JS.FC.OBJ_a2a-artifacts.>",
  ];
  const permissions = JSON.stringify({ publish, subscribe: ["_INBOX_test.>"] });
  const users = `{ user: u, password: p, permissions: ${permissions} }, { user: admin, password: p }`;
  await writeFile(join(dir, "nats.conf"), `authorization { users: [${users}] }`);
  const server = await startNats(["-c", join(dir, "nats.conf")]);
  t.after(() => server.stop());
  const connectAs = async (user: string) => {
    await writeFile(join(dir, user), JSON.stringify({ user, password: "p" }));
    const settings = { servers: [server.url], credentials: `file:${join(dir, user)}`, name: "test" };
    const own = await connectNats(settings);
    t.after(() => own.close());
    return own;
  };
  return { own: await connectAs("u"), admin: await connectAs("admin") };
}

test("a delegator needs the permissions that are documented, and what it may not send is an error", async (t) => {
  const { own, admin } = await guarded(t);
  await ensureStreams(await jetstreamManager(admin));
  const ours = natsMessenger({ connection: async () => own });
  await ours.send(task("allowed"));
  const bytes = randomBytes(300_000);
  assert.ok(bytes.equals(await ours.fetch(await stored("guarded", bytes, admin))));
  const { subject, ...message } = task("forbidden");
  await assert.rejects(
    ours.send({ ...message, subject: subject.replace("acme-relay", "acme-echo") }),
    /permissions violation/i,
  );
});

/** Stores an object as an executor does, and gives its reference. */
async function stored(id: string, bytes: Uint8Array, by = nc) {
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  const mediaType = "application/octet-stream";
  const of = { id, name: `${id}.bin`, mediaType, digest, sizeBytes: bytes.byteLength };
  const ref = artifactRef("task_1", of);
  await putObject(by, { ...ref, bytes });
  return ref;
}

test("an artifact comes back whole: empty, of several pieces", async () => {
  for (const bytes of [new Uint8Array(), randomBytes(1), randomBytes(1_000_000)]) {
    const fetched = await messenger.fetch(await stored(`whole-${bytes.length}`, bytes));
    assert.ok(Buffer.from(bytes).equals(fetched));
  }
});

test("an artifact that is not there is an error that names it", async () => {
  const ref = await stored("here", randomBytes(10));
  await assert.rejects(messenger.fetch({ ...ref, name: "gone", key: "tasks/task_1/gone/gone" }), {
    message: 'artifact "gone": a2a-artifacts holds no object "tasks/task_1/gone/gone"',
  });
  await (await new Objm(nc).open("a2a-artifacts")).delete(ref.key);
  await assert.rejects(messenger.fetch(ref), /artifact "here\.bin": a2a-artifacts holds no object/);
});

test("without the bucket there is no artifact", async (t) => {
  const empty = await startNats();
  t.after(() => empty.stop());
  const other = await connectNats({ servers: [empty.url], credentials: "none", name: "test" });
  t.after(() => other.close());
  const lonely = natsMessenger({ connection: async () => other });
  await assert.rejects(lonely.fetch(await stored("elsewhere", randomBytes(3))), /holds no object/);
});

test("a reference that leads elsewhere, promises too much or has no digest is not followed", async () => {
  const ref = await stored("refused", randomBytes(10));
  const unused = natsMessenger({ connection: () => assert.fail("it asked for the connection") });
  for (const [change, message] of [
    [{ bucket: "secrets" }, /bucket: expected a2a-artifacts, got "secrets"/],
    [{ sizeBytes: MAX_FETCHED_BYTES + 1 }, /sizeBytes: expected at most 67108864, got 67108865/],
    [{ digest: `sha256:${"A".repeat(64)}` }, /digest: expected sha256: and 64 hex digits/],
    [{ digest: "" }, /digest: expected .*, got ""/],
    [{ digest: "d".repeat(100_000) }, /digest: expected .*, got "d{128}"$/],
  ] as const)
    await assert.rejects(unused.fetch({ ...ref, ...change }), (error) => {
      assert.ok(error instanceof Error);
      assert.match(error.message, /^artifact "refused\.bin": /);
      assert.match(error.message, message);
      return true;
    });
});

test("bytes that are others than the event says are an error: more, fewer, different", async () => {
  const ref = await stored("other", randomBytes(10));
  await assert.rejects(messenger.fetch({ ...ref, sizeBytes: 9 }), /expected at most 9 bytes, got 10/);
  await assert.rejects(messenger.fetch({ ...ref, sizeBytes: 11 }), /expected 11 bytes, got 10/);
  await assert.rejects(
    messenger.fetch({ ...ref, digest: `sha256:${"0".repeat(64)}` }),
    /artifact "other\.bin": expected bytes whose digest is sha256:0+, got sha256:[0-9a-f]{64}$/,
  );
});

test("the largest artifact is fetched, and one that only says that it is small is given up in time", async () => {
  const bytes = Buffer.alloc(MAX_FETCHED_BYTES, "0123456789abcdef");
  const ref = await stored("largest", bytes);
  assert.ok(bytes.equals(await messenger.fetch(ref)));

  // Its description lies: the bucket's pieces are those of the large one.
  const bucket = await new Objm(nc).open("a2a-artifacts");
  const info = await bucket.info(ref.key);
  assert.ok(info);
  const key = "tasks/task_1/liar/liar.bin";
  const meta = `$O.a2a-artifacts.M.${Buffer.from(key).toString("base64url")}`;
  const { nuid, digest, bucket: name } = info;
  const padded = meta + "=".repeat((4 - (Buffer.from(key).toString("base64url").length % 4)) % 4);
  nc.publish(padded, JSON.stringify({ name: key, bucket: name, nuid, digest, size: 16, chunks: 1 }));
  await nc.flush();
  await assert.rejects(
    messenger.fetch({ ...ref, key, name: "liar.bin", sizeBytes: 16 }),
    /artifact "liar\.bin": it cannot be read \(expected at most 16 bytes, got \d+\)/,
  );
});

test("a link is not followed, and pieces that are lost do not keep us waiting for ever", async () => {
  const ref = await stored("linked", randomBytes(200_000));
  const bucket = await new Objm(nc).open("a2a-artifacts");
  const info = await bucket.info(ref.key);
  assert.ok(info);
  const key = "tasks/task_1/link/link.bin";
  await bucket.link(key, info);
  await assert.rejects(
    messenger.fetch({ ...ref, key }),
    /it cannot be read \(expected an object, got a link\)/,
  );

  await jsm.streams.purge("OBJ_a2a-artifacts", { filter: `$O.a2a-artifacts.C.${info.nuid}` });
  await assert.rejects(messenger.fetch(ref), /it cannot be read \(nothing came for 5000 ms after 0 bytes\)/);
});

test("the events about artifacts of a task are counted", async () => {
  const child = { executor: "peer-1", delegator: "acme-relay", childTaskId: "task_c" };
  assert.equal(await messenger.countArtifacts(child), 0);
  const of = { taskId: "task_c", messageId: "m", from: "acme-relay", to: "peer-1" };
  const artifact = artifactRef("task_c", {
    id: "a",
    name: "a.txt",
    mediaType: "text/plain",
    digest: `sha256:${"0".repeat(64)}`,
    sizeBytes: 1,
  });
  await messenger.send(acceptedEvent(of, CREATED));
  for (const revision of [2, 3]) await messenger.send(artifactEvent(of, { artifact, revision }, CREATED));
  await messenger.send(artifactEvent({ ...of, taskId: "task_d" }, { artifact, revision: 2 }, CREATED));
  assert.equal(await messenger.countArtifacts(child), 2);
});

test("controls are heard up to where they are settled, and nothing is known without their durable", async () => {
  await assert.rejects(messenger.controlsHeard("acme-heard"), /consumer not found/);
  await jsm.consumers.add("A2A_CONTROLS", {
    durable_name: "a2a_controls_acme-heard",
    filter_subject: "a2a.v1.control.*.acme-heard.>",
    ack_policy: AckPolicy.Explicit,
  });
  const put = (id: string) =>
    messenger.send({ subject: "a2a.v1.control.peer-1.acme-heard.t.cancel", msgId: id, body: "{}" });
  const seen = async () => {
    const { waiting, unsettled, handedOut, settled } = await messenger.controlsHeard("acme-heard");
    return [waiting, unsettled, handedOut === settled];
  };
  assert.deepEqual(await seen(), [0, 0, true]);
  await put("heard-1");
  await put("heard-2");
  assert.deepEqual(await seen(), [2, 0, true]);
  const consumer = await jetstream(nc).consumers.get("A2A_CONTROLS", "a2a_controls_acme-heard");
  const first = await consumer.next();
  assert.deepEqual(await seen(), [1, 1, false]);
  const second = await consumer.next();
  assert.ok(await second?.ackAck());
  assert.deepEqual(await seen(), [0, 1, false]);
  assert.ok(await first?.ackAck());
  assert.deepEqual(await seen(), [0, 0, true]);
});
