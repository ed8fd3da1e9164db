import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import * as z from "zod";
import { awsSettings } from "../../infra/local/aws.ts";
import type { HostOptions } from "../../infra/local/host.ts";
import { depth } from "../../shared/queues/index.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import { dueShards, type Entry } from "../../shared/tasks/items.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { isTerminal, type TaskEvent } from "../../shared/wire/index.ts";
import { EventLog } from "./event-log.ts";
import type { Hooks } from "./proxy/points.ts";
import { Proxies } from "./proxy/proxies.ts";
import { type Sluice, startSluice } from "./sluice.ts";
import { until } from "./until.ts";

/** The agent of `test/fixtures/deployment` that leaves a trace of each step that it runs. */
export const STEPPER = "acme-stepper";

/** What `stepper` is asked for; see its input. */
export interface Steps {
  readonly steps?: number;
  readonly stepMs?: number;
  readonly gate?: string;
  readonly deaf?: boolean;
  readonly artifact?: boolean;
}

const line = z.object({
  task: z.string(),
  pid: z.int(),
  step: z.string(),
  /** Which run of the step, a name that no other run has; it is also the step's result. */
  run: z.string(),
  aborted: z.boolean().optional(),
});

/** A run of a step, as it has left its line in the task's file. */
export type Trace = z.infer<typeof line>;

/** A task as it was published. */
export interface Published {
  readonly taskId: string;
  readonly messageId: string;
  readonly subject: string;
  readonly body: string;
}

/** The whole product with a proxy before each part, and what can be seen of it from outside and below. */
export interface Stage {
  readonly sluice: Sluice;
  readonly proxies: Proxies;
  readonly log: EventLog;
  /** The real table, past the proxy. */
  readonly store: Store;
  /** Publishes a task for `stepper`; `known` is told its id before. */
  step(steps?: Steps, known?: (taskId: string) => void): Promise<Published>;
  /** What the task's steps have left. */
  traces(taskId: string): Trace[];
  /** Waits until the task is over for its peer and nothing of it is due. */
  over(taskId: string): Promise<void>;
  /** Puts a message on a queue, past the proxy. */
  send(queue: string, body: string): Promise<void>;
  /** How many messages a queue holds. */
  depth(queue: string): Promise<number>;
  /** Waits until JetStream waits for nothing, and no queue but `work` (of stale hints) holds anything. */
  drained(): Promise<void>;
  stop(): Promise<void>;
}

/** @param hooks at each write from the very first on */
export async function startStage(options: Partial<HostOptions> = {}, hooks?: Hooks): Promise<Stage> {
  let sluice: Sluice | undefined;
  const proxies = new Proxies(() => sluice?.host.functions() ?? []);
  if (hooks !== undefined) proxies.points.on(hooks);
  sluice = await startSluice({ route: proxies.route, ...options });
  return stageOn(sluice, proxies);
}

