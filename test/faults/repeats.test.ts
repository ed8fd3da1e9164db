import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Point } from "../support/proxy/points.ts";
import { assertStoredOnce, assertWhole, type Stage, startStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

let stage: Stage;
/** What the bridge has forwarded of each task. */
const forwarded = new Map<string, string[]>();
/** Every body that has been published for a task, repeated ones included. */
const published = new Map<string, string[]>();

before(async () => {
  const note = (of: Map<string, string[]>, point: Point, text: string) => {
    for (const task of point.tasks) of.set(task, [...(of.get(task) ?? []), text]);
  };
  stage = await startStage(
    { timeScale: 30 },
    {
      before(point) {
        if (point.kind.startsWith("nats publish")) note(published, point, point.body.toString());
        if (point.kind !== "sqs send tasks") return undefined;
        for (const message of messagesOf(point)) note(forwarded, point, message);
        return undefined;
      },
    },
  );
});
after(() => stage.stop());

function messagesOf(point: Point): string[] {
  const request: { Entries: { MessageBody: string }[] } = JSON.parse(point.body.toString());
  return request.Entries.map(({ MessageBody }) => MessageBody);
}

const is = (taskId: string, kind: string) => (point: Point) =>
  point.kind === kind && point.tasks.includes(taskId);

/** How often admission has published its answer. */
const answers = (taskId: string) =>
  (published.get(taskId) ?? []).filter((body) => body.includes('"revision":1,')).length;

/** One task, one run, the same bytes. */
async function assertOnce(taskId: string): Promise<void> {
  await stage.over(taskId);
  await stage.drained();
  const events = stage.log.of(taskId);
  assertWhole(events);
  assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
  const bodies = new Set(events.map(({ body }) => body));
  for (const body of published.get(taskId) ?? []) assert.ok(bodies.has(body), `other bytes: ${body}`);
  const entries = await stage.store.entries(taskId, 1);
  assert.equal(assertStoredOnce(entries, stage.traces(taskId)), 2, "each of the two steps ran once");
  assert.equal(entries.filter(({ end }) => end !== undefined).length, 1);
}

test("a message that is published twice under two ids is one task", async () => {
  const { subject, body, taskId } = await stage.step();
  await stage.sluice.peer.publish(subject, `${taskId}-again`, body);
  await stage.over(taskId);
  await stage.sluice.peer.publish(subject, `${taskId}-and-again`, body);
  await until("all three are answered", () => answers(taskId) === 3, { seen: () => answers(taskId) });
  await assertOnce(taskId);
});

test("a message that SQS delivers twice, at once and after the end, is one task", async () => {
  const { taskId } = await stage.step();
  const message = await until("the message is forwarded", () => forwarded.get(taskId)?.[0]);
  await stage.send("tasks", message);
  await stage.over(taskId);
  await stage.send("tasks", message);
  await until("all three are answered", () => answers(taskId) === 3, { seen: () => answers(taskId) });
  await assertOnce(taskId);
});

test("of two workers that get a task at once, one works on it", async () => {
  const { points } = stage.proxies;
  let hint: string | undefined;
  const off = points.on({
    before(point) {
      const mine = point.kind === "sqs send work" && point.tasks.length > 0 && hint === undefined;
      if (mine) hint = messagesOf(point)[0];
      return undefined;
    },
  });
  const claims: Point[] = [];
  const both = Promise.withResolvers<undefined>();
  const offClaims = points.on({
    before(point) {
      if (point.kind !== "dynamodb TransactWriteItems claim") return undefined;
      claims.push(point);
      if (claims.length === 2) both.resolve(undefined);
      return both.promise;
    },
  });
  const { taskId } = await stage.step();
  const copy = await until("the hint is sent", () => hint);
  await stage.send("work", copy);
  await until("both workers claim the task", () => claims.length >= 2, { seen: () => claims.length });
  off();
  offClaims();
  assert.notEqual(claims[0]?.caller?.pid, claims[1]?.caller?.pid);
  await assertOnce(taskId);
  assert.equal((await stage.store.head(taskId))?.epoch, 1, "one claim");
});

test("a message that JetStream delivers again after the end is answered as before", async () => {
  const { points } = stage.proxies;
  let lost = 0;
  const off = points.on({
    before(point) {
      if (point.kind !== "nats ack" || point.tasks.length === 0 || lost > 0) return undefined;
      lost++;
      return "drop";
    },
  });
  const { taskId } = await stage.step();
  const first = await until("the message is forwarded", () => forwarded.get(taskId)?.[0]);
  const again = points.hold("before", is(taskId, "sqs send tasks"), "second delivery");
  await again.reached;
  await stage.over(taskId);
  again.release();
  off();
  await until("it is answered again", () => answers(taskId) >= 2, { seen: () => answers(taskId) });
  await assertOnce(taskId);
  assert.equal(lost, 1);
  assert.ok((forwarded.get(taskId)?.length ?? 0) >= 2);
  assert.match(first, /"deliveries":1,/);
  assert.match(forwarded.get(taskId)?.[1] ?? "", /"deliveries":2,/);
});

test("another body under a known message id changes nothing, during the task and after it", async () => {
  const { subject, body, taskId } = await stage.step({ steps: 2 });
  const other = body.replace('"steps":2', '"steps":3');
  assert.notEqual(other, body);
  await until("the first is answered", () => answers(taskId) === 1);
  await stage.sluice.peer.publish(subject, `${taskId}-other`, other);
  await stage.over(taskId);
  await stage.sluice.peer.publish(subject, `${taskId}-another`, other);
  await until("all three are answered", () => answers(taskId) === 3, { seen: () => answers(taskId) });
  await assertOnce(taskId);
  const warned = (line: string) =>
    line.includes("another body under a known message id") && line.includes(taskId);
  assert.equal(stage.sluice.lines.filter(warned).length, 2);
});
