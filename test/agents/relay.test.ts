import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { type StartOptions, startTask } from "sluice/testing";
import relay, { input } from "../../agents/relay.ts";
import { artifactRef, resultEvent, taskIdOf } from "../../shared/wire/index.ts";
import { Simulation } from "../../testing/simulation.ts";
import { dieAtEachWrite } from "../support/kill-points.ts";

const start = (options: StartOptions) => startTask(relay, { neighbours: ["digest"], ...options });

test("a task is handed on, and its progress, text and artifacts are passed on", async () => {
  const t = await start({ text: "test-digest Twelve green bottles", policy: { statusEverySec: 0 } });
  const digest = await t.delegation();
  assert.deepEqual(
    [digest.to, digest.channelRef, digest.skill, digest.text],
    ["test-digest", "digest", "task", "Twelve green bottles"],
  );
  await digest.status("counting");
  await digest.complete({ text: "3 words", artifacts: { "report.json": "{}" } });
  const { state, text, artifacts } = await t.outcome();
  assert.deepEqual([state, text], ["TASK_STATE_COMPLETED", "3 words"]);
  assert.deepEqual(
    artifacts.map(({ name, mediaType, text }) => [name, mediaType, text]),
    [["report.json", "text/plain", "{}"]],
  );
  assert.ok(t.events.some(({ content }) => content === "test-digest: counting"));
});

test("data is handed on as data, to the skill that is named", async () => {
  const t = await start({ data: { to: "acme-bob", skill: "bob/report", message: { rows: [1] } } });
  const bob = await t.delegation();
  assert.deepEqual([bob.to, bob.channelRef, bob.skill], ["acme-bob", "bob", "report"]);
  assert.deepEqual(bob.message.parts, [{ data: { rows: [1] } }]);
  await bob.complete({ data: { n: 1 } });
  assert.deepEqual((await t.outcome()).data, { n: 1 });
});

test("a failure is told with what the other agent said", async () => {
  const t = await start({ text: "test-digest hello" });
  await (await t.delegation()).fail("overloaded", "too much to do");
  const { state, error } = await t.outcome();
  assert.equal(state, "TASK_STATE_FAILED");
  assert.equal(error?.code, "internal");
  assert.match(error?.message ?? "", /test-digest .* code overloaded: too much to do$/);
});

test("whom the operator does not allow gets nothing", async () => {
  const t = await start({ text: "test-digest hello", policy: { delegateTargets: [] } });
  assert.equal((await t.outcome()).error?.code, "unauthorized_target");
});

test("a cancel is passed on", async () => {
  const t = await start({ text: "test-digest hello" });
  const digest = await t.delegation();
  await digest.accept();
  await t.cancel();
  assert.ok(digest.cancelled);
});

test("no more than twenty artifacts are passed on, and the text says so", async () => {
  for (const count of [20, 21]) {
    const t = await start({ text: "test-digest hello" });
    const artifacts = Object.fromEntries(Array.from({ length: count }, (_, n) => [`a${n + 1}.txt`, `${n}`]));
    await (await t.delegation()).complete({ text: "done", artifacts });
    const { text, artifacts: given } = await t.outcome();
    assert.equal(given.length, 20);
    assert.equal(text, count === 20 ? "done" : "done\n\nNot passed on: a21.txt (more than 20 artifacts)");
  }
});

test("artifacts are passed on whatever ids they have", async () => {
  for (const [ids, expected] of [
    [
      ["a.b", "a b", "a-b"],
      ["a-b", "a-b-2", "a-b-3"],
    ],
    [
      ["a#2", "a", "a"],
      ["a-2", "a", "a-3"],
    ],
    [
      [`${"a".repeat(99)}\u{1f600}`, "a".repeat(99)],
      ["a".repeat(99), `${"a".repeat(99)}-2`],
    ],
    [
      ["\u2026", "artifact", "hand on", "fetch 4"],
      ["artifact", "artifact-2", "hand-on", "fetch-4"],
    ],
  ] as const) {
    const simulation = new Simulation(relay);
    const a2a = { parts: [{ data: { to: "acme-bob", skill: "bob/task", message: "" } }] };
    const { taskId } = await simulation.admit({ skill: "task", a2a, from: "local-cli" });
    const sent = () => simulation.messenger.sent[0];
    await simulation.until("it is handed on", () => sent() !== undefined);
    const { messageId } = JSON.parse(sent()?.body ?? "");
    const child = {
      taskId: taskIdOf("test-relay", "acme-bob", messageId),
      from: "test-relay",
      to: "acme-bob",
    };
    const artifacts = ids.map((id, n) => {
      const bytes = Buffer.from(id);
      const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
      const of = { id: `x${n}`, name: "x", mediaType: "text/plain", digest, sizeBytes: bytes.byteLength };
      const ref = artifactRef(child.taskId, of);
      simulation.messenger.objects.set(ref.key, bytes);
      return { ...ref, id };
    });
    const result = {
      state: "TASK_STATE_COMPLETED",
      content: "",
      artifacts,
      metrics: {},
      revision: 2,
    } as const;
    await simulation.event(resultEvent({ ...child, messageId }, result, simulation.createdAt()));
    const last = () => simulation.publisher.events(taskId).at(-1)?.event;
    await simulation.until("the end", () => last()?.kind === "result");
    assert.deepEqual(
      last()?.result?.artifacts.map(({ id }) => id),
      expected,
    );
  }
});

test("a request without a runtime or a message is refused", () => {
  assert.deepEqual(input.parse("acme-bob  do it\nwell"), { to: "acme-bob", message: "do it\nwell" });
  for (const given of ["", { to: "acme-bob" }, { message: "x" }, { to: "a", message: "x", other: 1 }])
    assert.equal(input.safeParse(given).success, false, JSON.stringify(given));
});

for (const when of ["before", "after"] as const)
  test(`whichever write a process dies ${when}, the task ends with the same events`, async () => {
    await dieAtEachWrite({
      agent: relay,
      start: { text: "test-digest hello", neighbours: ["digest"] },
      when,
      play: async (task) => {
        const digest = await task.delegation();
        await digest.accept();
        await digest.complete({ text: "done", artifacts: { "a.txt": "A", "b.txt": "B" } });
        const { artifacts } = await task.outcome();
        assert.deepEqual(
          artifacts.map(({ text }) => text),
          ["A", "B"],
        );
      },
      eventsOf: (events) =>
        events.map(({ revision, kind, content, artifact }) => [revision, kind, content, artifact?.id]),
    });
  });
