import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as z from "zod";
import { defineAgent, type Step, skill, type Task } from "../../shared/agents/index.ts";
import { agentPolicy, policyFields } from "../../shared/config/policy.ts";
import { decide } from "../../shared/policy/admission.ts";
import { exposedSkills } from "../../shared/policy/exposed.ts";
import { mediaProblem } from "../../shared/policy/media.ts";
import type { TaskRequest } from "../../shared/wire/index.ts";
import { startTask } from "../../testing/index.ts";
import { ask, BOB, failure, HOUR_SEC } from "../steps/support/delegating.ts";
import { deploymentOf, SENDER } from "../support/world.ts";

/** Each field of a policy changes what comes of a task. */

const skills = (...slugs: string[]) => {
  const one = skill({ name: "Task", description: "", input: z.unknown(), run: () => "" });
  return Object.fromEntries(slugs.map((slug) => [slug, one]));
};
const hosted = deploymentOf([
  defineAgent({ id: "support", description: "", skills: skills("task", "other") }),
]);
/** What admission says, in a line. */
function said(policy: object, request: Partial<TaskRequest> = {}): string {
  const decision = decide(
    { deployment: hosted, policy: agentPolicy.parse({ acceptFromRuntimes: [SENDER], ...policy }) },
    { from: SENDER, to: "acme-support" },
    { a2a: "x", channelRef: "support", skillId: "task", delivery: {}, ...request },
  );
  return decision.accepted ? `accepted: ${decision.timeoutMs} ms, depth ${decision.depth}` : decision.message;
}
const asking = (delivery: NonNullable<TaskRequest["delivery"]>) => ({ delivery });
const plain = "accepted: 300000 ms, depth 0";

const ADMISSION: readonly [
  field: keyof typeof policyFields,
  policy: object,
  request: Partial<TaskRequest>,
  before: string,
  after: string,
][] = [
  ["enabled", { enabled: false }, {}, plain, "channel_not_enabled: acme-support takes no tasks"],
  [
    "acceptFromRuntimes",
    { acceptFromRuntimes: [] },
    {},
    plain,
    `sender_not_allowed: sender ${SENDER} is not accepted`,
  ],
  ["acceptSkills", { acceptSkills: ["other"] }, {}, plain, "skill_not_allowed: skill task is not accepted"],
  [
    "resultVisibility",
    { resultVisibility: "proxy" },
    asking({ resultVisibility: "transparent" }),
    plain,
    "policy_denied: delivery.resultVisibility: expected proxy",
  ],
  ["timeoutSec", { timeoutSec: { max: 60 } }, {}, plain, "accepted: 60000 ms, depth 0"],
  [
    "maxDelegationDepth",
    { maxDelegationDepth: 3 },
    asking({ maxDelegationDepth: 2 }),
    "accepted: 300000 ms, depth 1",
    "accepted: 300000 ms, depth 2",
  ],
  [
    "discoverable",
    { discoverable: false },
    { skillId: "fly" },
    "unknown_skill: the agent has no skill fly; it has task, other",
    "unknown_skill: the agent has no skill fly",
  ],
  [
    "exposeSkills",
    { exposeSkills: [{ id: "other" }] },
    { skillId: "fly" },
    "unknown_skill: the agent has no skill fly; it has task, other",
    "unknown_skill: the agent has no skill fly; it has other",
  ],
];

describe("when a task is admitted", () => {
  for (const [field, policy, request, before, after] of ADMISSION)
    test(field, () => {
      assert.equal(said({}, request), before);
      assert.equal(said(policy, request), after);
    });

  test("a skill that is shown has the media types that are named, and none is shown that nobody may ask for", () => {
    const [agent] = hosted.agents;
    assert.ok(agent);
    const shown = (policy: object) =>
      exposedSkills(agent, agentPolicy.parse(policy)).map(({ slug, inputModes }) => [slug, inputModes]);
    assert.deepEqual(shown({ exposeSkills: [{ id: "other", inputModes: ["text/plain"] }] }), [
      ["other", ["text/plain"]],
    ]);
    assert.deepEqual(shown({ exposeSkills: [{ id: "other" }], acceptSkills: ["task"] }), []);
  });
});

