import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MAX_CHILD_ARTIFACTS } from "../../shared/tasks/delegation.ts";
import {
  acceptedEvent,
  artifactEvent,
  artifactRef,
  rejectedEvent,
  resultEvent,
  statusEvent,
  taskIdOf,
} from "../../shared/wire/index.ts";
import { Simulation } from "../../testing/simulation.ts";
import { agentOf, ask, BOB, HOUR_SEC } from "./support/delegating.ts";

describe("events", () => {
  /** A task whose only step delegates, and what makes events of it. */
  async function delegated(policy = {}) {
    const agent = agentOf(async (step) => {
      const { text, artifacts } = await ask(step, { onStatus: () => {} });
      return `${text} ${artifacts.map(({ name }) => name).join()}`.trim();
    });
    const simulation = new Simulation(agent, { policy });
    const { taskId } = await simulation.admit({
      skill: "task",
      a2a: "go",
      from: "adam",
      timeoutSec: HOUR_SEC,
    });
    await simulation.until("it is sent", () => simulation.messenger.sent.length > 0);
    const messageId: string = JSON.parse(simulation.messenger.sent[0]?.body ?? "").messageId;
    const from = "test-ann";
    const childTaskId = taskIdOf(from, BOB, messageId);
    const child = { taskId: childTaskId, messageId, from, to: BOB };
    const heard = async () =>
      (await simulation.store.entries(taskId, 1)).flatMap((entry) => entry.heard?.revision ?? []);
    return { simulation, taskId, child, heard, createdAt: simulation.createdAt() };
  }

  test("of a third party, of another task id and of nobody are refused", async () => {
    const { simulation, child, heard, createdAt } = await delegated();
    const term = async (message: { subject: string; body: string }) => {
      const verdict = await simulation.event(message);
      return "term" in verdict ? verdict.term : verdict;
    };
    assert.match(
      String(await term(acceptedEvent({ ...child, to: "acme-eve" }, createdAt))),
      /^expected an event of acme-bob/,
    );
    assert.deepEqual(await simulation.event(acceptedEvent(child, createdAt)), { ack: true });
    assert.equal(
      await term(acceptedEvent({ ...child, taskId: "task_other" }, createdAt)),
      "expected the id under which the task was accepted",
    );
    // Waits for an `accepted` that binds it, for five minutes.
    const status = { revision: 2, state: "TASK_STATE_WORKING" as const, content: "hm" };
    const began = simulation.clock.now();
    assert.equal(
      await term(statusEvent({ ...child, taskId: "task_x" }, status, createdAt)),
      "no such delegation",
    );
    assert.ok(simulation.clock.now() - began >= simulation.timing.controlGraceMs);
    assert.equal(
      await term(statusEvent({ ...child, to: "acme-eve" }, status, createdAt)),
      "no such delegation",
    );
    assert.deepEqual(await heard(), [1]);
  });

  test("of nothing wait only where they may have overtaken what tells of it", async () => {
    const targets = { delegateTargets: [{ runtimeAgentId: BOB, skillId: "*" }] };
    const { simulation, child, createdAt } = await delegated(targets);
    const status = { revision: 2, state: "TASK_STATE_WORKING" as const, content: "hm" };
    const other = { ...child, taskId: "task_x", messageId: "msg_x" };
    for (const [message, waits] of [
      [statusEvent({ ...child, to: "acme-eve" }, status, createdAt), false],
      [acceptedEvent({ ...other, to: "acme-eve" }, createdAt), false],
      [acceptedEvent(other, createdAt), false],
      [rejectedEvent(other, { code: "overloaded", message: "no" }, createdAt), false],
      [statusEvent(other, status, createdAt), true],
    ] as const) {
      const began = simulation.clock.now();
      assert.deepEqual(await simulation.event(message), { term: "no such delegation" });
      const waited = simulation.clock.now() - began;
      assert.equal(waited >= simulation.timing.controlGraceMs, waits, message.subject);
    }
  });

  test("doubled and reordered ones are applied once; the end ends it whatever its revision", async () => {
    const { simulation, taskId, child, heard, createdAt } = await delegated();
    const artifact = artifactRef(child.taskId, {
      id: "a",
      name: "a.txt",
      mediaType: "text/plain",
      digest: `sha256:${"0".repeat(64)}`,
      sizeBytes: 1,
    });
    const working = "TASK_STATE_WORKING" as const;
    const all = [
      acceptedEvent(child, createdAt),
      statusEvent(child, { revision: 3, state: working, content: "three" }, createdAt),
      statusEvent(child, { revision: 2, state: working, content: "two" }, createdAt),
      artifactEvent(child, { revision: 5, artifact }, createdAt),
      // An existing executor numbers its artifacts above its result.
      resultEvent(
        child,
        { revision: 4, state: "TASK_STATE_COMPLETED", content: "done", metrics: {} },
        createdAt,
      ),
    ];
    for (const event of all)
      for (const _ of [1, 2]) assert.deepEqual(await simulation.event(event), { ack: true });
    const end = () => simulation.publisher.events(taskId).at(-1)?.event;
    await simulation.until("the end", () => end()?.kind === "result");
    assert.equal(end()?.content, "done a.txt");
    for (const event of all) assert.deepEqual(await simulation.event(event), { ack: true });
    assert.deepEqual(await heard(), [1, 3, 5, 4]);
    assert.equal(simulation.messenger.sent.filter(({ subject }) => /cancel$/.test(subject)).length, 0);
  });

  test("that end it and cannot be read end it as failed; any other is terminated", async () => {
    for (const [payload, said] of [
      [{ state: "DONE" }, /payload.state: /],
      [{ result: { Metrics: { model: "large" } } }, /payload.result.metrics.model: expected number/],
      [{ result: { Artifacts: [{ id: "a" }] } }, /payload.result.artifacts.0.digest: expected string/],
      ["done", /payload: /],
    ] as const) {
      const { simulation, taskId, child, createdAt } = await delegated();
      const of = { revision: 2, state: "TASK_STATE_COMPLETED", content: "", metrics: {} } as const;
      const odd = ({ subject, body }: { subject: string; body: string }) => ({
        subject,
        body: JSON.stringify({ ...JSON.parse(body), payload }),
      });
      const status = odd(statusEvent(child, { ...of, state: "TASK_STATE_WORKING" }, createdAt));
      assert.ok("term" in (await simulation.event(status)));
      assert.deepEqual(await simulation.event(odd(resultEvent(child, of, createdAt))), { ack: true });
      const end = () => simulation.publisher.events(taskId).at(-1)?.event;
      await simulation.until("the end", () => end()?.kind === "result");
      assert.match(end()?.error?.message ?? "", /code invalid_envelope: its result cannot be read: /);
      assert.match(end()?.error?.message ?? "", said);
    }
    const { simulation, child, heard, createdAt } = await delegated();
    const forged = resultEvent(
      { ...child, to: "acme-eve" },
      { state: "TASK_STATE_FAILED", revision: 2, metrics: {} },
      createdAt,
    );
    const body = JSON.stringify({ ...JSON.parse(forged.body), payload: 1 });
    assert.ok("term" in (await simulation.event({ subject: forged.subject, body })));
    assert.deepEqual(await heard(), []);
  });

  test("of an end that lists no artifacts wait for those that were told of, but not for ever", async () => {
    for (const [onStream, waits] of [
      [0, false],
      [1, false],
      [2, true],
    ] as const) {
      const { simulation, taskId, child, createdAt } = await delegated();
      simulation.messenger.artifacts.set(child.taskId, onStream);
      const digest = `sha256:${"0".repeat(64)}`;
      const artifact = artifactRef(child.taskId, {
        id: "a",
        name: "a.txt",
        mediaType: "text/plain",
        digest,
        sizeBytes: 1,
      });
      const of = { state: "TASK_STATE_COMPLETED", content: "done", metrics: {} } as const;
      await simulation.event(acceptedEvent(child, createdAt));
      await simulation.event(artifactEvent(child, { revision: 3, artifact }, createdAt));
      const began = simulation.clock.now();
      assert.deepEqual(await simulation.event(resultEvent(child, { ...of, revision: 2 }, createdAt)), {
        ack: true,
      });
      const waited = simulation.clock.now() - began;
      assert.equal(waited >= simulation.timing.controlGraceMs, waits, `${onStream}`);
      assert.ok(waited < 2 * simulation.timing.controlGraceMs);
      const end = () => simulation.publisher.events(taskId).at(-1)?.event;
      await simulation.until("the end", () => end()?.kind === "result");
      assert.equal(end()?.content, "done a.txt");
    }
  });

  test("with absurd revisions harm nobody", async () => {
    const { simulation, child, taskId, createdAt } = await delegated();
    await simulation.event(acceptedEvent(child, createdAt));
    const huge = { revision: Number.MAX_SAFE_INTEGER, state: "TASK_STATE_WORKING" as const, content: "x" };
    await simulation.event(statusEvent(child, huge, createdAt));
    await simulation.control({ taskId, from: "adam", kind: "cancel", revision: 2 });
    const cancels = simulation.messenger.sent.filter(({ subject }) => /cancel$/.test(subject));
    assert.equal(JSON.parse(cancels[0]?.body ?? "").revision, Number.MAX_SAFE_INTEGER);
    assert.equal((await simulation.store.head(taskId))?.dueAt, undefined);
  });

  test("of artifacts are kept up to a number", async () => {
    const { simulation, child, heard, createdAt } = await delegated();
    await simulation.event(acceptedEvent(child, createdAt));
    for (let n = 1; n <= MAX_CHILD_ARTIFACTS + 1; n++) {
      const digest = `sha256:${"0".repeat(64)}`;
      const artifact = artifactRef(child.taskId, {
        id: `a${n}`,
        name: "a",
        mediaType: "text/plain",
        digest,
        sizeBytes: 1,
      });
      await simulation.event(artifactEvent(child, { revision: 1 + n, artifact }, createdAt));
    }
    assert.equal((await heard()).length, 1 + MAX_CHILD_ARTIFACTS);
  });
});
