import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import type { Head } from "../../shared/tasks/items.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { memoryStore } from "../../shared/testing/memory-store.ts";
import { simulatedStore } from "../support/simulated-store.ts";
import { startTable } from "../support/table.ts";

const NOW = Date.UTC(2030, 0, 1);
const DUE = NOW + 60_000;
const UNLIMITED = Number.POSITIVE_INFINITY;

const newRuntime = () => `acme-${randomBytes(6).toString("hex")}`;

const table = await startTable();
after(() => table.stop());

/** Tasks of one agent over one store. */
class Agent {
  readonly store: Store;
  readonly runtime: string;

  constructor(store: Store, runtime = newRuntime()) {
    this.store = store;
    this.runtime = runtime;
  }

  id(name: string): string {
    return `task_${this.runtime.slice(5)}${name}`;
  }

  async admit(name: string, over: Partial<Head> = {}): Promise<void> {
    await this.store.admit({
      taskId: this.id(name),
      messageId: "msg_1",
      from: "adam",
      to: this.runtime,
      digest: "d",
      state: "TASK_STATE_SUBMITTED",
      epoch: 0,
      beat: 0,
      published: 0,
      decidedAt: NOW,
      deadline: NOW + 300_000,
      expiresAt: NOW / 1_000 + 86_400,
      ...over,
    });
  }

  async head(name: string): Promise<Head> {
    const head = await this.store.head(this.id(name));
    assert.ok(head);
    return head;
  }

  async claim(name: string, max: number, owner = "me"): Promise<Head | "full" | "stale"> {
    return this.store.claimSlot(await this.head(name), owner, DUE, max);
  }

  async queue(name: string, max: number): Promise<"queued" | "room" | "stale"> {
    return this.store.queue(await this.head(name), max);
  }

  /** Which tasks hold slots, how many wait, and who is next. */
  async shows(): Promise<{ live: string[]; queued: number; next: string | undefined }> {
    const { live, queued, lastFrom } = await this.store.slots(this.runtime);
    const next = await this.store.nextWaiter(this.runtime, lastFrom);
    return { live: [...live].sort().map(nameOf), queued, next: next && nameOf(next.taskId) };
  }
}

const nameOf = (taskId: string) => taskId.slice("task_".length + 12);
const LEFT = { epoch: 1, beat: 1, published: 1, place: 1, state: "TASK_STATE_WORKING", dueAt: NOW } as const;

