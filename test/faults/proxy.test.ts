import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  SendMessageBatchCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import fc from "fast-check";
import { startFauxqs } from "fauxqs";
import { awsSettings } from "../../infra/local/aws.ts";
import { startDynamoDb } from "../../infra/local/dynamodb.ts";
import { Processes } from "../../infra/local/processes.ts";
import { ensureStreams, putObject } from "../../shared/nats/index.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import type { Head } from "../../shared/tasks/items.ts";
import { taskIdOf } from "../../shared/wire/index.ts";
import { startNats } from "../support/nats-server.ts";
import { FrameReader } from "../support/proxy/nats-frames.ts";
import type { Point } from "../support/proxy/points.ts";
import { killCaller, Proxies } from "../support/proxy/proxies.ts";
import { TABLE } from "../support/world.ts";

const TASK = taskIdOf("peer", "acme-support", "msg_1");
const HEAD: Head = {
  taskId: TASK,
  messageId: "msg_1",
  from: "peer",
  to: "acme-support",
  digest: "d",
  state: "TASK_STATE_SUBMITTED",
  epoch: 0,
  beat: 0,
  published: 0,
  decidedAt: 1,
  deadline: 1,
  expiresAt: 1,
};

const running = [{ name: "test-work", pids: [process.pid] }];
const proxies = new Proxies(() => running);
const cleanUp = new AsyncDisposableStack();
let nc: NatsConnection;
let store: ReturnType<typeof dynamoStore>;
let sqs: SQSClient;
let s3: S3Client;
let url: string;
let queueUrl: string;

before(async () => {
  const dir = mkdtempSync(join(tmpdir(), "sluice-proxy-"));
  const processes = new Processes(dir);
  const nats = await startNats();
  const fauxqs = await startFauxqs({ port: 0, logger: false });
  const table = { name: "tasks", properties: { ...TABLE, TableName: "tasks" } };
  const dynamodb = await startDynamoDb(dir, [table], processes, () => {});
  const aws = `http://127.0.0.1:${fauxqs.port}`;
  const seen = await proxies.route({ dynamodb: dynamodb.url, sqs: aws, s3: aws, nats: nats.url });
  const once = { maxAttempts: 1 };
  const ddb = new DynamoDBClient({ ...awsSettings(seen.dynamodb), ...once });
  sqs = new SQSClient({ ...awsSettings(seen.sqs), ...once });
  s3 = new S3Client({ ...awsSettings(seen.s3), ...once });
  const client = DynamoDBDocumentClient.from(ddb, { marshallOptions: { removeUndefinedValues: true } });
  store = dynamoStore({ client, table: "tasks" });
  url = seen.nats;
  await sqs.send(new CreateQueueCommand({ QueueName: "hints" }));
  queueUrl = `${seen.sqs}/000000000000/hints`;
  await s3.send(new CreateBucketCommand({ Bucket: "values" }));
  nc = await connect({ servers: url, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  cleanUp.defer(async () => {
    await nc.close();
    for (const client of [ddb, sqs, s3]) client.destroy();
    await proxies.stop();
    await fauxqs.stop();
    await processes.endAll();
    await nats.stop();
    rmSync(dir, { recursive: true, force: true });
  });
});
after(() => cleanUp.disposeAsync());

/** The points that `act` meets. */
async function pointsOf(act: () => Promise<unknown>): Promise<Point[]> {
  const met: Point[] = [];
  const off = proxies.points.on({ before: (point) => void met.push(point) });
  await act().finally(off);
  return met;
}

test("writes to DynamoDB, SQS and S3 are points with their kind and task, reads are none", async () => {
  const met = await pointsOf(async () => {
    await store.admit(HEAD);
    await store.head(TASK);
    await store.claim({ taskId: TASK, epoch: 0, beat: 0 }, "me", Date.now());
    await store.beat(TASK, 1, { beat: 1 });
    const entry = { place: 1, nonce: "n", epoch: 1, at: 1, revision: 1 };
    await store.append(TASK, { ...entry, end: { state: "TASK_STATE_COMPLETED" } }, 1);
    await store.last(TASK);
    await store.settle(HEAD, 1, "TASK_STATE_COMPLETED");
    const hint = JSON.stringify({ taskId: TASK, epoch: 0, beat: 0 });
    await sqs.send(
      new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries: [{ Id: "0", MessageBody: hint }] }),
    );
    await s3.send(new PutObjectCommand({ Bucket: "values", Key: `values/${TASK}/x`, Body: "whole" }));
    const got = await s3.send(new GetObjectCommand({ Bucket: "values", Key: `values/${TASK}/x` }));
    assert.equal(await got.Body?.transformToString(), "whole");
  });
  assert.deepEqual(
    met.map(({ kind }) => kind),
    [
      "dynamodb PutItem head",
      "dynamodb UpdateItem claim",
      "dynamodb UpdateItem beat",
      "dynamodb PutItem entry end",
      "dynamodb UpdateItem settled",
      "sqs send hints",
      "s3 PUT value",
    ],
  );
  for (const { tasks, caller } of met) {
    assert.deepEqual(tasks, [TASK]);
    assert.deepEqual(caller, { name: "test-work", pid: process.pid });
  }
});

