import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { legacyServer } from "../remotes/servers/index.ts";
import type { Point } from "../support/proxy/points.ts";
import { killCaller } from "../support/proxy/proxies.ts";
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
        "chunk report one,",
        "last report two",
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
      assert.match(content, /some notes\n\none,two\n\n\{"rows":2\}/);
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
      const task = await stage.script(id, ["working at it", "never"], { timeoutSec: 6 });
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

/** Kills the function that makes the first such write, before or right after it is made. */
function killAt(when: "before" | "after", matches: (point: Point) => boolean): Promise<void> {
  const killed = Promise.withResolvers<void>();
  const off = stage.proxies.points.on({
    [when]: (point: Point) => {
      if (!matches(point)) return undefined;
      off();
      killed.resolve();
      return killCaller(point);
    },
  });
  return killed.promise;
}

describe("whatever dies", () => {
  for (const id of FRONTS)
    test(`a worker between the message and its checkpoint: ${id}`, async () => {
      const killed = killAt(
        "before",
        ({ kind, body }) => /PutItem entry/.test(kind) && body.includes("remote/send"),
      );
      const task = await stage.script(id, ["working at it", "pause 300", "complete done"]);
      await killed;
      const { state, error } = await stage.end(task);
      assert.equal(stage.executed(task), 1);
      if (id !== "legacy") return assert.equal(state, "TASK_STATE_COMPLETED");
      // A2A 0.3 has no list of tasks: nobody can know, and so nobody sends it again.
      assert.match(error?.message ?? "", /elder may have the message, and cannot be asked whether it has/);
    });

  test("a worker between the end and the cancel: the remote hears of it all the same", async () => {
    const task = await stage.script("polling", ["working at it", "never"], { timeoutSec: 6 });
    const killed = killAt(
      "after",
      ({ kind, tasks }) => /entry.*end/.test(kind) && tasks.includes(task.taskId),
    );
    await killed;
    assert.equal((await stage.end(task)).error?.code, "timeout");
    assert.ok(stage.servers.polling.canceled.includes(stage.idThere(task) ?? ""));
  });

  test("a remote that does not answer is told later", async () => {
    const { polling } = stage.servers;
    const task = await stage.script("polling", ["ask Which?"]);
    await stage.told(task, /Which/);
    polling.refuse(["CancelTask"], -32603);
    await stage.cancel(task);
    await stage.told(task, /CANCELED/);
    await until(
      "it was asked in vain",
      () => polling.requests.filter(({ rpc }) => rpc === "CancelTask").length > 1,
    );
    polling.refuse(["CancelTask"]);
    await stage.end(task);
    assert.ok(polling.canceled.includes(stage.idThere(task) ?? ""));
  });

  test("a remote that is down is left alone, and given the task once when it is back", async () => {
    const { port } = stage.servers.legacy;
    await stage.servers.legacy.close();
    const task = await stage.script("legacy", ["complete done"]);
    await until("its circuit is open", () =>
      stage.sluice.lines.some((line) => line.includes("an agent that fails is left alone")),
    );
    stage.servers.legacy = await legacyServer({ port });
    assert.equal((await stage.end(task)).content, "done");
    assert.equal(stage.executed(task), 1);
  });

  test("the host: the task goes on, and is not executed again", async () => {
    const task = await stage.script("polling", [
      "working at it",
      "hold gate",
      "artifact a A",
      "complete done",
    ]);
    await stage.told(task, /at it/);
    await stage.sluice.stopHost();
    stage.servers.polling.release("gate");
    await stage.sluice.startHost();
    const events = await stage.sluice.peer.outcome(task.taskId);
    assertWhole(events);
    assert.equal(events.at(-1)?.event.content, "A");
    assert.equal(stage.executed(task), 1);
  });
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
