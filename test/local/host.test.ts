import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { DynamoDBClient, GetItemCommand, PutItemCommand, QueryCommand } from "@aws-sdk/client-dynamodb";
import { GetObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { awsSettings } from "../../infra/local/aws.ts";
import { type Host, startHost } from "../../infra/local/host.ts";
import { killGroup } from "../../infra/local/processes.ts";
import { kill9 } from "../support/kill-9.ts";
import {
  mapping,
  queueWithDead,
  type TestStack,
  temporaryFolder,
  writeAssembly,
} from "./support/assembly.ts";
import { eventually, isAlive, linesOf, processesOf, startTestHost } from "./support/host.ts";

/** Takes a message and holds it for as long as it runs; says so first, with its process. */
const HOLDER = `
import { appendFileSync } from "node:fs";
export const handler = async ({ Records }) => {
  for (const { body, attributes } of Records)
    appendFileSync(process.env.OUT, [body, attributes.ApproximateReceiveCount, process.pid].join(" ") + "\\n");
  if (Records.some(({ body }) => body === "hold")) for (;;);
};
`;

const STACK: TestStack = {
  functions: { holder: { source: HOLDER, properties: { Timeout: 900 } } },
  resources: {
    ...queueWithDead("tasks", 5400, 5),
    ...queueWithDead("parked", 30, 5),
    source: mapping("tasks", "holder", { BatchSize: 1 }),
    bucket: { Type: "AWS::S3::Bucket", Properties: { BucketName: "values" } },
    table: {
      Type: "AWS::DynamoDB::Table",
      Properties: {
        TableName: "things",
        AttributeDefinitions: [
          { AttributeName: "pk", AttributeType: "S" },
          { AttributeName: "sk", AttributeType: "S" },
          { AttributeName: "dueShard", AttributeType: "S" },
          { AttributeName: "dueAt", AttributeType: "N" },
        ],
        KeySchema: [
          { AttributeName: "pk", KeyType: "HASH" },
          { AttributeName: "sk", KeyType: "RANGE" },
        ],
        GlobalSecondaryIndexes: [
          {
            IndexName: "due",
            KeySchema: [
              { AttributeName: "dueShard", KeyType: "HASH" },
              { AttributeName: "dueAt", KeyType: "RANGE" },
            ],
            Projection: { ProjectionType: "KEYS_ONLY" },
          },
        ],
      },
    },
  },
};

function clients(host: Host) {
  return {
    sqs: new SQSClient(awsSettings(host.endpoints.sqs)),
    s3: new S3Client(awsSettings(host.endpoints.s3)),
    dynamodb: new DynamoDBClient(awsSettings(host.endpoints.dynamodb)),
  };
}

async function startHostProcess(t: test.TestContext, dataDir: string): Promise<ChildProcess> {
  const program = fileURLToPath(new URL("./support/host-process.ts", import.meta.url));
  const child = spawn(process.execPath, [program, dataDir, writeAssembly(STACK)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}

test("everything in the data folder is there again after a restart", async (t) => {
  const first = await startTestHost(t, STACK);
  const { dataDir } = first;
  const { sqs, s3, dynamodb } = clients(first);
  await sqs.send(
    new SendMessageCommand({ QueueUrl: first.queueUrls.parked, MessageBody: "later", DelaySeconds: 900 }),
  );
  await s3.send(new PutObjectCommand({ Bucket: "values", Key: "a/b", Body: "value" }));
  const item = {
    pk: { S: "task" },
    sk: { S: "head" },
    dueShard: { S: "0" },
    dueAt: { N: "5" },
    more: { S: "x" },
  };
  await dynamodb.send(new PutItemCommand({ TableName: first.tableName, Item: item }));
  const nc = await connect({ servers: first.endpoints.nats });
  await (await jetstreamManager(nc)).streams.add({ name: "S", subjects: ["s"] });
  await jetstream(nc).publish("s", "message");
  await nc.close();
  await first.stop();
  assert.deepEqual(processesOf(dataDir), []);

  const second = await startTestHost(t, STACK, { dataDir });
  const again = clients(second);
  const object = await again.s3.send(new GetObjectCommand({ Bucket: second.bucketName, Key: "a/b" }));
  assert.equal(await object.Body?.transformToString(), "value");
  const { Item } = await again.dynamodb.send(
    new GetItemCommand({ TableName: "things", Key: { pk: item.pk, sk: item.sk } }),
  );
  assert.deepEqual(Item, item);
  const { Items } = await again.dynamodb.send(
    new QueryCommand({
      TableName: "things",
      IndexName: "due",
      KeyConditionExpression: "dueShard = :s AND dueAt <= :t",
      ExpressionAttributeValues: { ":s": { S: "0" }, ":t": { N: "5" } },
    }),
  );
  const { more: _, ...keys } = item;
  assert.deepEqual(Items, [keys]);
  const parked = await fetch(`${second.endpoints.sqs}/_fauxqs/queues/parked`);
  assert.match(await parked.text(), /"later"/);
  const reader = await connect({ servers: second.endpoints.nats });
  const { state } = await (await jetstreamManager(reader)).streams.info("S");
  assert.equal(state.messages, 1);
  await reader.close();
});

test("what an earlier host has left running is ended, whoever its parent is now, and nothing else", async (t) => {
  const dataDir = temporaryFolder("survivors");
  const sleeper = (folder: string) => {
    const env = { ...process.env, SLUICE_LOCAL_HOST: folder };
    const child = spawn("sh", ["-c", "trap '' TERM; sleep 1000 & wait"], {
      detached: true,
      stdio: "ignore",
      env,
    });
    t.after(() => child.pid && killGroup(child.pid, "SIGKILL"));
    return child;
  };
  const survivor = sleeper(dataDir);
  const stranger = sleeper(`${dataDir}-2`);
  await eventually(
    () => processesOf(dataDir),
    ({ length }) => length === 2,
  );
  const host = await startTestHost(t, STACK, { dataDir });
  assert.equal(isAlive(survivor.pid ?? 0), false);
  assert.equal(isAlive(stranger.pid ?? 0), true);
  assert.ok(host.events.some((event) => event.type === "progress" && event.message.includes("earlier host")));
});

test("a host that is killed leaves nothing that its successor does not end, and what it had received comes again", async (t) => {
  const dataDir = temporaryFolder("killed");
  const killed = await startHostProcess(t, dataDir);
  const { sqs: endpoint, queues } = JSON.parse(readFileSync(join(dataDir, "host.json"), "utf8"));
  const sqs = new SQSClient(awsSettings(endpoint));
  const seen = () => linesOf(join(dataDir, "seen.txt"));
  const give = (MessageBody: string) =>
    sqs.send(new SendMessageCommand({ QueueUrl: queues.tasks, MessageBody }));
  // One process will spin; one, used after it, will be idle.
  await give("hold");
  const [first = ""] = await eventually(seen, (lines) => lines.length === 1);
  await give("go");
  const [, go = ""] = await eventually(seen, (lines) => lines.length === 2);
  await eventually(
    () => fetch(`${endpoint}/_fauxqs/queues/tasks`).then((r) => r.text()),
    (text) => !text.includes('"go"'),
  );
  killed.kill("SIGKILL");
  await once(killed, "exit");
  await eventually(() => !isAlive(Number(go.split(" ")[2])));
  const host = await startTestHost(t, STACK, { dataDir });
  const [, , second = ""] = await eventually(seen, (lines) => lines.length === 3);
  assert.match(first, /^hold 1 /);
  assert.match(second, /^hold 2 /);
  assert.equal(isAlive(Number(first.split(" ")[2])), false);
  await host.stop();
  assert.deepEqual(processesOf(dataDir), []);
  assert.equal(existsSync(join(dataDir, "host.json")), false);
});

test("two hosts cannot share a folder; the error names the one that has it", async (t) => {
  const host = await startTestHost(t, STACK);
  const again = { dataDir: host.dataDir, assemblyDir: writeAssembly(STACK), natsPort: 0 };
  await assert.rejects(startHost(again), {
    code: "data_folder_in_use",
    message: new RegExp(`in use by another host \\(process ${process.pid}\\)`),
  });
  assert.equal(host.servers().length, 2);
  for (const { pid = 0 } of host.servers()) assert.ok(isAlive(pid));
});

test("a port that is taken is an error that says which and what to do, and leaves nothing behind", async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const dataDir = temporaryFolder("port");
  const options = { dataDir, assemblyDir: writeAssembly(STACK), natsPort: address.port };
  await assert.rejects(startHost(options), {
    code: "port_taken",
    message: new RegExp(
      `port ${address.port} \\(NATS\\) is taken.*--nats nats://127\\.0\\.0\\.1:${address.port}.*--nats-port`,
    ),
  });
  assert.deepEqual(processesOf(dataDir), []);
  // The folder is free again.
  await startTestHost(t, STACK, { dataDir });
});

test("a table with other keys than the template's is an error, not a surprise later", async (t) => {
  const host = await startTestHost(t, STACK);
  await host.stop();
  const table = {
    AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
  };
  const other = {
    resources: { table: { Type: "AWS::DynamoDB::Table", Properties: { TableName: "things", ...table } } },
  };
  await assert.rejects(startTestHost(t, other, { dataDir: host.dataDir }), {
    code: "table_differs",
    message: /things.*pk:HASH,sk:RANGE.*declares id:HASH/,
  });
  assert.deepEqual(processesOf(host.dataDir), []);
});

test("a server that ends by itself is started again, where it was and with what it had", async (t) => {
  const host = await startTestHost(t, STACK);
  const { dynamodb } = clients(host);
  const Item = { pk: { S: "a" }, sk: { S: "b" } };
  await dynamodb.send(new PutItemCommand({ TableName: "things", Item }));
  const nc = await connect({ servers: host.endpoints.nats, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
  t.after(() => nc.close());
  await (await jetstreamManager(nc)).streams.add({ name: "S", subjects: ["s"] });
  await jetstream(nc).publish("s", "message");

  const before = host.servers();
  for (const { pid } of before) kill9(pid);
  await eventually(host.servers, (now) =>
    now.every(({ pid }, at) => pid !== undefined && pid !== before[at]?.pid),
  );
  await eventually(() =>
    dynamodb.send(new GetItemCommand({ TableName: "things", Key: Item })).then(
      ({ Item: found }) => found !== undefined,
      () => false,
    ),
  );
  await eventually(() =>
    jetstreamManager(nc)
      .then((jsm) => jsm.streams.info("S"))
      .then(
        ({ state }) => state.messages === 1,
        () => false,
      ),
  );
  assert.equal(host.events.filter(({ type }) => type === "trouble").length, 2);
});

test("the bucket takes objects that are larger than the stand-in's own bound", async (t) => {
  const host = await startTestHost(t, STACK);
  const { s3 } = clients(host);
  const object = { Bucket: "values", Key: "large" };
  await s3.send(new PutObjectCommand({ ...object, Body: Buffer.alloc(64 * 1024 * 1024, "x") }));
  const { ContentLength } = await s3.send(new GetObjectCommand(object));
  assert.equal(ContentLength, 64 * 1024 * 1024);
});

test("queues, bucket and tables are for this machine alone", async (t) => {
  const host = await startTestHost(t, STACK);
  const outside = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal);
  if (outside === undefined) return t.skip("this machine has no other interface");
  assert.equal((await fetch(`${host.endpoints.sqs}/health`)).status, 200);
  for (const url of [host.endpoints.sqs, host.endpoints.dynamodb])
    await assert.rejects(fetch(`http://${outside.address}:${new URL(url).port}/health`));
});

test("what the functions see can be put between them and the parts", async (t) => {
  const host = await startTestHost(
    t,
    {
      functions: {
        show: {
          source: "export const handler = () => Promise.resolve(process.env);",
          properties: { Environment: { Variables: { QUEUE: { Ref: "tasks" } } } },
        },
      },
      resources: queueWithDead("tasks", 30, 5),
    },
    { route: (real) => Promise.resolve({ ...real, sqs: "http://127.0.0.1:1", nats: "nats://127.0.0.1:2" }) },
  );
  const result = await host.invoke("show", {});
  assert.ok(result.ok);
  assert.partialDeepStrictEqual(JSON.parse(result.payload), {
    QUEUE: "http://127.0.0.1:1/000000000000/tasks",
    AWS_ENDPOINT_URL_SQS: "http://127.0.0.1:1",
    AWS_ENDPOINT_URL_DYNAMODB: host.endpoints.dynamodb,
    NATS_SERVERS: "nats://127.0.0.1:2",
  });
  assert.equal(host.queueUrls.tasks, `${host.endpoints.sqs}/000000000000/tasks`);
});

test("an existing NATS server is used as it is told to be, and none is started", async (t) => {
  const nats = { servers: ["tls://a:1", "tls://b:2"], credentials: "file:/some.creds", ca: "/some/ca.pem" };
  const source = "export const handler = () => Promise.resolve(process.env);";
  const host = await startTestHost(t, { functions: { show: { source } } }, { nats });
  const result = await host.invoke("show", {});
  assert.ok(result.ok);
  assert.partialDeepStrictEqual(JSON.parse(result.payload), {
    NATS_SERVERS: "tls://a:1,tls://b:2",
    NATS_CREDENTIALS: "file:/some.creds",
    NODE_EXTRA_CA_CERTS: "/some/ca.pem",
  });
  assert.deepEqual(
    host.servers().map(({ name }) => name),
    ["dynamodb"],
  );
});

test("host.json tells other programs where everything is, for as long as it is there", async (t) => {
  const host = await startTestHost(t, STACK);
  const path = join(host.dataDir, "host.json");
  await clients(host).sqs.send(new SendMessageCommand({ QueueUrl: host.queueUrls.tasks, MessageBody: "go" }));
  const read = () => JSON.parse(readFileSync(path, "utf8"));
  const told = await eventually(read, ({ functions }) => functions[0]?.pids.length === 1);
  assert.partialDeepStrictEqual(told, {
    pid: process.pid,
    dataDir: host.dataDir,
    nats: host.endpoints.nats,
    table: "things",
    bucket: "values",
    queues: host.queueUrls,
    servers: host.servers(),
    functions: host.functions(),
    timeScale: 1,
  });
  await host.stop();
  assert.equal(existsSync(path), false);
});
