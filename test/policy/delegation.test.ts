import assert from "node:assert/strict";
import { test } from "node:test";
import { agentPolicy } from "../../shared/config/policy.ts";
import { mayDelegate } from "../../shared/policy/delegation.ts";

const wanted = (skill: string, to = "acme-bob", channelRef = "bob") => ({ to, channelRef, skill });

/** Whether the policy of these targets lets a task be handed on. */
function may(targets: readonly object[], of: ReturnType<typeof wanted>): boolean {
  return mayDelegate(agentPolicy.parse({ delegateTargets: targets }).delegateTargets, of);
}

test("nobody may be delegated to unless the operator says so", () => {
  assert.equal(may([], wanted("task")), false);
});

test("a target is a runtime, or every one, and a skill", () => {
  const bob = { runtimeAgentId: "acme-bob" };
  assert.equal(may([bob], wanted("task")), true);
  assert.equal(may([bob], wanted("task", "acme-bobby")), false);
  assert.equal(may([bob], wanted("report")), false);
  assert.equal(may([{ runtimeAgentId: "*", skillId: "report" }], wanted("report", "eve", "x")), true);
  assert.equal(may([{ runtimeAgentId: "acme-eve" }, bob], wanted("task")), true);
});

test("a skill may end in *, and be that of one channelRef", () => {
  for (const [skillId, skill, allowed] of [
    ["*", "anything", true],
    ["rep*", "report", true],
    ["rep*", "rep", true],
    ["rep*", "re", false],
    ["report", "reports", false],
    ["bob/report", "report", true],
    ["bob/*", "report", true],
    ["bob/rep*", "report", true],
    ["eve/*", "report", false],
    ["eve/report", "report", false],
  ] as const)
    assert.equal(may([{ runtimeAgentId: "*", skillId }], wanted(skill)), allowed, `${skillId} ${skill}`);
});

test("task and general_task are the same", () => {
  for (const skillId of ["task", "general_task", "bob/task", "bob/general_task", "general*"])
    for (const skill of ["task", "general_task"])
      assert.equal(may([{ runtimeAgentId: "*", skillId }], wanted(skill)), true, `${skillId} ${skill}`);
});