test("a write that is dropped before has not happened, one that is dropped after has", async () => {
  const other = (digest: string) => ({ ...HEAD, taskId: `task_${digest}`, digest });
  const dropped = (when: "before" | "after") =>
    proxies.points.on({
      [when]: ({ kind }: Point) => (kind === "dynamodb PutItem head" ? "drop" : undefined),
    });
  for (const when of ["before", "after"] as const) {
    const off = dropped(when);
    await assert.rejects(store.admit(other(when)));
    off();
    assert.equal((await store.head(`task_${when}`)) !== undefined, when === "after");
  }
});

test("a held write has not happened until it is released", async () => {
  const held = proxies.points.hold("before", ({ kind }) => kind === "sqs send hints", "hint");
  const body = JSON.stringify({ taskId: TASK });
  const sending = sqs.send(
    new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries: [{ Id: "0", MessageBody: body }] }),
  );
  await held.reached;
  const count = async () => {
    const names = ["ApproximateNumberOfMessages"] as const;
    const asked = new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: [...names] });
    return Number((await sqs.send(asked)).Attributes?.[names[0]]);
  };
  const was = await count();
  held.release();
  await sending;
  assert.equal(await count(), was + 1);
});

test("a part out of reach refuses, and is there again afterwards", async () => {
  proxies.outOfReach("dynamodb", true);
  await assert.rejects(store.head(TASK));
  proxies.outOfReach("dynamodb", false);
  assert.equal((await store.head(TASK))?.taskId, TASK);

  proxies.outOfReach("nats", true);
  const flushed = nc.flush();
  proxies.outOfReach("nats", false);
  await flushed.catch(() => nc.flush());
});

test("publishes, acknowledgements, creations and objects are points; requests that read are none", async () => {
  const js = jetstream(nc);
  const subject = `a2a.v1.event.acme-support.peer.${TASK}.accepted`;
  const met = await pointsOf(async () => {
    const jsm = await jetstreamManager(nc);
    await ensureStreams(jsm);
    await jsm.streams.info("A2A_EVENTS");
    await js.publish(subject, "x".repeat(300_000), { msgID: "1" });
    await jsm.consumers.add("A2A_EVENTS", { durable_name: "c", ack_policy: "explicit" });
    const message = await (await js.consumers.get("A2A_EVENTS", "c")).next();
    assert.equal(message?.data.byteLength, 300_000);
    assert.equal(await message?.ackAck(), true);
    const digest = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    await putObject(nc, {
      key: `tasks/${TASK}/a/b`,
      mediaType: "text/plain",
      digest,
      bytes: Buffer.from("x"),
    });
    nc.publish(`sluice.acme.news.${TASK}`);
    await nc.flush();
  });
  const kinds = met.map(({ kind }) => kind);
  assert.deepEqual(kinds, [
    "nats create stream",
    "nats create stream",
    "nats create stream",
    "nats publish accepted",
    "nats create consumer",
    "nats pull",
    "nats ack",
    "nats create stream",
    "nats object chunk",
    "nats object info",
    "nats tell",
  ]);
  assert.deepEqual(met.find(({ kind }) => kind === "nats publish accepted")?.tasks, [TASK]);
});

