import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import * as z from "zod";
import { MAX_REPLY_BYTES } from "../../../functions/control/decide.ts";
import { defineAgent, skill } from "../../../shared/agents/index.ts";
import { storedEvents } from "../../../shared/events/drafts.ts";
import { fold } from "../../../shared/tasks/fold.ts";
import type { Entry } from "../../../shared/tasks/items.ts";
import { type ControlKind, controlMessage, controlSubject } from "../../../shared/wire/index.ts";
import { SENDER, startWorld, type World } from "../../support/world.ts";

const TO = "acme-support";
const agent = defineAgent({
  id: "support",
  description: "Never works: the journal is driven by the tests",
  skills: { task: skill({ name: "Task", description: "A task", input: z.string(), run: () => "done" }) },
});

let world: World;
before(async () => {
  world = await startWorld([agent]);
});
after(() => world.stop());

/** A task that a worker has claimed. */
async function claimed(): Promise<string> {
  const message = world.task();
  await world.admit(message);
  world.hints.splice(0);
  const hint = { taskId: message.taskId, epoch: 0, beat: 0 };
  assert.ok(await world.store.claim(hint, "worker", world.now() + 60_000));
  return message.taskId;
}

/** Puts an entry and publishes its events, as a worker would. */
async function put(taskId: string, make: (next: number) => Partial<Entry>, content?: string): Promise<void> {
  const [head, last] = await Promise.all([world.store.head(taskId), world.store.last(taskId)]);
  assert.ok(head);
  const at = world.now();
  const revision = last?.revision ?? 1;
  const state = "TASK_STATE_INPUT_REQUIRED";
  const drafts = content === undefined ? [] : [{ kind: "status" as const, state, content } as const];
  const events = await storedEvents(world.values, head, drafts, { revision, at });
  const entry: Entry = {
    place: (last?.place ?? 0) + 1,
    nonce: randomUUID(),
    epoch: head.epoch,
    at,
    revision: revision + drafts.length,
    ...(events.length > 0 && { events }),
    ...make(revision + 1),
  };
  assert.deepEqual(await world.store.append(taskId, entry, head.expiresAt), { stored: true });
  for (const event of events) await world.publisher.publish(head, event);
}

const ask = (taskId: string, name: string, kind: "ask" | "approve" = "ask", prompt = "Which colour?") =>
  put(taskId, (asked) => ({ opens: [{ name, kind, asked }] }), prompt);

interface Sent {
  readonly revision: number;
  readonly a2a?: unknown;
  readonly reason?: string;
  readonly messageId?: string;
}

function send(taskId: string, kind: ControlKind, of: Sent, deps?: Parameters<World["control"]>[1]) {
  const createdAt = new Date(world.now()).toISOString();
  return world.control(controlMessage({ from: SENDER, to: TO, taskId, kind, ...of, createdAt }), deps);
}

/** The events on the stream, each as revision, state without its prefix, and content. */
async function events(taskId: string): Promise<string[]> {
  return (await world.peer.events(taskId)).map(({ event: { kind, revision, state, content } }) =>
    `${revision} ${kind} ${state.replace("TASK_STATE_", "")} ${content}`.trimEnd(),
  );
}
const entries = (taskId: string) => world.store.entries(taskId, 1);
const ACK = { ack: true };

test("a reply is put with its event and wakes the worker of a task that waits", async () => {
  const taskId = await claimed();
  await ask(taskId, "colour");
  const state = "TASK_STATE_INPUT_REQUIRED";
  const left = { epoch: 1, beat: 4, published: 2, place: 1, state, dueAt: world.now() + 1e9 } as const;
  const head = await world.store.head(taskId);
  assert.ok(head);
  assert.deepEqual(await world.store.suspend(head, left), { left: true, waited: false });

  assert.deepEqual(await send(taskId, "input_reply", { revision: 3, a2a: { input: "blue" } }), ACK);
  assert.deepEqual(await events(taskId), [
    "1 accepted WORKING",
    "2 status INPUT_REQUIRED Which colour?",
    "3 status WORKING input received",
  ]);
  assert.deepEqual(world.hints.splice(0), [
    { hint: { taskId, epoch: 1, beat: 4, to: "acme-support" }, delaySec: 0 },
  ]);
  const view = fold(await entries(taskId));
  assert.equal(view.question, undefined);
  assert.deepEqual(view.answers.get("colour")?.value, { text: '{"input":"blue"}' });

  // Its redelivery finds it taken. The worker may not have been woken, for all that it can know.
  const before = await entries(taskId);
  assert.deepEqual(await send(taskId, "input_reply", { revision: 3, a2a: { input: "blue" } }), ACK);
  assert.deepEqual(await entries(taskId), before);
  assert.equal((await events(taskId)).length, 3);
  assert.equal(world.hints.splice(0).length, 1);

  // Once a worker has put something since, it knows.
  await put(taskId, () => ({ claim: true }));
  assert.deepEqual(await send(taskId, "input_reply", { revision: 3, a2a: { input: "blue" } }), ACK);
  assert.deepEqual(world.hints.splice(0), []);
});

