import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import * as z from "zod";
import { tasksConsumer } from "../../shared/nats/index.ts";
import { parseSubject } from "../../shared/wire/index.ts";
import { assertForm, loadEventForms, loadTaskCases } from "../support/fixtures.ts";
import type { Received } from "../support/peer.ts";
import { type Sluice, startSluice } from "../support/sluice.ts";

const advisory = z.object({ stream: z.string(), consumer: z.string(), stream_seq: z.number() });

/** The form of an event of this kind, for this task, out of the fixtures. */
function formOf(
  kind: string,
  state: string,
  of: { from: string; to: string; messageId: string; taskId: string },
) {
  const { events, task } = loadEventForms();
  const form = events.find(
    (event) => event.kind === kind && JSON.stringify(event.body).includes(`"state":"${state}"`),
  );
  assert.ok(form, `a form of ${kind} ${state}`);
  const text = JSON.stringify(form.body)
    .replaceAll("task_8463c7c504e9c3d38998774d", of.taskId)
    .replaceAll(task.messageId, of.messageId)
    .replaceAll(task.from, of.from)
    .replaceAll(task.to, of.to);
  return JSON.parse(text) as { payload: Record<string, unknown> };
}

describe("the wire, from a peer's message to the last event", () => {
  let sluice: Sluice;
  before(async () => {
    sluice = await startSluice();
  });
  after(() => sluice.stop());

  test("every case of the fixtures is decided as it must be, and nobody else's message is touched", async () => {
    const { peer } = sluice;
    await streamsOf(sluice);
    const terminated: number[] = [];
    const subscription = peer.nc.subscribe("$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>", {
      callback: (_error, message) => {
        const { stream, stream_seq } = advisory.parse(message.json());
        if (stream === "A2A_TASKS") terminated.push(stream_seq);
      },
    });
    const jsm = await jetstreamManager(peer.nc);
    // Another executor's traffic on the same streams, with a durable of its own.
    await jsm.consumers.add("A2A_TASKS", {
      durable_name: "a2a_tasks_other-lobby",
      filter_subject: "a2a.v1.task.*.other-lobby.>",
      ack_policy: "explicit",
    });
    for (let n = 0; n < 20; n++)
      await peer.publish(`a2a.v1.task.adam.other-lobby.m${n}`, `other-${n}`, "not ours");
    const before = await jsm.streams.info("A2A_TASKS");
    const other = await jsm.consumers.info("A2A_TASKS", "a2a_tasks_other-lobby");

    const cases = loadTaskCases(Date.now()).filter(({ direct }) => !direct);
    const mustTerminate: number[] = [];
    for (const { subject, headers, bytes, expect } of cases) {
      const { seq } = await peer.publish(subject, headers["Nats-Msg-Id"] ?? "", bytes);
      if (expect.ack === "term") mustTerminate.push(seq);
    }
    for (const { name, subject, expect } of cases) {
      if (expect.ack === "term") continue;
      const parsed = parseSubject(subject);
      assert.ok(parsed?.kind === "task");
      const sender = expect.code === "sender_not_allowed" ? "mallory-main" : parsed.from;
      const key = expect.event === "accepted" ? expect.taskId : `msg_${parsed.messageId}`;
      const events = await outcome(sluice, sender, key ?? "");
      checkEvents(name, events, { ...parsed, taskId: expect.taskId ?? "" }, expect);
    }
    await settled(sluice);
    assert.deepEqual(
      terminated.toSorted((a, b) => a - b),
      mustTerminate,
    );
    subscription.unsubscribe();

    const consumer = await jsm.consumers.info("A2A_TASKS", tasksConsumer("acme-support"));
    assert.deepEqual([consumer.num_pending, consumer.num_ack_pending, consumer.num_redelivered], [0, 0, 0]);
    const untouched = await jsm.consumers.info("A2A_TASKS", "a2a_tasks_other-lobby");
    assert.equal(untouched.num_pending, 20);
    assert.deepEqual(untouched.delivered.stream_seq, other.delivered.stream_seq);
    const now = await jsm.streams.info("A2A_TASKS");
    assert.equal(now.state.messages, before.state.messages + cases.length);
    assert.deepEqual(now.config, before.config);
  });
});

type Expectation = ReturnType<typeof loadTaskCases>[number]["expect"];

function checkEvents(
  name: string,
  events: readonly Received[],
  task: { from: string; to: string; messageId: string; taskId: string },
  expect: Expectation,
): void {
  if (expect.event === "rejected") {
    assert.equal(events.length, 1, name);
    const form = formOf("rejected", "TASK_STATE_REJECTED", task);
    const { clientTaskRef } = events[0]?.event ?? {};
    if (name.includes("clientTaskRef")) assert.equal(clientTaskRef, "ref-7");
    else delete form.payload.clientTaskRef;
    form.payload.error = { Code: expect.code, Message: "{{string}}" };
    assertForm(events[0]?.body, form);
    return;
  }
  assert.deepEqual(
    events.map(({ event }) => `${event.revision} ${event.kind}`),
    ["1 accepted", "2 result"],
    name,
  );
  assertForm(events[0]?.body, formOf("accepted", "TASK_STATE_WORKING", task));
  assert.equal(events[1]?.event.state, "TASK_STATE_COMPLETED", name);
}

/** The bridge makes the streams in its first run. */
async function streamsOf({ peer }: Sluice): Promise<void> {
  const jsm = await jetstreamManager(peer.nc);
  for (const until = Date.now() + 30_000; Date.now() < until; await wait(50)) {
    const found = await jsm.consumers.info("A2A_TASKS", tasksConsumer("acme-support")).catch(() => undefined);
    if (found !== undefined) return;
  }
  throw new Error("the bridge made no consumer within 30 s");
}

async function outcome({ peer }: Sluice, from: string, key: string): Promise<Received[]> {
  return peer.outcome(key, { from });
}

/** Waits until nothing of ours is on its way. */
async function settled({ peer }: Sluice): Promise<void> {
  const jsm = await jetstreamManager(peer.nc);
  for (const until = Date.now() + 60_000; Date.now() < until; await wait(100)) {
    const { num_pending, num_ack_pending } = await jsm.consumers.info(
      "A2A_TASKS",
      tasksConsumer("acme-support"),
    );
    if (num_pending + num_ack_pending === 0) return;
  }
  throw new Error("messages are still pending after 60 s");
}
