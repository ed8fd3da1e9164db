import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isRemoteId } from "../../../shared/remotes/exchange/index.ts";
import { readTask } from "../../../shared/remotes/exchange/seen.ts";
import { traceOf } from "../../../shared/remotes/front/trace.ts";
import { completed, FakeRemote } from "./support/fake.ts";
import { playWith } from "./support/play.ts";

const HEAD = { taskId: "task-1", messageId: "m-1", to: "acme-audit", skill: "task" };
const UNREADABLE = ["", "x".repeat(257), "a\r\nX-Evil: b", "a\u0000b", "a\u200bb"];

describe("what a requester calls a conversation", () => {
  test("goes to the remote only where its answer can say it again; otherwise the task names it", async () => {
    for (const contextId of ["x".repeat(256), "the first of May", "Gespräch"]) {
      const remote = new FakeRemote([completed("done")]);
      const { task } = await playWith(remote, { contextId });
      await task.outcome();
      assert.equal(remote.executions[0]?.contextId, contextId);
    }
    for (const contextId of UNREADABLE) {
      const remote = new FakeRemote([completed("done")]);
      const { task } = await playWith(remote, { contextId });
      assert.equal((await task.outcome()).state, "TASK_STATE_COMPLETED");
      assert.equal(remote.executions[0]?.contextId, task.id);
    }
  });

  test("correlates under the same rule", () => {
    assert.equal(traceOf(HEAD, { hops: 2, contextId: "c-1" }).correlationId, "c-1");
    assert.equal(traceOf(HEAD, { hops: 1 }).correlationId, "task-1");
    for (const contextId of UNREADABLE)
      assert.equal(traceOf(HEAD, { hops: 1, contextId }).correlationId, "task-1");
  });

  test("is sent just when it would be read", () => {
    const text = fc.string({ unit: fc.oneof(fc.constantFrom("\u0000", "\u00ad", "a"), fc.string()) });
    fc.assert(
      fc.property(text, (contextId) => {
        const read = readTask({ id: "t1", contextId, artifacts: [] });
        assert.equal(read.ok, contextId === "" || isRemoteId(contextId));
      }),
    );
  });
});