test("a reply is told to the worker that is there, and gives no hint", async () => {
  const taskId = await claimed();
  await ask(taskId, "colour");
  const told: string[] = [];
  const tell = async (of: string) => void told.push(of);
  assert.deepEqual(await send(taskId, "status", { revision: 3 }, { tell }), ACK);
  assert.deepEqual(told, []);
  assert.deepEqual(await send(taskId, "input_reply", { revision: 4, a2a: "blue" }, { tell }), ACK);
  assert.deepEqual(told, [taskId]);
  assert.deepEqual(world.hints.splice(0), []);
});

describe("what is no answer to the open question", () => {
  const untouched = async (taskId: string, act: () => Promise<unknown>) => {
    const before = [await entries(taskId), await events(taskId)];
    const verdict = await act();
    assert.deepEqual([await entries(taskId), await events(taskId)], before);
    assert.deepEqual(world.hints.splice(0), []);
    return verdict;
  };

  test("a copy of an earlier answer", async () => {
    const taskId = await claimed();
    await ask(taskId, "one");
    await send(taskId, "input_reply", { revision: 3, a2a: "first" });
    await ask(taskId, "two", "ask", "And the second?");
    for (const copy of [
      { revision: 3 },
      { revision: 3, messageId: "copy" },
      { revision: 4, messageId: "copy" },
      // The same message under another revision is still the same message.
      { revision: 5, messageId: `${taskId}_input_reply_3` },
    ])
      assert.deepEqual(
        await untouched(taskId, () => send(taskId, "input_reply", { ...copy, a2a: "first" })),
        ACK,
      );
    assert.deepEqual(await send(taskId, "input_reply", { revision: 5, a2a: "second" }), ACK);
    assert.deepEqual(fold(await entries(taskId)).answers.get("two")?.value, { text: '"second"' });
  });

  test("the wrong kind of reply, or one to a closed question", async () => {
    const taskId = await claimed();
    const approve = { revision: 3, a2a: { approve: true } };
    const none = { term: "no question is open" };
    assert.deepEqual(await untouched(taskId, () => send(taskId, "auth_reply", approve)), none);
    await ask(taskId, "one");
    const wrong = await untouched(taskId, () => send(taskId, "auth_reply", approve));
    assert.deepEqual(wrong, { term: "the open question is answered by input_reply, not by auth_reply" });
    await send(taskId, "input_reply", { revision: 3, a2a: "first" });
    const second = { revision: 4, a2a: "second" };
    assert.deepEqual(await untouched(taskId, () => send(taskId, "input_reply", second)), none);
  });

  test("an absurd revision", async () => {
    const taskId = await claimed();
    await ask(taskId, "one");
    const sent = controlMessage({
      from: SENDER,
      to: TO,
      taskId,
      kind: "input_reply",
      revision: 3,
      messageId: "absurd",
      a2a: "x",
      createdAt: new Date(world.now()).toISOString(),
    });
    const of = (envelope: unknown, payload: unknown) => {
      const { payload: inner, ...outer } = z
        .looseObject({ payload: z.looseObject({}) })
        .parse(JSON.parse(sent.body));
      const body = JSON.stringify({ ...outer, revision: envelope, payload: { ...inner, revision: payload } });
      return untouched(taskId, () => world.control({ subject: sent.subject, body }));
    };
    assert.deepEqual(await of(0, 0), ACK);
    assert.deepEqual(await of(null, null), ACK);
    assert.deepEqual(await of(null, -1), ACK);
    for (const revision of [-1, 2 ** 53, 1e300, 2.5, "3"]) {
      const verdict = await of(revision, 3);
      assert.ok(verdict instanceof Object && "term" in verdict, `${revision}`);
    }
    // As high as there is: it answers, and the numbering goes on as before.
    assert.deepEqual(await send(taskId, "input_reply", { revision: Number.MAX_SAFE_INTEGER, a2a: "x" }), ACK);
    assert.equal((await events(taskId)).at(-1), "3 status WORKING input received");
  });

  test("somebody else's control", async () => {
    const taskId = await claimed();
    await ask(taskId, "one");
    const createdAt = new Date(world.now()).toISOString();
    for (const kind of ["input_reply", "auth_reply", "cancel", "status"] as const) {
      const forged = {
        from: "eve-room",
        to: TO,
        taskId,
        kind,
        revision: 9,
        a2a: { approve: true },
        createdAt,
      };
      const verdict = await untouched(taskId, () => world.control(controlMessage(forged)));
      assert.deepEqual(verdict, { term: "control ownership mismatch" });
      const elsewhere = controlMessage({ ...forged, from: SENDER, to: "acme-other" });
      assert.deepEqual(await world.control(elsewhere), { term: "acme-other is not hosted here" });
      const { body } = controlMessage({ ...forged, from: "eve-room" });
      const subject = controlSubject(SENDER, TO, taskId, kind);
      assert.ok("term" in (await world.control({ subject, body })));
    }
  });

  test("a kind that nobody knows", async () => {
    const taskId = await claimed();
    const createdAt = new Date(world.now()).toISOString();
    const of = controlMessage({ from: SENDER, to: TO, taskId, kind: "status", revision: 2, createdAt });
    const subject = of.subject.replace(/status$/, "explode");
    const verdict = await untouched(taskId, () => world.control({ ...of, subject }));
    assert.deepEqual(verdict, { term: "unknown control" });
  });
});

