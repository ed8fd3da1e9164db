import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { termsOf } from "../../../shared/remotes/front/terms.ts";
import { asked, completed, FakeRemote } from "./support/fake.ts";
import { playWith } from "./support/play.ts";

const requester = { reviewer: "requester" } as const;

describe("what goes to a remote agent is held", () => {
  test("gated: nothing is asked of it before it is approved, and nothing at all where it is not", async () => {
    const remote = new FakeRemote([completed("done")]);
    const { task } = await playWith(remote, { terms: { ...requester, mode: "gated", radius: "repo" } });
    await task.untilWaiting();
    assert.match(task.question?.prompt ?? "", /^fake is to be given "task", .*: repo\. .*\n\ndo it$/s);
    assert.deepEqual(remote.calls, []);
    await task.approve();
    assert.equal((await task.outcome()).text, "done");
    assert.equal(remote.executions[0]?.held?.mode, "gated");

    const unasked = new FakeRemote([completed("done")]);
    const terms = { ...requester, mode: "gated", approvalMs: 3_600_000 } as const;
    const { task: silent } = await playWith(unasked, { terms });
    await silent.untilWaiting();
    await silent.skip("1h");
    assert.equal((await silent.outcome()).error?.code, "auth_not_satisfied");
    assert.deepEqual(unasked.calls, []);
  });

  test("compound: each answer is held, too, and a denial there cancels the remote's task", async () => {
    const remote = new FakeRemote([asked("Which?"), completed("done")]);
    const { task } = await playWith(remote, { terms: { ...requester, mode: "compound" } });
    await task.approve();
    await task.answer("the blue one");
    await task.untilWaiting();
    assert.match(task.question?.prompt ?? "", /\(checkpoint 2\)\.\n\nthe blue one$/);
    assert.equal(remote.executions.length, 1);
    await task.approve(false, "not that one");
    assert.equal((await task.outcome()).error?.message, "not that one");
    assert.equal(remote.executions.length, 1);
    await task.skip("10m");
    assert.equal(remote.cancels.length, 1);
  });
});

test("terms are the stricter of card and file, for a skill and for all", () => {
  const facts = (extensions: object) =>
    ({ card: { skills: [{ id: "merge" }, { id: "deploy" }], extensions } }) as unknown as Parameters<
      typeof termsOf
    >[2];
  const card = facts({
    hitl: [{ skill: "merge", mode: "veto", vetoTtlMs: 90_000 }],
    blast: [{ skill: "merge", radius: "repo" }],
  });
  const skills = [{ name: "deploy", hitl: { mode: "compound" as const } }, { name: "merge" }];
  assert.deepEqual(termsOf("merge", { skills }, card), {
    ...requester,
    mode: "veto",
    radius: "repo",
    vetoTtlMs: 90_000,
  });
  assert.equal(termsOf("deploy", { skills }, card).mode, "compound");
  assert.deepEqual(termsOf("other", { skills, hitl: { radius: "fleet", approvalSec: 60 } }, undefined), {
    ...requester,
    mode: "gated",
    radius: "fleet",
    approvalMs: 60_000,
  });
  assert.equal(termsOf("other", { skills }, undefined).mode, "notification");
});

test("a skill that the card does not have is held as the strictest that it has", () => {
  const facts = (ids: string[], hitl: object[], blast: object[] = []) =>
    ({ card: { skills: ids.map((id) => ({ id })), extensions: { hitl, blast } } }) as unknown as Parameters<
      typeof termsOf
    >[2];
  const file = { skills: [] };
  const gated = { skill: "deploy", mode: "gated", reviewer: "operator" };
  assert.deepEqual(termsOf("task", file, facts(["deploy"], [gated])), {
    mode: "gated",
    reviewer: "operator",
  });

  const vetoes = [
    { skill: "a", mode: "veto", vetoTtlMs: 10_000 },
    { skill: "b", mode: "veto", vetoTtlMs: 90_000 },
    { skill: "c", mode: "autonomous", reviewer: "operator" },
  ];
  const near = [{ skill: "c", radius: "self" }];
  assert.deepEqual(termsOf("task", file, facts(["a", "b", "c"], vetoes, near)), {
    mode: "veto",
    radius: "self",
    reviewer: "operator",
    vetoTtlMs: 90_000,
  });
  const far = [{ skill: "d", radius: "fleet" }];
  assert.equal(termsOf("task", file, facts(["d"], [], far)).mode, "gated");
  assert.equal(
    termsOf("ops", { skills: [{ name: "ops" }] }, facts(["deploy"], [gated])).reviewer,
    "operator",
  );

  // What the card has is what it says, nothing that a card says leaves nothing to hold by, and nothing becomes less.
  assert.equal(termsOf("task", file, facts(["task", "deploy"], [gated])).mode, "notification");
  assert.equal(termsOf("task", file, facts(["deploy"], [])).mode, "notification");
  const quiet = [{ skill: "c", mode: "autonomous" }];
  assert.equal(termsOf("task", file, facts(["c"], quiet, near)).mode, "notification");
  assert.equal(
    termsOf("task", { skills: [], hitl: { mode: "compound" } }, facts(["deploy"], [gated])).mode,
    "compound",
  );
});
