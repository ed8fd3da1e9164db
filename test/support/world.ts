import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import { startFauxqs } from "fauxqs";
import { admit } from "../../functions/admit/admit.ts";
import { Backlog } from "../../functions/admit/backlog.ts";
import { control } from "../../functions/control/control.ts";
import { sweep } from "../../functions/sweep/sweep.ts";
import { runTask } from "../../functions/work/run.ts";
import { work } from "../../functions/work/work.ts";
import { awsSettings } from "../../infra/local/aws.ts";
import { startDynamoDb } from "../../infra/local/dynamodb.ts";
import type { HostOptions } from "../../infra/local/host.ts";
import { Processes } from "../../infra/local/processes.ts";
import type { Agent } from "../../shared/agents/index.ts";
import { type DeploymentConfig, parseDeployment } from "../../shared/config/deployment.ts";
import { type Timing, timing } from "../../shared/config/timing.ts";
import { natsPublisher, type Publisher } from "../../shared/events/publisher.ts";
import type { Delivery, Verdict } from "../../shared/nats/delivery.ts";
import { ensureStreams, NatsLink } from "../../shared/nats/index.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import type { WorkHint } from "../../shared/tasks/messages.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { s3Values, type Values } from "../../shared/tasks/values.ts";
import type { Telemetry } from "../../shared/telemetry/index.ts";
import { filePolicies } from "../../shared/testing/file-policies.ts";
import { memoryChoosing } from "../../shared/testing/memory-choosing.ts";
import { neverPaused } from "../../shared/testing/memory-pauses.ts";
import { noQuota } from "../../shared/testing/no-quota.ts";
import { type RecordingMessenger, recordingMessenger } from "../../shared/testing/recording-messenger.ts";
import { controlMessage, parseSubject, type TaskRequest, taskMessage } from "../../shared/wire/index.ts";
import { MovableClock } from "./movable-clock.ts";
import { startNats, type TestNats } from "./nats-server.ts";
import { Peer } from "./peer.ts";

export const SENDER = "adam-lobby-1a2b3c4d";

