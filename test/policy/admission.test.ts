import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import * as z from "zod";
import { defineAgent, skill } from "../../shared/agents/index.ts";
import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import { decide } from "../../shared/policy/admission.ts";
import { readEnvelope, readTaskPayload, type TaskRequest } from "../../shared/wire/index.ts";
import { loadTaskCases } from "../support/fixtures.ts";
import { deploymentOf, SENDER } from "../support/world.ts";

const task = skill({ name: "Task", description: "", input: z.unknown(), run: () => "" });
const agent = (id: string, skills: string[]) =>
  defineAgent({ id, description: "", skills: Object.fromEntries(skills.map((slug) => [slug, task])) });
const deployment = deploymentOf([agent("support", ["task"]), agent("exec", ["task"])], {
  acceptSkills: ["task"],
});
const parties = { from: SENDER, to: "acme-support" };
const request = (of: Partial<TaskRequest> = {}): TaskRequest => ({
  a2a: "hello",
  channelRef: "support",
  skillId: "support/task",
  delivery: {},
  ...of,
});
/** With the policy of its first agent in force. */
const of = (deployment: DeploymentConfig) => {
  const [first] = deployment.agents;
  assert.ok(first);
  return { deployment, policy: first.policy };
};
const code = (decision: ReturnType<typeof decide>) => (decision.accepted ? "accepted" : decision.code);

describe("admission", () => {
  const now = Date.now();
  for (const { name, subject, bytes, expect } of loadTaskCases(now)) {
    if (expect.ack === "term") continue;
    test(`as the wire's fixtures say: ${name}`, () => {
      const read = readEnvelope(subject, bytes, now);
      assert.ok(read.ok && read.value.subject.kind === "task");
      const payload = readTaskPayload(read.value.envelope.payload);
      const decided = payload.ok
        ? code(decide(of(deployment), read.value.subject, payload.value))
        : "invalid_envelope";
      assert.equal(decided, expect.code ?? "accepted");
    });
  }

  test("the deadline and the depth are clamped to the agent's ceilings, at the bound and one past it", () => {
    for (const [asked, seconds] of [
      [undefined, 300],
      [3_600, 3_600],
      [3_601, 3_600],
      [1, 1],
    ] as const) {
      const decision = decide(of(deployment), parties, request({ delivery: { timeoutSec: asked } }));
      assert.equal(decision.accepted && decision.timeoutMs, seconds * 1_000);
    }
    for (const [asked, depth] of [
      [undefined, 0],
      [1, 1],
      [2, 1],
    ] as const) {
      const decision = decide(of(deployment), parties, request({ delivery: { maxDelegationDepth: asked } }));
      assert.equal(decision.accepted && decision.depth, depth);
    }
  });

  test("nobody is welcome unless the policy says so", () => {
    const closed = deploymentOf([agent("support", ["task"])], { acceptFromRuntimes: [] });
    assert.equal(code(decide(of(closed), parties, request())), "sender_not_allowed");
    const open = deploymentOf([agent("support", ["task"])], { acceptFromRuntimes: ["*"] });
    assert.equal(code(decide(of(open), { ...parties, from: "anybody" }, request())), "accepted");
  });

  test("with no list of skills every skill that the agent has is accepted, and no other", () => {
    const all = deploymentOf([agent("support", ["summarise"])]);
    assert.equal(code(decide(of(all), parties, request({ skillId: "summarise" }))), "accepted");
    assert.equal(code(decide(of(all), parties, request({ skillId: "general_task" }))), "unknown_skill");
  });

  test("whoever asks for a skill that is not there is told which are, at the bound and one past it", () => {
    const slugs = Array.from({ length: 11 }, (_, n) => `skill-${n + 1}`);
    const told = (skills: string[], policy = {}) => {
      const decision = decide(of(deploymentOf([agent("support", skills)], policy)), parties, request());
      return decision.accepted ? "accepted" : decision.message;
    };
    const all = (count: number) => slugs.slice(0, count).join(", ");
    const start = "unknown_skill: the agent has no skill task; it has";
    assert.equal(told(slugs.slice(0, 1)), `${start} skill-1`);
    assert.equal(told(slugs.slice(0, 10)), `${start} ${all(10)}`);
    assert.equal(told(slugs), `${start} ${all(10)} and 1 more`);
    assert.equal(told(slugs, { acceptSkills: ["skill-2", "task"] }), `${start} skill-2`);
  });

  test("general_task in the list of skills is task there as well, and the agent's own where it has one", () => {
    const listed = (skills: string[]) =>
      of(deploymentOf([agent("support", skills)], { acceptSkills: ["general_task"] }));
    for (const skillId of ["task", "general_task"])
      assert.equal(code(decide(listed(["task"]), parties, request({ skillId }))), "accepted");
    const both = listed(["task", "general_task"]);
    assert.equal(code(decide(both, parties, request({ skillId: "task" }))), "skill_not_allowed");
    assert.equal(code(decide(both, parties, request({ skillId: "general_task" }))), "accepted");
  });

  test("an agent's own general_task is not taken for task", () => {
    const both = deploymentOf([agent("support", ["task", "general_task"])]);
    const decision = decide(of(both), parties, request({ skillId: "support/general_task" }));
    assert.equal(decision.accepted && decision.skill, "general_task");
  });

  test("a refusal never carries more of a peer's text than a line", () => {
    const decision = decide(of(deployment), parties, request({ channelRef: "x".repeat(1_000_000) }));
    assert.equal(code(decision), "channel_not_enabled");
    assert.ok(!decision.accepted && decision.message.length < 200);
  });

  test("whatever is asked, what is accepted is within the policy", () => {
    const text = fc.oneof(fc.constantFrom("support", "exec", "task", SENDER, "*"), fc.string());
    fc.assert(
      fc.property(
        text,
        text,
        text,
        fc.option(fc.integer(), { nil: undefined }),
        (from, channelRef, skillId, timeoutSec) => {
          const decision = decide(
            of(deployment),
            { from, to: "acme-support" },
            request({ channelRef, skillId, delivery: { timeoutSec } }),
          );
          if (!decision.accepted) return;
          assert.equal(from, SENDER);
          assert.equal(channelRef, "support");
          assert.equal(decision.skill, "task");
          assert.ok(decision.timeoutMs > 0 && decision.timeoutMs <= 3_600_000);
        },
      ),
    );
  });
});
