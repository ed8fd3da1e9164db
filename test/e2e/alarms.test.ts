import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { PurgeQueueCommand, SQSClient } from "@aws-sdk/client-sqs";
import { jetstreamManager } from "@nats-io/jetstream";
import * as z from "zod";
import { awsSettings } from "../../infra/local/aws.ts";
import type { HostEvent } from "../../infra/local/host.ts";
import { readAlarms } from "../../infra/local/metrics/definitions.ts";
import type { MetricKey } from "../../infra/local/metrics/store.ts";
import { testAssembly } from "../support/sluice.ts";
import { STEPPER, type Stage, startStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

/** Queues and schedules live so much faster; the alarms' clock is the test's own, so that a busy machine is no fault. */
const SCALE = 20;
/** What a function has at the least, in milliseconds: computing does not get faster. */
const SHORTEST_MS = 8_000;
const MINUTE_MS = 60_000;
/** More minutes than any alarm needs to rise, or to be over. */
const PATIENCE_MINUTES = 60;
/** What was broken takes so long, in each minute, to come right, in milliseconds. */
const SETTLE_MS = 500;
const NAMESPACE = "Sluice/sluice-acme";

let stage: Stage;
/** In the middle of a minute: what is measured meanwhile belongs to it. */
let clock = MINUTE_MS / 2;
/** Whether there is a bridge to be heard. */
let listening = true;
/** The alarms that have risen since they were last asked for. */
let risen = new Set<string>();

const nameOf = (name: string) => name.replace(/^sluice-acme-/, "");

before(async () => {
  const log = (event: HostEvent) => {
    if (event.type === "alarm" && event.to === "ALARM") risen.add(nameOf(event.name));
  };
  const metricsClock = () => clock;
  stage = await startStage({ timeScale: SCALE, shortestTimeoutMs: SHORTEST_MS, log, metricsClock });
});
after(() => stage.stop());

/** How often something was measured in the last minutes, the present one included. */
function samples(
  name: string,
  dimensions: Record<string, string>,
  namespace = NAMESPACE,
  minutes = 1,
): number {
  const from = (Math.floor(clock / MINUTE_MS) + 1 - minutes) * MINUTE_MS;
  const { store } = stage.sluice.host.metrics;
  return store.statistic({ namespace, name, dimensions }, "SampleCount", from, clock + 1) ?? 0;
}

/** A minute passes, in which the bridge is heard as often as it must be. */
async function minute(): Promise<void> {
  const { metrics } = stage.sluice.host;
  if (listening)
    await until(
      "the bridge tells something",
      () => samples("MessagesPending", { service: "bridge" }, NAMESPACE, 4) > 0,
    );
  metrics.look();
  clock += MINUTE_MS;
  metrics.judge();
}

function inAlarm(): string[] {
  const all = stage.sluice.host.metrics.status().filter(({ state }) => state === "ALARM");
  return all.map(({ name }) => nameOf(name));
}

interface Fault {
  /** Alarms that must rise. */
  readonly raises: readonly string[];
  /** Alarms that may rise as well, as their runbooks say. */
  readonly consequences?: readonly string[];
  /** Breaks something. */
  readonly begin?: () => Promise<unknown>;
  /** What happens in each minute. */
  readonly each?: (minute: number) => Promise<unknown>;
  readonly mend?: () => Promise<unknown>;
}

/** Breaks, waits until what must rise has risen, mends, and waits until all is over. */
async function meets(...faults: readonly Fault[]): Promise<void> {
  assert.deepEqual(inAlarm(), []);
  risen = new Set();
  const wanted = faults.flatMap(({ raises }) => raises);
  try {
    await Promise.all(faults.map(({ begin }) => begin?.()));
    for (let passed = 0; !wanted.every((name) => risen.has(name)); passed++) {
      assert.ok(passed < PATIENCE_MINUTES, `${wanted} have not risen, but ${[...risen]}`);
      await Promise.all(faults.map(({ each }) => each?.(passed)));
      await minute();
    }
  } finally {
    for (const { mend } of faults) await mend?.();
  }
  for (let passed = 0; inAlarm().length > 0; passed++) {
    assert.ok(passed < PATIENCE_MINUTES, `${inAlarm()} are not over`);
    await wait(SETTLE_MS);
    await minute();
  }
  const known = new Set([...wanted, ...faults.flatMap(({ consequences = [] }) => consequences)]);
  assert.deepEqual(
    [...risen].filter((name) => !known.has(name)),
    [],
    `no other than ${[...known]}`,
  );
}

test("an hour's healthy load raises no alarm, and every metric that one watches is there", async () => {
  const { sluice, log } = stage;
  const load = async () => {
    const { taskId } = await stage.step({ steps: 2, stepMs: 20 });
    const other = await sluice.peer.ask("acme-support", { channelRef: "support" });
    const { messageId } = await sluice.peer.ask("acme-support", { channelRef: "support", skillId: "juggle" });
    const keys = [taskId, other.taskId, `msg_${messageId}`];
    await until("its tasks have ended", () => keys.every((key) => log.ended(key)));
  };
  for (let passed = 0; passed < 60; passed++) {
    await load();
    await minute();
  }
  assert.deepEqual([...risen], []);
  const states = sluice.host.metrics.status().map(({ name, state }) => `${nameOf(name)} ${state}`);
  assert.deepEqual(
    states.filter((line) => !line.endsWith(" OK")),
    [],
  );

  const seen = new Set(sluice.host.metrics.store.names().map(textOf));
  // These are told only when there is something to tell.
  const rare =
    /"(QuestionsAsked|MessagesNotForwarded|Throttles|\w+ThrottleEvents)"|"UnpublishedAge".*"work"|"TasksEnded".*"control"/;
  const idle = /"AWS\/Lambda".*"(control|events|work-narrow)"/;
  for (const { name, metrics } of readAlarms(await testAssembly()))
    for (const text of metrics.map(textOf))
      if (!rare.test(text) && !idle.test(text)) assert.ok(seen.has(text), `${name} watches ${text}`);
});

function textOf({ namespace, name, dimensions }: MetricKey): string {
  return JSON.stringify([namespace, name, Object.entries(dimensions).toSorted()]);
}

/** Steps that wait for what never comes. */
function hanging(): Fault {
  const gate = join(stage.sluice.dataDir, "gate");
  const asked: string[] = [];
  return {
    raises: ["no-results"],
    consequences: ["function-duration-work", "queue-age-work"],
    async each(passed) {
      // In each five minutes one, and no more than the agent has slots.
      if (passed % 4 !== 0) return;
      const { taskId } = await stage.step({ steps: 1, gate, artifact: false });
      asked.push(taskId);
      const accepted = { service: "admit", outcome: "accepted" };
      await until("it is counted as accepted", () => samples("TasksDecided", accepted) > 0);
    },
    async mend() {
      writeFileSync(gate, "");
      await until("they end", () => asked.every((taskId) => stage.log.ended(taskId)));
    },
  };
}

/** An event that is none. */
const nonsense: Fault = {
  raises: ["function-errors-events"],
  each: () => stage.sluice.host.invoke("events", {}),
};

test("steps that hang, and a function that fails", () => meets(hanging(), nonsense));

/** A message that no function can read. */
const poison: Fault = {
  raises: ["dead-letters-events", "queue-age-events"],
  begin: () => stage.send("events", "no JSON"),
  each: () => wait(1_000),
  async mend() {
    const { host } = stage.sluice;
    const client = new SQSClient(awsSettings(host.endpoints.sqs));
    await client.send(new PurgeQueueCommand({ QueueUrl: host.queueUrls["events-dead"] }));
    client.destroy();
  },
};

/** The table refuses tasks that are new. */
function throttling(): Fault {
  const body = JSON.stringify({ __type: "ThrottlingException", message: "too much" });
  const headers = { "content-type": "application/x-amz-json-1.0" };
  let off = () => {};
  return {
    raises: ["table-throttles"],
    consequences: ["function-duration-admit"],
    async begin() {
      off = stage.proxies.points.on({
        before: ({ kind }) => (kind === "dynamodb PutItem head" ? { status: 400, headers, body } : undefined),
      });
      await stage.sluice.peer.ask("acme-support", { channelRef: "support" });
    },
    async each() {
      await stage.sluice.peer.ask("acme-support", { channelRef: "support" });
      const of = { TableName: stage.sluice.host.tableName };
      await until("it is throttled", () => samples("WriteThrottleEvents", of, "AWS/DynamoDB") > 0);
    },
    mend: async () => off(),
  };
}

/** The table does not answer `control`. */
function slow(): Fault {
  const gate = join(stage.sluice.dataDir, "slow-gate");
  const open = Promise.withResolvers<undefined>();
  let tasks: string[] = [];
  let off = () => {};
  return {
    raises: ["function-duration-control"],
    consequences: ["function-errors-control", "queue-age-controls"],
    async begin() {
      const asked = Array.from({ length: 5 }, () => stage.step({ steps: 1, gate, artifact: false }));
      tasks = (await Promise.all(asked)).map(({ taskId }) => taskId);
      await until("they run", () => tasks.every((taskId) => stage.traces(taskId).length > 0));
      off = stage.proxies.points.on({
        before: ({ part, caller }) =>
          part === "dynamodb" && caller?.name === "control" ? open.promise : undefined,
      });
    },
    async each(passed) {
      const taskId = tasks[passed];
      if (taskId !== undefined) await stage.sluice.peer.control(STEPPER, taskId, "cancel", 2, "enough");
      await until("it is over", () => samples("Duration", { FunctionName: "control" }, "AWS/Lambda") > 0);
    },
    async mend() {
      off();
      open.resolve(undefined);
      writeFileSync(gate, "");
      await until("they end", () => tasks.every((taskId) => stage.log.ended(taskId)));
    },
  };
}

test("a table that does not answer a function", () => meets(slow()));

test("a poisonous message, and a table that throttles", () => meets(poison, throttling()));

test("a queue that the bridge cannot write to", async () => {
  let off = () => {};
  await meets({
    raises: ["bridge-deaf"],
    async begin() {
      off = stage.proxies.points.on({
        before: ({ kind }) =>
          kind === "sqs send tasks" ? { status: 503, headers: {}, body: "{}" } : undefined,
      });
      await Promise.all(Array.from({ length: 5 }, () => stage.step()));
    },
    each: () => until("it is refused", () => samples("MessagesNotForwarded", { service: "bridge" }) > 0),
    mend: async () => off(),
  });
});

test("events that their stream does not take", async () => {
  const jsm = await jetstreamManager(stage.sluice.peer.nc);
  const gate = join(stage.sluice.dataDir, "stream-gate");
  let taskId = "";
  await meets({
    raises: ["events-unpublished"],
    async begin() {
      ({ taskId } = await stage.step({ steps: 1, gate, artifact: false }));
      await until("its step runs", () => stage.traces(taskId).length > 0);
      const { state } = await jsm.streams.info("A2A_EVENTS");
      await jsm.streams.update("A2A_EVENTS", { max_msgs: state.messages });
      writeFileSync(gate, "");
    },
    each: () => until("it is noticed", () => samples("UnpublishedAge", { service: "work" }) > 0),
    async mend() {
      await jsm.streams.update("A2A_EVENTS", { max_msgs: -1 });
      await stage.over(taskId);
    },
  });
});

test("NATS is gone", () =>
  meets({
    raises: ["bridge-silent"],
    consequences: ["function-errors-bridge", "function-errors-sweep"],
    async begin() {
      listening = false;
      await stage.sluice.nats.kill();
    },
    async mend() {
      await stage.sluice.nats.restart();
      listening = true;
    },
  }));

test("how the alarms stand is in the data folder", () => {
  const file = join(stage.sluice.dataDir, "alarms.json");
  assert.ok(existsSync(file));
  const { alarms } = z
    .object({ alarms: z.array(z.object({ name: z.string(), state: z.string(), since: z.number() })) })
    .parse(JSON.parse(readFileSync(file, "utf8")));
  assert.deepEqual(
    alarms.map(({ name, state }) => `${name} ${state}`),
    stage.sluice.host.metrics.status().map(({ name, state }) => `${name} ${state}`),
  );
});