for (const [name, open] of [
  ["memory", memoryStore],
  ["a simulated table", simulatedStore],
  ["DynamoDB", () => table.store],
] as const)
  describe(`slots over ${name}`, () => {
    let agent: Agent;
    let store: Store;
    before(() => {
      store = open();
    });
    const begin = async (...names: string[]) => {
      agent = new Agent(store);
      for (const [n, of] of names.entries()) await agent.admit(of, { decidedAt: NOW + n });
    };

    test("there are none before the first claim", async () => {
      await begin();
      assert.deepEqual(await store.slots(agent.runtime), { live: new Set(), queued: 0 });
      assert.equal(await store.nextWaiter(agent.runtime, undefined), undefined);
    });

    test("as many tasks as there are slots are claimed, and one more is not", async () => {
      await begin("a", "b", "c");
      const before = await agent.head("a");
      const claimed = {
        ...before,
        epoch: 1,
        owner: "me",
        state: "TASK_STATE_WORKING",
        slot: true,
      };
      assert.deepEqual(await agent.claim("a", 2), claimed);
      assert.deepEqual(await agent.head("a"), claimed);
      assert.deepEqual(await store.claimSlot(before, "me", DUE, 2), claimed, "its own write, repeated");
      assert.equal(await store.claimSlot(before, "another", DUE, 2), "stale");
      assert.equal(typeof (await agent.claim("b", 2)), "object");
      assert.equal(await agent.claim("c", 2), "full");
      assert.deepEqual(await agent.shows(), { live: ["a", "b"], queued: 0, next: undefined });
    });

    test("a task that holds a slot is taken over without another", async () => {
      await begin("a");
      await agent.claim("a", 1);
      const taken = await store.claim({ taskId: agent.id("a"), epoch: 1, beat: 0 }, "b", DUE);
      assert.deepEqual([taken?.epoch, taken?.slot], [2, true]);
      assert.equal(await agent.claim("a", 9), "stale");
      assert.equal(await agent.queue("a", 1), "stale");
    });

    test("a task is put into the line where there is no room, or others wait; it then is claimed from there only", async () => {
      await begin("a", "b", "c", "d");
      assert.equal(await agent.queue("a", 1), "room");
      await agent.claim("a", 1);
      const before = await agent.head("b");
      assert.equal(await agent.queue("b", 2), "room");
      assert.equal(await agent.queue("b", 1), "queued");
      assert.equal(await store.queue(before, 1), "queued", "its own write, repeated");
      assert.equal(await store.claim({ ...before }, "me", DUE), undefined);
      assert.equal(await store.claimSlot(before, "me", DUE, 2), "stale");
      assert.equal(await agent.claim("c", 2), "full", "nobody goes before those who wait");
      assert.equal(await agent.queue("c", 2), "queued");
      assert.deepEqual(await agent.shows(), { live: ["a"], queued: 2, next: "b" });
      assert.equal(await agent.claim("b", 1), "full");
      const { queued, ...rest } = await agent.head("b");
      assert.equal(queued, `wait#adam#00${NOW + 1}#${agent.id("b")}`);
      const claimed = { ...rest, epoch: 1, owner: "me", state: "TASK_STATE_WORKING", slot: true, dueAt: DUE };
      assert.deepEqual(await agent.claim("b", 2), claimed);
      assert.deepEqual(await agent.head("b"), claimed);
      assert.deepEqual(await agent.shows(), { live: ["a", "b"], queued: 1, next: "c" });
    });

    test("a task that is over, or is another by now, is neither claimed nor put into the line", async () => {
      await begin("a", "b");
      const before = await agent.head("a");
      await store.beat(agent.id("a"), 0, { beat: 3 });
      assert.equal(await store.claimSlot(before, "me", DUE, 2), "stale");
      assert.equal(await store.queue({ ...before, epoch: 1 }, 1), "stale");
      await store.settle(await agent.head("b"), 1, "TASK_STATE_CANCELED");
      assert.equal(await agent.claim("b", 2), "stale");
      assert.equal(await agent.queue("b", 1), "stale");
      await agent.admit("c");
      const unknown = { ...(await agent.head("c")), taskId: agent.id("z") };
      assert.equal(await store.claimSlot(unknown, "me", DUE, 2), "stale");
      assert.equal(await store.queue(unknown, 1), "stale");
      assert.deepEqual(await agent.shows(), { live: [], queued: 0, next: undefined });
    });

    test("a task that is left or over gives its slot up once, and says whether others wait", async () => {
      await begin("a", "b", "c");
      await agent.claim("a", 2);
      await agent.claim("b", 2);
      const [a, b] = [await agent.head("a"), await agent.head("b")];
      assert.deepEqual(await store.suspend(a, LEFT), { left: true, waited: false });
      assert.equal((await agent.head("a")).slot, undefined);
      assert.deepEqual(await store.suspend(a, LEFT), { left: true, waited: false }, "it holds none any more");
      await agent.queue("c", 1);
      assert.equal(await store.settle(b, 2), false, "it is not over");
      assert.equal(await store.settle(b, 1, "TASK_STATE_COMPLETED"), false, "more is published");
      assert.deepEqual(await agent.shows(), { live: ["b"], queued: 1, next: "c" });
      assert.equal(await store.settle(b, 2, "TASK_STATE_COMPLETED"), true);
      assert.equal(await store.settle(b, 2, "TASK_STATE_COMPLETED"), false);
      assert.deepEqual(await agent.shows(), { live: [], queued: 1, next: "c" });
      assert.equal(typeof (await agent.claim("c", 1)), "object");
    });

    test("what is there counts, not what was believed", async () => {
      await begin("a", "b");
      const [a, b] = [await agent.head("a"), await agent.head("b")];
      await agent.claim("a", 1);
      await agent.queue("b", 1);
      assert.deepEqual(await store.suspend({ ...a, queued: "wait#x" }, LEFT), { left: true, waited: true });
      assert.equal(await store.settle({ ...b, slot: true }, 1, "TASK_STATE_CANCELED"), true);
      assert.equal((await agent.head("b")).queued, undefined);
      assert.deepEqual(await agent.shows(), { live: [], queued: 0, next: undefined });
    });

    test("senders take turns, and one sender's tasks come in order of arrival", async () => {
      await begin("x");
      await agent.claim("x", 1);
      for (const [name, from, at] of [
        ["a2", "a", 2],
        ["a10", "a", 10],
        ["a1", "a", 1],
        ["ab1", "a-b", 5],
        ["z1", "z", 0],
        ["z2", "z", 3],
        ["a11", "a", 11],
      ] as const) {
        await agent.admit(name, { from, decidedAt: at });
        await agent.queue(name, 1);
      }
      const order = [];
      for (let { next } = await agent.shows(); next !== undefined; { next } = await agent.shows()) {
        order.push(next);
        await agent.claim(next, 100);
      }
      assert.deepEqual(order, ["a1", "ab1", "z1", "a2", "z2", "a10", "a11"]);
    });

    test("a task that waits is claimed without a slot once there is no limit", async () => {
      await begin("a", "b");
      await agent.claim("a", 1);
      await agent.queue("b", 1);
      const claimed = await agent.claim("b", UNLIMITED);
      assert.ok(typeof claimed === "object");
      assert.deepEqual([claimed.slot, claimed.queued, claimed.epoch], [undefined, undefined, 1]);
      assert.deepEqual(await agent.head("b"), claimed);
      assert.deepEqual(await agent.shows(), { live: ["a"], queued: 0, next: undefined });
    });

    test("a place is cleared away when no head says that it is there", async () => {
      await begin("a", "b");
      await agent.claim("a", 1);
      await agent.queue("b", 1);
      const waiter = await store.nextWaiter(agent.runtime, undefined);
      assert.ok(waiter);
      await store.dropWaiter(waiter);
      assert.deepEqual(await agent.shows(), { live: ["a"], queued: 1, next: "b" }, "its head does");
      await agent.claim("b", 2);
      await store.dropWaiter(waiter);
      assert.deepEqual(await agent.shows(), { live: ["a", "b"], queued: 0, next: undefined }, "it is gone");
    });

    test("the slots of many agents are read together, also of those that never had any", async () => {
      await begin("a", "b");
      await agent.claim("a", 1);
      await agent.queue("b", 1);
      const neighbour = new Agent(store);
      await neighbour.admit("c");
      await neighbour.claim("c", 1);
      const others = Array.from({ length: 230 }, newRuntime);
      const runtimes = [agent.runtime, ...others, neighbour.runtime];
      const all = await store.allSlots(runtimes);
      assert.deepEqual([...all.keys()], runtimes);
      for (const { runtime } of [agent, neighbour])
        assert.deepEqual(all.get(runtime), await store.slots(runtime));
      for (const runtime of others) assert.deepEqual(all.get(runtime), { live: new Set(), queued: 0 });
      assert.deepEqual(await store.allSlots([]), new Map());
    });

    test("the most slots that a policy gives are counted to the last", async () => {
      await begin();
      const names = Array.from({ length: 1_001 }, (_, n) => String(n).padStart(12, "0"));
      await Promise.all(names.map((name) => agent.admit(name)));
      await Promise.all(names.slice(0, 1_000).map((name) => agent.claim(name, 1_000)));
      assert.equal((await store.slots(agent.runtime)).live.size, 1_000);
      assert.equal(await agent.claim(names[1_000] ?? "", 1_000), "full");
    });
  });