async function stageOn(sluice: Sluice, proxies: Proxies): Promise<Stage> {
  const { host, peer, dataDir } = sluice;
  const jsm = await jetstreamManager(peer.nc);
  await until("the functions create the events' stream", () =>
    jsm.streams.info("A2A_EVENTS").then(
      () => true,
      () => false,
    ),
  );
  const log = await EventLog.start(peer);
  const ddb = new DynamoDBClient(awsSettings(host.endpoints.dynamodb));
  const sqs = new SQSClient(awsSettings(host.endpoints.sqs));
  const store = dynamoStore({ client: DynamoDBDocumentClient.from(ddb), table: host.tableName });
  const queueUrl = (queue: string) => {
    const url = host.queueUrls[queue];
    if (url === undefined) throw new Error(`no queue ${queue}: ${Object.keys(host.queueUrls).join(", ")}`);
    return url;
  };
  const fileOf = (taskId: string) => join(dataDir, `steps-${taskId}.jsonl`);

  const stage: Stage = {
    sluice,
    proxies,
    log,
    store,
    step(steps = {}, known) {
      const messageId = `msg_${randomBytes(12).toString("hex")}`;
      const taskId = peer.taskId(STEPPER, messageId);
      known?.(taskId);
      const request = {
        a2a: { parts: [{ data: { file: fileOf(taskId), ...steps } }] },
        channelRef: "stepper",
      };
      return peer.ask(STEPPER, request, { messageId });
    },
    traces: (taskId) => readTraces(fileOf(taskId)),
    async over(taskId) {
      const seen = () => log.of(taskId).map(({ event }) => `${event.revision} ${event.kind} ${event.state}`);
      await until(`the end of ${taskId}`, () => log.ended(taskId), { seen });
      await until(
        `${taskId} is no longer due`,
        async () => {
          const head = await store.head(taskId);
          return head !== undefined && isTerminal(head.state) && head.dueAt === undefined;
        },
        { seen: () => store.head(taskId) },
      );
    },
    async send(queue, body) {
      await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl(queue), MessageBody: body }));
    },
    depth: (queue) => depth(sqs, queueUrl(queue)),
    async drained() {
      const left = async () => ({
        tasks: await consumerOf("A2A_TASKS", `a2a_tasks_${STEPPER}`),
        controls: await consumerOf("A2A_CONTROLS", `a2a_controls_${STEPPER}`),
        queues: (await stage.depth("tasks")) + (await stage.depth("controls")),
        due: await due(),
      });
      await until(
        "nothing is left to be done",
        async () => Object.values(await left()).every((count) => count === 0),
        { seen: left },
      );
      for (const queue of Object.keys(host.queueUrls).filter((name) => name.endsWith("dead")))
        assert.equal(await stage.depth(queue), 0, queue);
    },
    async stop() {
      log.stop();
      ddb.destroy();
      sqs.destroy();
      await sluice.stop();
      await proxies.stop();
    },
  };

  async function consumerOf(stream: string, name: string): Promise<number> {
    const { num_pending, num_ack_pending } = await jsm.consumers.info(stream, name);
    return num_pending + num_ack_pending;
  }

  async function due(): Promise<number> {
    let count = 0;
    for (const shard of dueShards) for await (const _ of store.due(shard, Number.MAX_SAFE_INTEGER)) count++;
    return count;
  }
  return stage;
}

/** What the steps of a task have left in its file. */
export function readTraces(file: string): Trace[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((text) => line.parse(JSON.parse(text)));
}

/** Asserts that a task's events are `1, 2, 3…` without a gap, the last of them, and only it, terminal. */
export function assertWhole(events: readonly { readonly event: TaskEvent }[]): void {
  const told = events.map(({ event }) => `${event.revision} ${event.kind} ${event.state}`).join(", ");
  assert.deepEqual(
    events.map(({ event }) => event.revision),
    events.map((_, index) => index + 1),
    told,
  );
  const terminal = events.map(({ event }) => isTerminal(event.state));
  assert.deepEqual(terminal, [...events.slice(1).map(() => false), true], told);
}

/**
 * Asserts that every step is stored once, and that none ran again after the run whose result is stored.
 *
 * @returns how often steps ran in all
 */
export function assertStoredOnce(entries: readonly Entry[], traces: readonly Trace[]): number {
  const stored = entries.flatMap(({ steps = [] }) => steps).filter(({ kind }) => kind === "run");
  assert.equal(new Set(stored.map(({ name }) => name)).size, stored.length, "each step is stored once");
  const runs = traces.filter(({ aborted }) => aborted !== true);
  for (const { name, value } of stored) {
    const result: unknown = "text" in value ? JSON.parse(value.text) : undefined;
    const last = runs.findLast(({ step }) => step === name);
    assert.equal(last?.run, result, `no run of ${name} follows the one whose result is stored`);
  }
  return runs.length;
}
