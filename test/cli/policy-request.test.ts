import assert from "node:assert/strict";
import { test } from "node:test";
import * as z from "zod";
import { CliError, EXIT } from "../../cli/errors.ts";
import { appliedTo, checkFits, readRequest } from "../../cli/policy/request.ts";
import { defineAgent, skill } from "../../shared/agents/index.ts";
import { effectivePolicy, type PolicyFields } from "../../shared/policy/runtime-policy.ts";
import { deploymentOf } from "../support/world.ts";

const task = skill({ name: "Task", description: "", input: z.unknown(), run: () => "" });
const [found] = deploymentOf([defineAgent({ id: "support", description: "", skills: { task } })]).agents;
if (found === undefined) throw new Error("no agent");
const support = found;

/** The fields that the table has after a change, or why it is refused. */
function changed(set: readonly string[], unset: readonly string[] = [], file?: string): unknown {
  try {
    const request = readRequest({ set, unset, file }, support.policy);
    const fields = appliedTo({ maxConcurrent: 3 }, request);
    checkFits(support, effectivePolicy(support.policy, { version: 1, fields }));
    return fields;
  } catch (error) {
    assert.ok(error instanceof CliError, String(error));
    assert.equal(error.exitCode, EXIT.usage);
    return error.message;
  }
}

test("values are YAML, a part may be named, and the rest of it stays", () => {
  assert.deepEqual(changed(["enabled=false", "acceptFromRuntimes=[a, '*']"]), {
    maxConcurrent: 3,
    enabled: false,
    acceptFromRuntimes: ["a", "*"],
  });
  assert.deepEqual(changed(["timeoutSec.max=600", "timeoutSec.default=5"], ["maxConcurrent"]), {
    timeoutSec: { default: 5, max: 600 },
  });
  assert.deepEqual(changed(["maxConcurrent=null"]), {}, "null gives a field back to the file");
  assert.deepEqual(changed(["quotas.open=7"]), { maxConcurrent: 3, quotas: { open: 7, openPerPeer: 0 } });
});

for (const [what, set, error] of [
  ["an unknown field", ["maxConcurent=1"], /^maxConcurent: unknown field; expected one of enabled/],
  ["a field of Discord's", ["coPresentFrom=[a]"], /^coPresentFrom: a field of agents that live on Discord/],
  ["what is beyond the bound", ["maxConcurrent=65"], /^maxConcurrent: expected at most 64, got 65/],
  ["a legacy field's value", ["acceptFrom=['a b']"], /^acceptFrom\[0\]: expected a runtime id/],
  ["a part that there is not", ["enabled.x=1"], /^--set enabled\.x: enabled has no such part/],
  ["an unknown part", ["quotas.x=1"], /^quotas\.x: unknown field/],
  ["no YAML", ["acceptFromRuntimes=*"], /expected a value in YAML, such as/],
  ["no key", ["true"], /^--set true: expected key=value/],
  ["nothing", [], /^nothing is to be changed/],
  ["a skill that there is not", ["acceptSkills=[fly]"], /^acceptSkills: expected a skill of the agent: task/],
  ["a skill that cannot be shown", ["exposeSkills=[{id: fly}]"], /^exposeSkills: expected a skill/],
  ["a target where the file has none", ["delegateTargets=[{runtimeAgentId: a}]"], /agents\.yaml has none/],
] as const)
  test(`an error: ${what}`, () => assert.match(String(changed(set)), error));

test("of a remote agent any skill is taken, with a word on those that its card alone may have", () => {
  const remote = { ...support, remote: "auditor" };
  const fitting = (fields: PolicyFields) =>
    checkFits(remote, effectivePolicy(remote.policy, { version: 1, fields }));
  assert.deepEqual(fitting({ acceptSkills: ["task", "general_task"], exposeSkills: [{ id: "task" }] }), []);
  assert.deepEqual(fitting({ acceptSkills: ["task", "vet"], exposeSkills: [{ id: "near" }] }), [
    "acceptSkills: agents.yaml names no skill vet of the agent: it counts while the card of auditor has it",
    "exposeSkills: agents.yaml names no skill near of the agent: it counts while the card of auditor has it",
  ]);
  assert.match(
    String(changed(["acceptSkills=['a b']"])),
    /^acceptSkills\[0\]: /,
    "but no text that is no slug",
  );
});

test("a file that is not there, or is none", () => {
  assert.match(String(changed([], [], "/nowhere.yaml")), /^--file \/nowhere\.yaml: there is no such file/);
  assert.match(String(changed([], ["x"])), /^x: unknown field/);
});
