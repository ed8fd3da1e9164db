import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import * as z from "zod";
import { defineAgent, skill } from "../../shared/agents/index.ts";
import { handOn, handOnAll } from "../../shared/tasks/hand-on.ts";
import type { Head } from "../../shared/tasks/items.ts";
import type { WorkHint } from "../../shared/tasks/messages.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { filePolicies } from "../../shared/testing/file-policies.ts";
import { type MemoryStore, memoryStore } from "../../shared/testing/memory-store.ts";
import { deploymentOf } from "../../testing/deployment.ts";

const NOW = Date.UTC(2030, 0, 1);
const RUNTIME = "test-narrow";
const agent = defineAgent({
  id: "narrow",
  description: "",
  skills: { task: skill({ name: "Task", description: "", input: z.string(), run: async () => "" }) },
});
const deployment = deploymentOf(agent, { settings: {}, policy: { maxConcurrent: 1 }, neighbours: [] });

let store: MemoryStore;
let hints: { hint: WorkHint; delaySec: number }[];
let warnings: string[];

beforeEach(() => {
  [store, hints, warnings] = [memoryStore(), [], []];
});

const deps = (over: Partial<Store> = {}, agents = deployment.agents) => ({
  store: { ...store, ...over },
  deployment: { ...deployment, agents },
  policies: filePolicies({ agents }),
  telemetry: { warn: (message: string) => void warnings.push(message) },
  hint: async (hint: WorkHint, delaySec: number) => void hints.push({ hint, delaySec }),
});

async function admit(taskId: string, over: Partial<Head> = {}): Promise<Head> {
  const head: Head = {
    taskId,
    messageId: "msg_1",
    from: "adam",
    to: RUNTIME,
    digest: "d",
    state: "TASK_STATE_SUBMITTED",
    epoch: 0,
    beat: 0,
    published: 0,
    decidedAt: NOW,
    deadline: NOW + 300_000,
    expiresAt: NOW / 1_000 + 86_400,
    ...over,
  };
  await store.admit(head);
  return head;
}

/** One task that works and these, which wait. */
async function full(...waiting: string[]): Promise<Head> {
  const claimed = await store.claimSlot(await admit("live"), "me", NOW, 1);
  assert.ok(typeof claimed === "object");
  for (const [n, taskId] of waiting.entries())
    await store.queue(await admit(taskId, { decidedAt: NOW + n }), 1);
  return claimed;
}

test("a free slot is offered to the first who waits, as its head shows it now", async () => {
  const live = await full("first", "second");
  await handOn(deps(), RUNTIME);
  assert.deepEqual(hints, [], "it is not free");
  await store.settle(live, 0, "TASK_STATE_COMPLETED");
  await store.beat("first", 0, { beat: 7 });
  await handOn(deps(), RUNTIME);
  // In line: it must be looked at first, also where there is no limit any more.
  const hint = { taskId: "first", epoch: 0, beat: 7, to: RUNTIME, inLine: true };
  assert.deepEqual(hints, [{ hint, delaySec: 0 }]);
});

test("nobody is offered anything where nobody waits", async () => {
  await handOn(deps(), RUNTIME);
  await store.settle(await full(), 0, "TASK_STATE_COMPLETED");
  await handOn(deps(), RUNTIME);
  assert.deepEqual(hints, []);
});

/** The store, where the heads of these tasks are gone. */
const without = (...gone: string[]): Partial<Store> => ({
  head: async (taskId) => (gone.includes(taskId) ? undefined : store.head(taskId)),
});

test("who is in the line and whose head does not say so is cleared away, ten in one go", async () => {
  const names = Array.from({ length: 11 }, (_, n) => `gone${n}`);
  const live = await full(...names, "next");
  await store.settle(live, 0, "TASK_STATE_COMPLETED");
  let cleared = 0;
  // As if the items had been deleted: the line is left with their places.
  const dropped = new Set<string>();
  const over: Partial<Store> = {
    ...without(...names),
    nextWaiter: async () => store.line(RUNTIME).find(({ taskId }) => !dropped.has(taskId)),
    dropWaiter: async ({ taskId }) => {
      cleared++;
      dropped.add(taskId);
    },
  };
  await handOn(deps(over), RUNTIME);
  assert.equal(cleared, 10);
  assert.equal(hints.length, 0);
  await handOn(deps(over), RUNTIME);
  assert.equal(cleared, 11);
  assert.deepEqual(
    hints.map(({ hint }) => hint.taskId),
    ["next"],
  );
});

test("of all agents the counts are read at once, and free slots are offered", async () => {
  const live = await full("first");
  await store.settle(live, 0, "TASK_STATE_COMPLETED");
  const [narrow] = deployment.agents;
  assert.ok(narrow);
  const named = (runtime: string, maxConcurrent: number) => ({
    ...narrow,
    runtime,
    policy: { ...narrow.policy, maxConcurrent },
  });
  const agents = [narrow, named("test-idle", 3), named("test-unlimited", 0)];
  const asked: (readonly string[])[] = [];
  const over: Partial<Store> = {
    allSlots: (runtimes) => {
      asked.push(runtimes);
      return store.allSlots(runtimes);
    },
    slots: () => Promise.reject(new Error("agent by agent")),
  };
  await handOnAll(deps(over, agents));
  assert.deepEqual(asked, [[RUNTIME, "test-idle", "test-unlimited"]]);
  assert.deepEqual(
    hints.map(({ hint }) => hint.taskId),
    ["first"],
  );
  await handOnAll(deps({ allSlots: () => Promise.reject(new Error("no table")) }));
  assert.deepEqual(warnings, ["no slots are handed on yet"]);
});

test("what goes wrong is told, and left to the sweep", async () => {
  const live = await full("first");
  await store.settle(live, 0, "TASK_STATE_COMPLETED");
  await handOn({ ...deps(), hint: () => Promise.reject(new Error("no queue")) }, RUNTIME);
  await handOn(deps({ slots: () => Promise.reject(new Error("no table")) }), RUNTIME);
  assert.deepEqual(warnings, ["a slot is not handed on yet", "a slot is not handed on yet"]);
});