export const TABLE = {
  KeySchema: [
    { AttributeName: "pk", KeyType: "HASH" },
    { AttributeName: "sk", KeyType: "RANGE" },
  ],
  AttributeDefinitions: [
    { AttributeName: "pk", AttributeType: "S" },
    { AttributeName: "sk", AttributeType: "S" },
    { AttributeName: "dueShard", AttributeType: "S" },
    { AttributeName: "dueAt", AttributeType: "N" },
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
  BillingMode: "PAY_PER_REQUEST",
};

/** A deployment `acme` of these agents, with a policy that accepts {@link SENDER}. */
export function deploymentOf(agents: readonly Agent[], policy: object = {}): DeploymentConfig {
  return parseDeployment({
    deployment: "acme",
    nats: {},
    agents: agents.map((agent) => ({
      id: agent.id,
      runtime: `acme-${agent.id}`,
      channelRef: agent.id,
      displayName: agent.id,
      description: agent.description,
      version: agent.version,
      skills: Object.entries(agent.skills).map(([slug, { name, description, tags }]) => ({
        slug,
        name,
        description,
        tags: [...tags],
      })),
      policy: {
        acceptFromRuntimes: [SENDER],
        timeoutSec: { default: 300, max: 3_600 },
        statusEverySec: 0,
        ...policy,
      },
      settings: {},
    })),
  });
}

/** The functions over real parts of a test's own, called directly: no Lambda, no queue, a clock that can be moved. */
export interface World {
  readonly nats: TestNats;
  readonly link: NatsLink;
  readonly store: Store;
  readonly values: Values;
  readonly publisher: Publisher;
  readonly messenger: RecordingMessenger;
  readonly timing: Timing;
  readonly peer: Peer;
  /** What was put on the queue `work` and is not taken yet. */
  readonly hints: { hint: WorkHint; delaySec: number }[];
  readonly log: { level: string; message: string; fields?: Readonly<Record<string, unknown>> }[];
  readonly deployment: DeploymentConfig;
  readonly clock: MovableClock;
  /** Moves the functions' clock ahead, in milliseconds. */
  skip(ms: number): void;
  now(): number;
  /** Hands a message to `admit`, as JetStream would deliver it. */
  admit(message: { subject: string; body: string | Uint8Array }): Promise<Verdict>;
  control(
    message: { subject: string; body: string },
    options?: Partial<Parameters<typeof control>[0]>,
    delivery?: Partial<Delivery>,
  ): Promise<Verdict>;
  sweep(): Promise<number>;
  work(hint: WorkHint, options?: Partial<Parameters<typeof work>[0]> & { endsAt?: number }): Promise<void>;
  /** Admits a task and works on it to its end. */
  run(request?: Partial<TaskRequest>): Promise<string>;
  task(request?: Partial<TaskRequest>): { subject: string; body: string; taskId: string; messageId: string };
  cancel(taskId: string, revision?: number): Promise<Verdict>;
  stop(): Promise<void>;
}

/** @param options.route what the functions get to see in place of the real endpoints, as for a host */
export async function startWorld(
  agents: readonly Agent[],
  policy: object = {},
  options: Pick<HostOptions, "route"> = {},
): Promise<World> {
  const dir = mkdtempSync(join(tmpdir(), "sluice-world-"));
  const processes = new Processes(dir);
  const nats = await startNats();
  const table = { name: "tasks", properties: { ...TABLE, TableName: "tasks" } };
  const dynamodb = await startDynamoDb(dir, [table], processes, () => {});
  const fauxqs = await startFauxqs({ port: 0, logger: false });
  const faux = `http://127.0.0.1:${fauxqs.port}`;
  const real = { dynamodb: dynamodb.url, sqs: faux, s3: faux, nats: nats.url };
  const seen = (await options.route?.(real)) ?? real;
  const ddb = new DynamoDBClient(awsSettings(seen.dynamodb));
  const s3 = new S3Client({ ...awsSettings(seen.s3), forcePathStyle: true });
  await s3.send(new CreateBucketCommand({ Bucket: "values" }));
  const link = new NatsLink(() => ({ servers: [seen.nats], credentials: "none", name: "world" }));
  await ensureStreams(await jetstreamManager(await link.get()));

  const clock = new MovableClock();
  const { now } = clock;
  const log: World["log"] = [];
  const note = (level: string) => (message: string, fields?: Readonly<Record<string, unknown>>) =>
    void log.push({ level, message, ...(fields && { fields }) });
  const telemetry: Telemetry = {
    debug: note("debug"),
    info: note("info"),
    warn: note("warn"),
    error: note("error"),
    count: () => {},
    measure: () => {},
  };
  const client = DynamoDBDocumentClient.from(ddb, { marshallOptions: { removeUndefinedValues: true } });
  const store = dynamoStore({ client, table: "tasks" });
  const values = s3Values({ bucket: "values", client: async () => s3 });
  const publisher = natsPublisher({ connection: () => link.get(), values, now });
  const messenger = recordingMessenger({ now });
  const deployment = deploymentOf(agents, policy);
  const choosing = memoryChoosing({ deployment, now, telemetry });
  const hints: World["hints"] = [];
  const listening = new Map<string, Set<() => void>>();
  const deps = {
    store,
    values,
    publisher,
    messenger,
    deployment,
    agents: agents.map((agent) => ({ id: agent.id, load: async () => agent })),
    telemetry,
    timing: timing(),
    now,
    clock,
    backlog: new Backlog(),
    pauses: neverPaused,
    policies: filePolicies(deployment),
    choosing: async () => choosing,
    quota: noQuota,
    runner: async () => runTask,
    hint: async (hint: WorkHint, delaySec = 0) => void hints.push({ hint, delaySec }),
    listen: async (taskId: string, told: () => void) => {
      const all = listening.get(taskId) ?? new Set();
      listening.set(taskId, all.add(told));
      return () => void all.delete(told);
    },
    tell: async (taskId: string) => {
      for (const told of listening.get(taskId) ?? []) told();
    },
  };
  const delivery = ({ subject, body }: { subject: string; body: string | Uint8Array }) => ({
    stream: "A2A_TASKS",
    consumer: "test",
    seq: 1,
    ackSubject: "$JS.ACK.test",
    subject,
    headers: {},
    deliveries: 1,
    storedAt: now(),
    body: typeof body === "string" ? Buffer.from(body) : body,
  });
  const to = deployment.agents[0]?.runtime ?? "";
  const channelRef = deployment.agents[0]?.channelRef ?? "";
  const peer = await Peer.connect(nats.url, SENDER);

  const world: World = {
    nats,
    link,
    store,
    values,
    publisher,
    messenger,
    timing: deps.timing,
    peer,
    hints,
    log,
    deployment,
    now,
    clock,
    skip: (ms) => clock.skip(ms),
    admit: (message) => admit(deps, delivery(message)),
    control: (message, options, of) => control({ ...deps, ...options }, { ...delivery(message), ...of }),
    sweep: () => sweep(deps, now() + 10_000),
    work: (hint, { endsAt, ...options } = {}) =>
      work({ ...deps, ...options }, hint, { endsAt: endsAt ?? now() + 900_000 }),
    task(request = {}) {
      const messageId = `msg_${randomBytes(12).toString("hex")}`;
      const message = taskMessage({
        from: SENDER,
        to,
        messageId,
        request: { a2a: "hello", channelRef, skillId: "task", delivery: {}, ...request },
        createdAt: new Date(now()).toISOString(),
      });
      const subject = parseSubject(message.subject);
      if (subject?.kind !== "task") throw new Error("not a task");
      return { ...message, messageId, taskId: peer.taskId(to, messageId) };
    },
    async run(request) {
      const message = world.task(request);
      await world.admit(message);
      for (let taken = hints.shift(); taken !== undefined; taken = hints.shift())
        await world.work(taken.hint);
      return message.taskId;
    },
    cancel(taskId, revision = 2) {
      const createdAt = new Date(now()).toISOString();
      return world.control(
        controlMessage({
          from: SENDER,
          to,
          taskId,
          kind: "cancel",
          revision,
          reason: "changed my mind",
          createdAt,
        }),
      );
    },
    async stop() {
      await peer.close();
      await link.close();
      ddb.destroy();
      s3.destroy();
      await fauxqs.stop();
      await dynamodb.server.stop();
      await processes.endAll();
      await nats.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  return world;
}