test("a publish or its answer can be lost or doubled", async () => {
  const js = jetstream(nc, { timeout: 1_000 });
  const subject = (kind: string) => `a2a.v1.event.acme-support.peer.${TASK}.${kind}`;
  const last = async () => (await (await jetstreamManager(nc)).streams.info("A2A_EVENTS")).state.last_seq;
  const send = async (when: "before" | "after", verdict: "drop" | "twice") => {
    const off = proxies.points.on({ [when]: () => verdict });
    const was = await last();
    const answered = await js.publish(subject("status"), `${when} ${verdict}`).then(
      () => true,
      () => false,
    );
    off();
    return { answered, stored: (await last()) - was };
  };
  assert.deepEqual(await send("before", "twice"), { answered: true, stored: 2 });
  assert.deepEqual(await send("after", "twice"), { answered: true, stored: 1 });
  // The client tries again, so the answer alone is lost more than once.
  const dropped = await send("before", "drop");
  assert.deepEqual(dropped, { answered: false, stored: 0 });
  const unheard = await send("after", "drop");
  assert.equal(unheard.answered, false);
  assert.ok(unheard.stored >= 1);
});

test("the process that writes is killed before its write reaches the part, or before it hears of it", async () => {
  const script = `
    import { connect } from "@nats-io/transport-node";
    import { jetstream } from "@nats-io/jetstream";
    const nc = await connect({ servers: ${JSON.stringify(url)} });
    await jetstream(nc).publish("a2a.v1.event.acme-support.peer.${TASK}.result", "the end");
    process.exit(0);`;
  const stored = async () => {
    const { state } = await (await jetstreamManager(nc)).streams.info("A2A_EVENTS", {
      subjects_filter: `a2a.v1.event.acme-support.peer.${TASK}.result`,
    } as never);
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  };
  for (const [when, expected] of [
    ["before", 0],
    ["after", 1],
  ] as const) {
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      cwd: import.meta.dirname,
      stdio: "inherit",
    });
    running[0]?.pids.push(child.pid ?? 0);
    const off = proxies.points.on({
      [when]: (point: Point) => (point.kind === "nats publish result" ? killCaller(point) : undefined),
    });
    const [code, signal] = await once(child, "exit");
    off();
    assert.deepEqual([code, signal], [null, "SIGKILL"]);
    assert.equal(await stored(), expected);
  }
});

test("frames are the same however their bytes are split", () => {
  const text = [
    'CONNECT {"verbose":false}\r\n',
    "PUB a.b 5\r\nhello\r\n",
    "pub a.b reply.to 2\r\n\r\n\r\n",
    "HPUB a.b reply 12 15\r\nNATS/1.0\r\n\r\nxyz\r\n",
    "SUB a.* 1\r\n",
    "MSG a.b 1 0\r\n\r\n",
    "HMSG a.b 1 r 12 12\r\nNATS/1.0\r\n\r\n\r\n",
    "PING\r\n",
  ];
  const bytes = Buffer.from(text.join(""));
  const whole = new FrameReader().push(bytes);
  assert.deepEqual(
    whole.map(({ op, args, body }) => [op, args.join(" "), body.toString()]),
    [
      ["CONNECT", '{"verbose":false}', ""],
      ["PUB", "a.b", "hello"],
      ["PUB", "a.b reply.to", "\r\n"],
      ["HPUB", "a.b reply", "xyz"],
      ["SUB", "a.* 1", ""],
      ["MSG", "a.b 1", ""],
      ["HMSG", "a.b 1 r", ""],
      ["PING", "", ""],
    ],
  );
  const cuts = fc.array(fc.nat(bytes.byteLength), { maxLength: 40 });
  fc.assert(
    fc.property(cuts, (at) => {
      const reader = new FrameReader();
      const borders = [0, ...at.sort((a, b) => a - b), bytes.byteLength];
      const frames = borders.slice(1).flatMap((end, i) => reader.push(bytes.subarray(borders[i], end)));
      assert.deepEqual(frames, whole);
    }),
  );
});
