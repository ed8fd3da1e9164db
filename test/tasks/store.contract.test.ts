import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { dueShard, type Entry, type Head } from "../../shared/tasks/items.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { memoryStore } from "../../shared/testing/memory-store.ts";
import { simulatedStore } from "../support/simulated-store.ts";
import { startTable } from "../support/table.ts";

const NOW = Date.UTC(2030, 0, 1);
const EXPIRES = NOW / 1_000 + 86_400;
/** When the worker of a claim is to be looked after. */
const DUE = NOW + 60_000;

/** How {@link Store.suspend} comes out where no slot is concerned. */
const LEFT = { left: true, waited: false };
const KEPT = { left: false, waited: false };

const newId = () => `task_${randomBytes(12).toString("hex")}`;

function headOf(taskId: string, over: Partial<Head> = {}): Head {
  return {
    taskId,
    messageId: "msg_1",
    from: "adam",
    to: "acme-support",
    digest: "d",
    state: "TASK_STATE_SUBMITTED",
    epoch: 0,
    beat: 0,
    published: 0,
    decidedAt: NOW,
    deadline: NOW + 300_000,
    expiresAt: EXPIRES,
    ...over,
  };
}

function entryOf(place: number, over: Partial<Entry> = {}): Entry {
  return { place, nonce: `n${place}`, epoch: 1, at: NOW, revision: place, ...over };
}

/** What is due in the partition of a task; other tests' tasks may be in it, too. */
async function due(store: Store, taskId: string, until: number): Promise<string[]> {
  const found = [];
  for await (const id of store.due(dueShard(taskId), until)) found.push(id);
  return found;
}

async function isDue(store: Store, taskId: string, until: number): Promise<boolean> {
  return (await due(store, taskId, until)).includes(taskId);
}

const table = await startTable();
after(() => table.stop());