test("approval: only an explicit one; anything else is asked for again", async () => {
  const taskId = await claimed();
  await put(taskId, (asked) => ({ opens: [{ name: "go", kind: "approve", asked }] }), "Deploy 7?");
  assert.deepEqual(await send(taskId, "auth_reply", { revision: 3, a2a: {} }), ACK);
  assert.deepEqual(await send(taskId, "auth_reply", { revision: 4, a2a: { approve: "yes" } }), ACK);
  const again = "AUTH_REQUIRED expected approve to be true or false\n\nDeploy 7?";
  assert.deepEqual((await events(taskId)).slice(2), [`3 status ${again}`, `4 status ${again}`]);
  assert.deepEqual(world.hints.splice(0), []);
  // A second thought that has not seen the last question does not count; the next one does.
  await send(taskId, "auth_reply", { revision: 4, messageId: "early", a2a: { approve: true } });
  assert.equal(fold(await entries(taskId)).question?.name, "go");
  assert.deepEqual(await send(taskId, "auth_reply", { revision: 5, a2a: { approve: true } }), ACK);
  assert.equal((await events(taskId)).at(-1), "5 status WORKING authorization received");
  const view = fold(await entries(taskId));
  assert.deepEqual(view.answers.get("go")?.value, { text: '{"approve":true}' });
});

test("a denial is put without an event: the result takes the next revision", async () => {
  const taskId = await claimed();
  await ask(taskId, "go", "approve");
  const a2a = { approve: false, denyReason: "not on a Friday" };
  assert.deepEqual(await send(taskId, "auth_reply", { revision: 3, a2a }), ACK);
  assert.equal((await events(taskId)).length, 2);
  const last = (await entries(taskId)).at(-1);
  assert.equal(last?.revision, 2);
  assert.deepEqual(last?.answer, {
    step: "go",
    value: { text: '{"approve":false,"denyReason":"not on a Friday"}' },
  });
});

test("status while a question is open repeats what is asked", async () => {
  const taskId = await claimed();
  await send(taskId, "status", { revision: 2 });
  await ask(taskId, "colour");
  await send(taskId, "status", { revision: 4 });
  await send(taskId, "status", { revision: 4 });
  assert.deepEqual(await events(taskId), [
    "1 accepted WORKING",
    "2 status WORKING",
    "3 status INPUT_REQUIRED Which colour?",
    "4 status INPUT_REQUIRED Which colour?",
  ]);
  // The question is the same as before, and so is the revision from which on a reply counts.
  assert.deepEqual(await send(taskId, "input_reply", { revision: 4, a2a: "blue" }), ACK);
  assert.equal((await events(taskId)).at(-1), "5 status WORKING input received");
});