type Call = (agent: Agent) => Promise<unknown>;
const named = (what: string, call: Call) => ({ what, call });
const NAMES = ["a", "b", "c", "d"] as const;
const headsOf = (agent: Agent) => Promise.all(NAMES.map((of) => agent.head(of)));
const name = fc.constantFrom(...NAMES);
const max = fc.constantFrom(1, 2);
/** A head as it is, or as somebody has read it before. */
const asRead = async (agent: Agent, of: string, stale: boolean): Promise<Head> => {
  const { slot: _slot, queued: _queued, ...rest } = await agent.head(of);
  return stale ? rest : agent.head(of);
};
const calls: fc.Arbitrary<{ what: string; call: Call }> = fc.oneof(
  fc
    .tuple(name, fc.oneof(max, fc.constant(UNLIMITED)), fc.boolean(), fc.constantFrom("me", "you"))
    .map(([of, slots, stale, owner]) =>
      named(`claimSlot(${of}, ${owner}, ${slots}, ${stale})`, async (agent) => {
        const head = await asRead(agent, of, stale);
        // Without a limit a slot is asked for by those alone who wait for one.
        if (slots === UNLIMITED && head.queued === undefined) return undefined;
        return agent.store.claimSlot(head, owner, DUE, slots);
      }),
    ),
  fc
    .tuple(name, max, fc.boolean())
    .map(([of, slots, stale]) =>
      named(`queue(${of}, ${slots}, ${stale})`, async (agent) =>
        agent.store.queue(await asRead(agent, of, stale), slots),
      ),
    ),
  name.map((of) =>
    named(`claim(${of})`, async (agent) => agent.store.claim(await agent.head(of), "me", DUE)),
  ),
  fc.tuple(name, fc.boolean()).map(([of, stale]) =>
    named(`suspend(${of}, ${stale})`, async (agent) => {
      const { epoch, beat } = await agent.head(of);
      return agent.store.suspend(await asRead(agent, of, stale), { ...LEFT, epoch, beat: beat + 1 });
    }),
  ),
  fc
    .tuple(name, fc.boolean(), fc.constantFrom(undefined, "TASK_STATE_FAILED" as const))
    .map(([of, stale, end]) =>
      named(`settle(${of}, ${stale}, ${end})`, async (agent) =>
        agent.store.settle(await asRead(agent, of, stale), 1, end),
      ),
    ),
  name.map((of) =>
    named(`dropWaiter(${of})`, async (agent) => {
      const { queued } = await agent.head(of);
      const place = queued ?? "wait#adam#000000000000000#gone";
      return agent.store.dropWaiter({ to: agent.runtime, taskId: agent.id(of), place });
    }),
  ),
);