for (const [name, open] of [
  ["memory", memoryStore],
  ["a simulated table", simulatedStore],
  ["DynamoDB", () => table.store],
] as const)
  describe(`the store over ${name}`, () => {
    let store: Store;
    before(() => {
      store = open();
    });

    test("admits a task once, and gives what is there to whoever comes later", async () => {
      const head = headOf(newId(), { skill: "task", clientTaskRef: undefined, input: { text: "{}" } });
      assert.deepEqual(await store.admit(head), { admitted: true });
      const { clientTaskRef: _, ...there } = head;
      assert.deepEqual(await store.head(head.taskId), there);
      const later = await store.admit({ ...head, digest: "other" });
      assert.deepEqual(later, { admitted: false, head: there });
      assert.equal(await store.head(newId()), undefined);
    });

    test("notes whose child a task is once, for each delegator and executor", async () => {
      const parent = { taskId: newId(), step: "bob" };
      const child = { delegator: "acme-ann", executor: "acme-bob", childTaskId: newId() };
      assert.equal(await store.parentOf(child), undefined);
      await store.bindChild(child, parent, EXPIRES);
      await store.bindChild(child, parent, EXPIRES);
      await store.bindChild(child, { taskId: newId(), step: "other" }, EXPIRES);
      assert.deepEqual(await store.parentOf(child), parent);
      assert.equal(await store.parentOf({ ...child, delegator: "acme-eve" }), undefined);
      assert.equal(await store.parentOf({ ...child, executor: "acme-eve" }), undefined);
      assert.equal(await store.parentOf({ ...child, childTaskId: newId() }), undefined);
      assert.equal(await store.head(child.childTaskId), undefined);
    });

    test("keeps a payload by its digest", async () => {
      const taskId = newId();
      await store.putInput(taskId, "d", "payload", EXPIRES);
      assert.equal(await store.input(taskId, "d"), "payload");
      assert.equal(await store.input(taskId, "e"), undefined);
      assert.equal(await store.head(taskId), undefined);
      assert.equal(await store.last(taskId), undefined);
    });

    test("gives a claim to one, and again to the same", async () => {
      const { taskId } = headOf(newId());
      const hint = { taskId, epoch: 0, beat: 0 };
      assert.equal(await store.claim(hint, "a", DUE), undefined, "no such task");
      await store.admit(headOf(taskId));
      const claimed = { ...headOf(taskId), epoch: 1, owner: "a", state: "TASK_STATE_WORKING" };
      assert.deepEqual(await store.claim(hint, "a", DUE), claimed);
      assert.deepEqual(await store.claim(hint, "a", DUE), claimed, "its own write, repeated");
      assert.equal(await store.claim(hint, "b", DUE), undefined);
      assert.equal(await store.claim({ ...hint, epoch: 1, beat: 1 }, "b", DUE), undefined, "another beat");
      assert.equal(await isDue(store, taskId, DUE), false, "admission says when the first is looked after");
      const again = { ...claimed, epoch: 2, owner: "b", dueAt: DUE };
      assert.deepEqual(await store.claim({ ...hint, epoch: 1 }, "b", DUE), again);
      assert.equal(await isDue(store, taskId, DUE), true);
    });

    test("takes a beat while the claim is in force and the task is not over", async () => {
      const { taskId } = headOf(newId());
      assert.equal(await store.beat(taskId, 1, { beat: 1 }), false, "no such task");
      await store.admit(headOf(taskId));
      await store.claim({ taskId, epoch: 0, beat: 0 }, "a", DUE);
      assert.equal(await store.beat(taskId, 1, { beat: 1, running: "x" }), true);
      assert.equal(await store.beat(taskId, 1, { beat: 2 }), true);
      const head = await store.head(taskId);
      assert.deepEqual([head?.beat, head?.running], [2, "x"]);
      assert.equal(await store.beat(taskId, 0, { beat: 3 }), false);
      await store.settle(headOf(taskId), 2, "TASK_STATE_COMPLETED");
      assert.equal(await store.beat(taskId, 1, { beat: 4 }), false);
      assert.equal(await store.claim({ taskId, epoch: 1, beat: 2 }, "b", DUE), undefined);
    });

    test("lets go of a task in good order while the claim is in force", async () => {
      const { taskId } = headOf(newId());
      const state = "TASK_STATE_INPUT_REQUIRED";
      const { place, ...told } = {
        epoch: 1,
        beat: 5,
        published: 3,
        place: 2,
        state,
        dueAt: NOW + 9,
      } as const;
      const left = { ...told, place };
      assert.deepEqual(await store.suspend(headOf(taskId), left), KEPT, "no such task");
      await store.admit(headOf(taskId, { dueAt: NOW, seen: { epoch: 0, beat: 0, times: 1 } }));
      assert.deepEqual(await store.suspend(headOf(taskId), left), KEPT, "no such claim");
      await store.claim({ taskId, epoch: 0, beat: 0 }, "a", DUE);
      await store.beat(taskId, 1, { beat: 1, running: "x" });
      assert.deepEqual(await store.suspend(headOf(taskId), left), LEFT);
      const waiting = headOf(taskId, { ...told, owner: "a", waiting: true, calm: 1 });
      assert.deepEqual(await store.head(taskId), waiting);
      assert.equal(await isDue(store, taskId, NOW + 9), true);
      assert.equal(await store.claim({ taskId, epoch: 1, beat: 1 }, "b", DUE), undefined, "an older hint");
      const { waiting: _, ...rest } = waiting;
      assert.deepEqual(await store.claim({ taskId, epoch: 1, beat: 5 }, "b", DUE), {
        ...rest,
        epoch: 2,
        owner: "b",
        state: "TASK_STATE_WORKING",
        dueAt: DUE,
      });
      await store.suspend(headOf(taskId), { ...left, epoch: 2 });
      await store.settle(headOf(taskId), 4, "TASK_STATE_CANCELED");
      assert.deepEqual(await store.suspend(headOf(taskId), { ...left, epoch: 2 }), KEPT, "it is over");
      assert.equal((await store.head(taskId))?.waiting, undefined);
    });

    test("does not let go of a task of which there is news", async () => {
      const { taskId } = headOf(newId());
      assert.equal(await store.news(taskId, 1), undefined, "no such task");
      await store.admit(headOf(taskId));
      await store.claim({ taskId, epoch: 0, beat: 0 }, "a", DUE);
      assert.equal((await store.news(taskId, 3))?.news, 3);
      assert.equal((await store.news(taskId, 2))?.news, 3, "the last counts");
      const state = "TASK_STATE_WORKING";
      const left = { epoch: 1, beat: 5, published: 3, place: 2, state, dueAt: NOW + 9 } as const;
      assert.deepEqual(await store.suspend(headOf(taskId), left), KEPT);
      assert.deepEqual(await store.suspend(headOf(taskId), { ...left, place: 3 }), LEFT);
      assert.equal((await store.news(taskId, 3))?.waiting, true);
    });

    test("puts an entry where nothing is, or again", async () => {
      const taskId = newId();
      const first = entryOf(1, {
        claim: true,
        steps: [{ name: "s", kind: "run", value: { text: "1" }, ms: 3, attempts: 2 }],
        opens: [{ name: "q", kind: "ask", asked: 2, until: NOW + 5 }],
        events: [{ kind: "status", revision: 2, body: { ref: { key: "k", bytes: 3 } } }],
        answer: { step: "q", value: { text: "{}" } },
      });
      assert.deepEqual(await store.append(taskId, first, EXPIRES), { stored: true });
      assert.deepEqual(await store.append(taskId, first, EXPIRES), { stored: true });
      const other = { ...first, nonce: "other" };
      assert.deepEqual(await store.append(taskId, other, EXPIRES), { stored: false, found: first });
      assert.deepEqual(await store.entries(taskId, 1), [first]);
    });

    test("gives entries in order, from a place on", async () => {
      const taskId = newId();
      for (const place of [2, 10, 1, 9]) await store.append(taskId, entryOf(place), EXPIRES);
      const places = async (from: number) => (await store.entries(taskId, from)).map(({ place }) => place);
      assert.deepEqual(await places(1), [1, 2, 9, 10]);
      assert.deepEqual(await places(2), [2, 9, 10]);
      assert.deepEqual(await places(11), []);
      assert.equal((await store.last(taskId))?.place, 10);
    });

    test("gives entries of more than a page", async () => {
      const taskId = newId();
      const value = { text: "x".repeat(300_000) };
      const steps = [{ name: "s", kind: "run" as const, value, ms: 0 }];
      for (const place of [1, 2, 3, 4, 5]) await store.append(taskId, entryOf(place, { steps }), EXPIRES);
      assert.equal((await store.entries(taskId, 1)).length, 5);
    });

    // The simulated table is quick and trusts the store, which changes nothing that it has handed over, and bounds it.
    const strict = { skip: name === "a simulated table" };

    test("does not hand out what it holds", strict, async () => {
      const head = headOf(newId(), { seen: { epoch: 0, beat: 0, times: 0 } });
      await store.admit(head);
      Object.assign(head.seen ?? {}, { times: 7 });
      Object.assign(await store.head(head.taskId).then((there) => there?.seen ?? {}), { times: 8 });
      assert.equal((await store.head(head.taskId))?.seen?.times, 0);
    });

    test("settles forwards only, and an end takes the task out of the index", async () => {
      const { taskId } = headOf(newId());
      await store.settle(headOf(taskId), 3);
      assert.equal(await store.head(taskId), undefined, "no such task");
      await store.admit(headOf(taskId, { dueAt: NOW, running: "x" }));
      await store.settle(headOf(taskId), 3);
      await store.settle(headOf(taskId), 2, "TASK_STATE_FAILED");
      const head = await store.head(taskId);
      assert.deepEqual([head?.published, head?.state, head?.dueAt], [3, "TASK_STATE_SUBMITTED", NOW]);
      assert.equal(await isDue(store, taskId, NOW), true);
      await store.settle(headOf(taskId), 3, "TASK_STATE_FAILED");
      // What ran is kept: it tells what the task ended without.
      const { dueAt: _, ...rest } = headOf(taskId, {
        published: 3,
        state: "TASK_STATE_FAILED",
        running: "x",
      });
      assert.deepEqual(await store.head(taskId), rest);
      assert.equal(await isDue(store, taskId, NOW), false);
    });

    test("lists what is due until a time, the longest due first", async () => {
      const ids = Array.from({ length: 5 }, (_, n) => `${newId().slice(0, -4)}000${n === 4 ? 1 : 0}`);
      // The last lies in another partition.
      for (const [n, taskId] of ids.entries()) await store.admit(headOf(taskId, { dueAt: NOW - 10 * n }));
      const mine = async (until: number) =>
        (await due(store, ids[0] ?? "", until)).filter((taskId) => ids.includes(taskId));
      assert.deepEqual(await mine(NOW), [ids[3], ids[2], ids[1], ids[0]]);
      assert.deepEqual(await mine(NOW - 10), [ids[3], ids[2], ids[1]]);
      assert.deepEqual(await mine(NOW - 31), []);
    });

    test("postpones what is due as it was seen", async () => {
      const head = headOf(newId(), { dueAt: NOW });
      const seen = { epoch: 0, beat: 0, times: 1 };
      assert.equal(await store.postpone(head, NOW + 1, seen), false, "no such task");
      await store.admit(head);
      assert.equal(await store.postpone(head, NOW + 1, seen), true);
      assert.deepEqual(await store.head(head.taskId), { ...head, dueAt: NOW + 1, seen });
      assert.equal(await store.postpone(head, NOW + 2, seen), false, "somebody was faster");
      assert.equal(await isDue(store, head.taskId, NOW + 1), true);
      await store.settle(head, 1, "TASK_STATE_FAILED");
      assert.equal(await store.postpone({ ...head, dueAt: NOW + 1 }, NOW + 3, seen), false, "it is over");
    });

    test("refuses what no item holds", strict, async () => {
      const taskId = newId();
      const steps = (bytes: number) => [
        { name: "s", kind: "run" as const, value: { text: "x".repeat(bytes) }, ms: 0 },
      ];
      await assert.rejects(store.append(taskId, entryOf(1, { steps: steps(400 * 1_024) }), EXPIRES));
      await assert.rejects(store.append(taskId, entryOf(1, { at: Number.POSITIVE_INFINITY }), EXPIRES));
      await assert.rejects(store.admit(headOf(taskId, { deadline: Number.POSITIVE_INFINITY })));
      assert.equal(await store.last(taskId), undefined);
      assert.equal(await store.head(taskId), undefined);
      assert.deepEqual(await store.append(taskId, entryOf(1, { steps: steps(390_000) }), EXPIRES), {
        stored: true,
      });
    });
  });