test("a large prompt and a large reply go by way of the bucket", async () => {
  const taskId = await claimed();
  const prompt = "?".repeat(40_000);
  await ask(taskId, "colour", "ask", prompt);
  await send(taskId, "status", { revision: 3 });
  assert.equal((await events(taskId)).at(-1), `3 status INPUT_REQUIRED ${prompt}`);

  const large = "x".repeat(MAX_REPLY_BYTES - 2);
  await send(taskId, "input_reply", { revision: 4, a2a: `${large}x` });
  assert.match(
    (await events(taskId)).at(-1) ?? "",
    /^4 status INPUT_REQUIRED expected a reply of at most 262144 bytes, got 262145\n\n\?{40000}$/,
  );
  await send(taskId, "input_reply", { revision: 5, a2a: large });
  assert.equal((await events(taskId)).at(-1), "5 status WORKING input received");
  const kept = fold(await entries(taskId)).answers.get("colour")?.value;
  assert.ok(kept !== undefined && "ref" in kept);
  assert.equal(await world.values.text(kept), JSON.stringify(large));
});

test("of two replies at once one answers, and each revision is used once", async () => {
  const taskId = await claimed();
  await ask(taskId, "colour");
  const verdicts = await Promise.all(
    ["red", "green", "blue"].map((colour) =>
      send(taskId, "input_reply", { revision: 3, a2a: colour, messageId: colour }),
    ),
  );
  assert.equal(verdicts.filter((verdict) => "ack" in verdict).length, 1);
  assert.equal((await entries(taskId)).filter(({ answer }) => answer !== undefined).length, 1);
  assert.deepEqual((await events(taskId)).slice(2), ["3 status WORKING input received"]);
});

test("a task that was claimed anew between two looks is looked at again", async () => {
  const taskId = await claimed();
  await ask(taskId, "colour");
  const { store } = world;
  const head = await store.head(taskId);
  await store.claim({ taskId, epoch: 1, beat: 0 }, "another", world.now() + 60_000);
  await put(taskId, () => ({ claim: true }));
  let looks = 0;
  const stale = { ...store, head: async (id: string) => (looks++ === 0 ? head : store.head(id)) };
  const sent = controlMessage({
    from: SENDER,
    to: TO,
    taskId,
    kind: "input_reply",
    revision: 3,
    a2a: "blue",
    createdAt: new Date(world.now()).toISOString(),
  });
  assert.deepEqual(await world.control(sent, { store: stale }), ACK);
  assert.equal((await entries(taskId)).at(-1)?.epoch, 2);
});

test("a reply that overtakes its task waits for it, and is terminated after five minutes", async () => {
  const message = world.task();
  const sent = controlMessage({
    from: SENDER,
    to: TO,
    taskId: message.taskId,
    kind: "input_reply",
    revision: 3,
    a2a: "blue",
    createdAt: new Date(world.now()).toISOString(),
  });
  assert.ok("nakMs" in (await world.control(sent)));
  const late = { storedAt: world.now() - world.timing.controlGraceMs - 1 };
  assert.deepEqual(await world.control(sent, {}, late), { term: "no such task" });
});

test("any control of a task that is over gets the last event again", async () => {
  const taskId = await claimed();
  await ask(taskId, "colour");
  await world.cancel(taskId, 3);
  const end = (await world.peer.events(taskId)).at(-1);
  assert.equal(end?.event.state, "TASK_STATE_CANCELED");
  const before = await entries(taskId);
  for (const kind of ["input_reply", "auth_reply", "status", "cancel"] as const) {
    assert.deepEqual(await send(taskId, kind, { revision: 4, a2a: { approve: true } }), ACK);
    const again = (await world.peer.events(taskId)).at(-1);
    assert.deepEqual(again?.body, end?.body);
    assert.equal(again?.msgId, `${end?.msgId}:${taskId}_${kind}_4`);
  }
  assert.deepEqual(await entries(taskId), before);
});