test("whatever is called in whatever order, memory and a simulated table answer as DynamoDB does, and no slot is lost", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(calls, { minLength: 5, maxLength: 40 }), async (sequence) => {
      const dynamo = new Agent(table.store);
      const others = [memoryStore, simulatedStore].map((open) => new Agent(open(), dynamo.runtime));
      for (const agent of [dynamo, ...others])
        for (const [n, of] of NAMES.entries())
          await agent.admit(of, { from: n % 2 === 0 ? "adam" : "eve", decidedAt: NOW - n });
      for (const [n, { what, call }] of sequence.entries()) {
        const so = `${sequence.slice(0, n).map((of) => of.what)} and then ${what}`;
        const answer = await call(dynamo);
        const shown = await dynamo.shows();
        const heads = await headsOf(dynamo);
        const holding = heads.filter(({ slot }) => slot === true).map(({ taskId }) => nameOf(taskId));
        assert.deepEqual(holding, shown.live, so);
        assert.equal(heads.filter(({ queued }) => queued !== undefined).length, shown.queued, so);
        for (const [of, agent] of others.entries()) {
          const such = `${["memory", "a simulated table"][of]}: ${so}`;
          assert.deepEqual(await call(agent), answer, such);
          assert.deepEqual(await agent.shows(), shown, such);
          assert.deepEqual(await headsOf(agent), heads, such);
        }
      }
    }),
    { numRuns: 40 },
  );
});