const agentOf = (run: (task: Task, step: Step) => unknown) =>
  defineAgent({
    id: "ann",
    description: "",
    skills: {
      task: skill({
        name: "Task",
        description: "",
        input: z.string(),
        run: async (task, step) => String(await run(task, step)),
      }),
    },
  });

describe("while a task is worked on", () => {
  test("allowMemoryWrite", async () => {
    const agent = agentOf((task) => task.memoryWrite);
    for (const allowMemoryWrite of [false, true]) {
      const task = await startTask(agent, { policy: { allowMemoryWrite } });
      assert.equal((await task.outcome()).text, String(allowMemoryWrite));
    }
  });

  test("statusEverySec and eventsPerMin", async () => {
    const agent = agentOf(async (_task, step) => {
      for (let n = 0; n < 12; n++) {
        step.status(`${n}`);
        await step.run(`step ${n}`, () => n);
      }
    });
    const texts = async (policy: object) => {
      const task = await startTask(agent, { policy });
      await task.outcome();
      return task.events.filter(({ kind }) => kind === "status").length;
    };
    const all = await texts({ statusEverySec: 0 });
    assert.ok(all >= 12, `${all}`);
    for (const policy of [{ statusEverySec: 6 }, { statusEverySec: 0, eventsPerMin: 10 }]) {
      const some = await texts(policy);
      assert.ok(some > 0 && some <= 3, `${JSON.stringify(policy)}: ${some}`);
    }
  });

  test("delegateTargets", async () => {
    const agent = agentOf((_task, step) => failure(ask(step)));
    const task = await startTask(agent, { policy: { delegateTargets: [{ runtimeAgentId: "another" }] } });
    assert.match((await task.outcome()).text, /^unauthorized_target/);
  });

  test("delegateMedia", async () => {
    const agent = agentOf(async (_task, step) => {
      const { artifacts } = await ask(step);
      return step.run("read", async () => Buffer.from((await artifacts[0]?.bytes()) ?? []).toString(), {
        retry: false,
      });
    });
    for (const [delegateMedia, end] of [
      [{}, "A"],
      [{ maxBytes: 0 }, /policy_denied|does not allow it: delegateMedia\.maxBytes: 1 bytes are more than 0/],
      [{ allowedMimeTypes: ["image/*"] }, /delegateMedia\.allowedMimeTypes does not name "text\/plain"/],
      [{ allowObjectRefs: false }, /delegateMedia\.allowObjectRefs is false/],
    ] as const) {
      const task = await startTask(agent, { policy: { delegateMedia }, timeoutSec: HOUR_SEC });
      const bob = await task.delegation();
      assert.equal(bob.to, BOB);
      await bob.accept();
      await bob.complete({ text: "done", artifacts: { "a.txt": "A" } });
      const { text, error } = await task.outcome();
      if (typeof end === "string") assert.equal(text, end);
      else assert.match(error?.message ?? "", end);
    }
  });

  test("a media type is compared without its parameters, whatever its case", () => {
    const media = (allowedMimeTypes: string[]) =>
      agentPolicy.parse({ delegateMedia: { allowedMimeTypes } }).delegateMedia;
    const problem = (allowed: string[], mediaType: string) =>
      mediaProblem(media(allowed), { mediaType, sizeBytes: 1 });
    assert.equal(problem(["text/plain"], "Text/Plain; charset=utf-8"), undefined);
    assert.equal(problem(["image/*"], "image/png"), undefined);
    assert.notEqual(problem(["image/*"], "imagex/png"), undefined);
  });
});

/** What is looked at elsewhere, over a table. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  maxConcurrent: "test/functions/work/slots.test.ts",
  maxQueued: "test/functions/admit/backlog.test.ts",
  quotas: "test/functions/admit/quotas.test.ts",
};

test("no field is forgotten", () => {
  const here = new Set<string>([
    ...ADMISSION.map(([field]) => field),
    ...["allowMemoryWrite", "statusEverySec", "eventsPerMin", "delegateTargets", "delegateMedia"],
  ]);
  const forgotten = Object.keys(policyFields).filter((field) => !here.has(field) && !(field in ELSEWHERE));
  assert.deepEqual(forgotten, []);
});
