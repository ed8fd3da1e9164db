import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { FRONTS, type RemoteStage, startRemoteStage } from "../support/remote-stage.ts";
import { assertWhole } from "../support/stage.ts";
import { until } from "../support/until.ts";

let stage: RemoteStage;
before(async () => {
  stage = await startRemoteStage();
});
after(() => stage.stop());

for (const id of FRONTS)
  describe(`the remote agent ${id}`, () => {
    test("progress, artifacts, a question and the end travel both ways", async () => {
      const task = await stage.script(id, [
        "working reading it",
        "artifact notes some notes",
        "chunk report one ",
        "last report and two",
        'data table {"rows":2}',
        "file picture image/png PNG",
        "ask Which colour?",
        "working painting it {reply}",
        "complete it is {reply}",
      ]);
      await stage.answer(task, /INPUT_REQUIRED Which colour\?/, { input: "blue" });
      const { state, content, result } = await stage.end(task);
      assert.equal(state, "TASK_STATE_COMPLETED", content);
      assert.deepEqual(
        result?.artifacts.map(({ id: of, mediaType }) => [of, mediaType]),
        [
          ["notes", "text/plain"],
          ["report", "text/plain"],
          ["table", "application/json"],
          ["picture", "image/png"],
        ],
      );
      assert.match(content, /some notes\n\none and two\n\n\{"rows":2\}/);
      assertWhole(stage.log.of(task.taskId));
      const [first, second, ...more] = stage.servers[id].executions.filter(({ messageId }) =>
        messageId.startsWith(task.taskId),
      );
      assert.deepEqual([first?.messageId, second?.messageId], [`${task.taskId}-1`, `${task.taskId}-2`]);
      assert.deepEqual(
        [second?.taskId, second?.contextId, second?.text],
        [first?.taskId, first?.contextId, "blue"],
      );
      assert.equal(more.length, 0);
      assert.equal(first?.metadata.skillHint, "script");
    });

    test("an authorization is asked for; a denial cancels the task there", async () => {
      const task = await stage.script(id, ["auth May I?", "complete I may: {reply}"]);
      await stage.answer(task, /AUTH_REQUIRED May I\?/, { approve: true });
      assert.equal((await stage.end(task)).content, "I may: approved");

      const denied = await stage.script(id, ["auth May I?", "complete I may: {reply}"]);
      await stage.answer(denied, /AUTH_REQUIRED May I\?/, { approve: false, denyReason: "not today" });
      assert.equal((await stage.end(denied)).error?.code, "auth_not_satisfied");
      assert.ok(stage.servers[id].canceled.includes(stage.idThere(denied) ?? ""));
    });

    test("a cancel is sent on, to one that works and to one that asks", async () => {
      for (const lines of [
        ["working at it", "never"],
        ["ask Which?", "complete it"],
      ]) {
        const task = await stage.script(id, lines);
        await stage.told(task, /at it|Which/);
        await stage.cancel(task);
        assert.equal((await stage.end(task)).state, "TASK_STATE_CANCELED");
        assert.ok(stage.servers[id].canceled.includes(stage.idThere(task) ?? ""));
      }
    });

    test("a deadline is sent on", async () => {
      const task = await stage.script(id, ["working at it", "never"], { timeoutSec: 2 });
      assert.equal((await stage.end(task)).error?.code, "timeout");
      assert.ok(stage.servers[id].canceled.includes(stage.idThere(task) ?? ""));
    });

    test("a task that fails there fails here, in its words", async () => {
      const task = await stage.script(id, ["working at it", "fail the disk is full"]);
      const { state, error } = await stage.end(task);
      assert.equal(state, "TASK_STATE_FAILED");
      assert.match(error?.message ?? "", /has ended the task as TASK_STATE_FAILED: the disk is full/);
      assert.equal(stage.executed(task), 1);
    });
  });

test("an answer without a task is the result", async () => {
  const task = await stage.script("streaming", ["message right away"]);
  assert.equal((await stage.end(task)).content, "right away");
});

test("a skill that only the card has is taken; one that neither card nor file has is not", async () => {
  const { peer } = stage.sluice;
  const { messageId } = await peer.ask("acme-streaming", {
    a2a: "x",
    channelRef: "streaming",
    skillId: "nonsense",
  });
  const [rejected] = await peer.outcome(`msg_${messageId}`);
  assert.equal(rejected?.event.error?.code, "unknown_skill");
  assert.match(rejected?.event.error?.message ?? "", /it has .*task.*script/);
});

test("who we are is told each time, and stands in no log", () => {
  const posts = stage.servers.streaming.requests.filter(({ method }) => method === "POST");
  assert.ok(posts.length > 0);
  for (const { headers } of posts) {
    assert.match(headers.authorization ?? "", /^Bearer /);
    assert.ok(headers["x-correlation-id"]);
  }
  assert.ok(!stage.sluice.lines.some((line) => line.includes("a-bearer-of-the-tests")));
});