/** What one call did: its result, or that it was refused. */
type Call = (store: Store, prefix: string) => Promise<unknown>;

const id = fc.constantFrom("1", "2").map((last) => (prefix: string) => `${prefix}000${last}`);
const small = fc.integer({ min: 0, max: 3 });
const nonce = fc.constantFrom("a", "b");
const ended = fc.constantFrom("TASK_STATE_COMPLETED" as const, "TASK_STATE_FAILED" as const);
const dueAt = small.map((n) => NOW + n);

/** Every call of the interface, over two tasks and few values, so that conditions meet what they speak of. */
const calls: fc.Arbitrary<{ what: string; call: Call }> = fc.oneof(
  fc
    .tuple(id, fc.option(dueAt, { nil: undefined }))
    .map(([taskId, at]) => named("admit", [at], (s, p) => s.admit(headOf(taskId(p), { dueAt: at })))),
  fc
    .tuple(id, small, small, nonce)
    .map(([taskId, epoch, beat, owner]) =>
      named("claim", [epoch, beat, owner], (s, p) => s.claim({ taskId: taskId(p), epoch, beat }, owner, DUE)),
    ),
  fc.tuple(id, small, small, dueAt).map(([taskId, epoch, beat, at]) =>
    named("suspend", [epoch, beat, at], (s, p) =>
      s.suspend(headOf(taskId(p)), {
        ...{ epoch, beat, published: 1, place: 1 },
        ...{ state: "TASK_STATE_WORKING", dueAt: at },
      }),
    ),
  ),
  fc
    .tuple(id, fc.integer({ min: 1, max: 3 }))
    .map(([taskId, place]) => named("news", [place], (s, p) => s.news(taskId(p), place))),
  fc
    .tuple(id, small, small, fc.constantFrom(undefined, "x"))
    .map(([taskId, epoch, beat, running]) =>
      named("beat", [epoch, beat, running], (s, p) =>
        s.beat(taskId(p), epoch, running === undefined ? { beat } : { beat, running }),
      ),
    ),
  fc
    .tuple(id, fc.integer({ min: 1, max: 4 }), nonce)
    .map(([taskId, place, by]) =>
      named("append", [place, by], (s, p) => s.append(taskId(p), entryOf(place, { nonce: by }), EXPIRES)),
    ),
  fc
    .tuple(id, fc.integer({ min: 1, max: 4 }))
    .map(([taskId, from]) => named("entries", [from], (s, p) => s.entries(taskId(p), from))),
  fc.tuple(id, id, nonce).map(([taskId, childTaskId, step]) =>
    named("bindChild", [step], (s, p) => {
      const child = { delegator: "ann", executor: "bob", childTaskId: childTaskId(p) };
      return s.bindChild(child, { taskId: taskId(p), step }, EXPIRES);
    }),
  ),
  id.map((childTaskId) =>
    named("parentOf", [], (s, p) =>
      s.parentOf({ delegator: "ann", executor: "bob", childTaskId: childTaskId(p) }),
    ),
  ),
  id.map((taskId) => named("last", [], (s, p) => s.last(taskId(p)))),
  fc
    .tuple(id, small, fc.option(ended, { nil: undefined, freq: 3 }))
    .map(([taskId, published, end]) =>
      named("settle", [published, end], (s, p) => s.settle(headOf(taskId(p)), published, end)),
    ),
  fc
    .tuple(id, dueAt, dueAt)
    .map(([taskId, was, next]) =>
      named("postpone", [was, next], (s, p) =>
        s.postpone(headOf(taskId(p), { dueAt: was }), next, { epoch: 0, beat: 0, times: 1 }),
      ),
    ),
);

function named(method: string, args: readonly unknown[], call: Call): { what: string; call: Call } {
  return { what: `${method}(${args.join(", ")})`, call };
}

for (const [name, open] of [
  ["memory", memoryStore],
  ["a simulated table", simulatedStore],
] as const)
  test(`whatever is called in whatever order, ${name} answers as DynamoDB does`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(calls, { minLength: 5, maxLength: 40 }), async (sequence) => {
        const memory = open();
        const prefix = newId().slice(0, -4);
        for (const [n, { what, call }] of sequence.entries())
          assert.deepEqual(
            await call(memory, prefix),
            await call(table.store, prefix),
            `${sequence.slice(0, n).map((of) => of.what)} and then ${what}`,
          );
        for (const taskId of [`${prefix}0001`, `${prefix}0002`]) {
          assert.deepEqual(await memory.head(taskId), await table.store.head(taskId));
          const theirs = await due(table.store, taskId, DUE);
          assert.deepEqual(
            await due(memory, taskId, DUE),
            theirs.filter((of) => of.startsWith(prefix)),
          );
        }
      }),
      { numRuns: 60 },
    );
  });
