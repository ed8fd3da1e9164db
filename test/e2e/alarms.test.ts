import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PurgeQueueCommand, SetQueueAttributesCommand, SQSClient } from "@aws-sdk/client-sqs";
import * as z from "zod";
import { awsSettings } from "../../infra/local/aws.ts";
import { readAlarms } from "../../infra/local/metrics/definitions.ts";
import type { MetricKey } from "../../infra/local/metrics/store.ts";
import { confined, full } from "../support/alarm-faults.ts";
import { AlarmStage, alarmName, type Fault } from "../support/alarm-stage.ts";
import { testAssembly } from "../support/sluice.ts";
import { STEPPER, type Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const HEALTHY_MINUTES = 60;

let alarms: AlarmStage;
let stage: Stage;

before(async () => {
  alarms = await AlarmStage.start();
  ({ stage } = alarms);
});
after(() => alarms.stop());

/** Asks `support`, under an id that is known before. */
function ask(known: (taskId: string) => void = () => {}) {
  const messageId = `msg_${randomBytes(12).toString("hex")}`;
  known(stage.sluice.peer.taskId("acme-support", messageId));
  return stage.sluice.peer.ask("acme-support", { channelRef: "support" }, { messageId });
}

test("an hour's healthy load raises no alarm, and every metric that one watches is there", async () => {
  const { sluice, log } = stage;
  const kinds = [
    () => stage.step({ steps: 2, stepMs: 20 }),
    () => ask(),
    () => sluice.peer.ask("acme-support", { channelRef: "support", skillId: "juggle" }),
  ];
  for (let passed = 0; passed < HEALTHY_MINUTES; passed++) {
    const asked = await kinds[passed % kinds.length]?.();
    await until("it has ended", () => log.ended(asked?.taskId ?? "") || log.ended(`msg_${asked?.messageId}`));
    await alarms.minute();
  }
  assert.deepEqual([...alarms.risen], []);
  const states = sluice.host.metrics.status().map(({ name, state }) => `${alarmName(name)} ${state}`);
  assert.deepEqual(
    states.filter((line) => !line.endsWith(" OK")),
    [],
  );

  const seen = new Set(sluice.host.metrics.store.names().map(textOf));
  // These are told only when there is something to tell.
  const rare =
    /"(QuestionsAsked|RefusalsEscalated|MessagesNotForwarded|Throttles|\w+ThrottleEvents)"|"UnpublishedAge".*"work"|"TasksEnded".*"control"/;
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
      await alarms.measured("TasksDecided", { service: "admit", outcome: "accepted" });
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

/** A message that no function can read. */
function poison(): Fault {
  const { host } = stage.sluice;
  const client = new SQSClient(awsSettings(host.endpoints.sqs));
  let isOld = false;
  return {
    raises: ["queue-age-events", "dead-letters-events"],
    begin: () => stage.send("events", "no JSON"),
    async each() {
      if (isOld || !alarms.risen.has("queue-age-events")) return;
      isOld = true;
      // It has come again and again by then; the rest of its receives need not be waited for.
      const Attributes = { VisibilityTimeout: "1" };
      await client.send(new SetQueueAttributesCommand({ QueueUrl: host.queueUrls.events, Attributes }));
      await until("it is given up", async () => (await stage.depth("events-dead")) > 0);
    },
    async mend() {
      await client.send(new PurgeQueueCommand({ QueueUrl: host.queueUrls["events-dead"] }));
      client.destroy();
    },
  };
}

/** The table refuses tasks that are new, of those that are asked for here. */
function throttling(): Fault {
  const body = JSON.stringify({ __type: "ThrottlingException", message: "too much" });
  const headers = { "content-type": "application/x-amz-json-1.0" };
  const asked = new Set<string>();
  let off = () => {};
  return {
    raises: ["table-throttles"],
    consequences: ["function-duration-admit", "queue-age-tasks"],
    async begin() {
      off = stage.proxies.points.on({
        before: ({ kind, tasks }) =>
          kind === "dynamodb PutItem head" && tasks.some((task) => asked.has(task))
            ? { status: 400, headers, body }
            : undefined,
      });
    },
    async each() {
      await ask((taskId) => asked.add(taskId));
      const of = { TableName: stage.sluice.host.tableName };
      await alarms.measured("WriteThrottleEvents", of, "AWS/DynamoDB");
    },
    async mend() {
      off();
      // What is still tried tells of its throttling when it is done.
      await until("they end", () => [...asked].every((taskId) => stage.log.ended(taskId)));
    },
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
      const asked = Array.from({ length: 3 }, () => stage.step({ steps: 1, gate, artifact: false }));
      tasks = (await Promise.all(asked)).map(({ taskId }) => taskId);
      await until("they run", () => tasks.every((taskId) => stage.traces(taskId).length > 0));
      let held = 0;
      off = stage.proxies.points.on({
        before: ({ part, caller }) => {
          if (part !== "dynamodb" || caller?.name !== "control") return undefined;
          held++;
          return open.promise;
        },
      });
      // One invocation after the other has begun, so that their ends are in different minutes.
      for (const [index, taskId] of tasks.entries()) {
        await stage.sluice.peer.control(STEPPER, taskId, "cancel", 2, "enough");
        if (index < 2) await until("it waits for the table", () => held > index);
      }
    },
    each: () => alarms.measured("Duration", { FunctionName: "control" }, "AWS/Lambda"),
    async mend() {
      off();
      open.resolve(undefined);
      writeFileSync(gate, "");
      await until("they end", () => tasks.every((taskId) => stage.log.ended(taskId)));
    },
  };
}

test("steps that hang, a function that fails, a poisonous message, a target that is nobody, and a table that throttles or is silent", () =>
  alarms.meets(misnamed, poison(), slow(), hanging(), nonsense, throttling()));

/** The bridge cannot write to a queue. */
function refusing(): Fault {
  let off = () => {};
  const asked: string[] = [];
  return {
    raises: ["bridge-deaf"],
    async begin() {
      off = stage.proxies.points.on({
        before: ({ kind }) =>
          kind === "sqs send tasks" ? { status: 503, headers: {}, body: "{}" } : undefined,
      });
    },
    async each() {
      asked.push((await stage.step()).taskId);
      await alarms.measured("MessagesNotForwarded", { service: "bridge" });
    },
    async mend() {
      off();
      await until("they end", () => asked.every((taskId) => stage.log.ended(taskId)));
    },
  };
}

/** Somebody starts the bridge beside its schedule. */
function crowd(): Fault {
  const runs: Promise<unknown>[] = [];
  const throttles = () => alarms.samples("Throttles", { FunctionName: "bridge" }, "AWS/Lambda");
  return {
    raises: ["function-throttles-bridge"],
    async each() {
      while (throttles() === 0) runs.push(stage.sluice.host.invoke("bridge", {}));
    },
    mend: () => Promise.all(runs),
  };
}

/** A task is to go to an agent that nobody is, again and again. */
const misnamed: Fault = {
  raises: ["refusals-escalated"],
  async begin() {
    const a2a = { parts: [{ data: { to: "nobody", message: "hello" } }] };
    const request = { a2a, channelRef: "boss", delivery: { maxDelegationDepth: 1 } };
    // Ten must be refused within half a minute of the time scale, whatever else the machine does.
    const asked = Array.from({ length: 20 }, () => stage.sluice.peer.ask("acme-boss", request));
    const tasks = await Promise.all(asked);
    await until("they are refused", () => tasks.every(({ taskId }) => stage.log.ended(taskId)));
  },
  each: () => alarms.measured("RefusalsEscalated", { service: "work" }),
};

test("a queue that refuses, a stream that is full, a bridge that is started too often, and a card that is not taken", () =>
  alarms.meets(full(alarms), refusing(), crowd(), confined(alarms)));

test("NATS is gone", () =>
  alarms.meets({
    raises: ["bridge-silent"],
    consequences: [
      ...["function-errors-bridge", "function-errors-sweep", "function-errors-cards"],
      ...["function-duration-cards", "cards-stale"],
    ],
    async begin() {
      alarms.listening = false;
      await stage.sluice.nats.kill();
    },
    async mend() {
      await stage.sluice.nats.restart();
      alarms.listening = true;
    },
  }));

test("how the alarms stand is in the data folder", () => {
  const file = join(stage.sluice.dataDir, "alarms.json");
  assert.ok(existsSync(file));
  const { alarms } = z
    .object({ alarms: z.array(z.object({ name: z.string(), state: z.string(), since: z.iso.datetime() })) })
    .parse(JSON.parse(readFileSync(file, "utf8")));
  assert.deepEqual(
    alarms.map(({ name, state }) => `${name} ${state}`),
    stage.sluice.host.metrics.status().map(({ name, state }) => `${name} ${state}`),
  );
});
