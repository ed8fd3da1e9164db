import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify } from "yaml";
import * as z from "zod";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { agent, complaint, policyOf } from "./support/agents-yaml.ts";

const file = (support: object, defaults: object = {}) =>
  stringify({ deployment: "a", defaults, agents: { support } });

test("legacy names are read as what they are called now", () => {
  const policy = policyOf(
    file({
      acceptFrom: ["peer-a", "*"],
      delegateTo: ["peer-b", "peer-c"],
      delegateSkills: ["task", "report"],
      remoteToolPolicy: { allow_memory_write: true },
    }),
  );
  assert.deepEqual(policy.acceptFromRuntimes, ["peer-a", "*"]);
  assert.deepEqual(
    policy.delegateTargets,
    ["peer-b", "peer-c"].flatMap((runtimeAgentId) =>
      ["task", "report"].map((skillId) => ({ runtimeAgentId, skillId })),
    ),
  );
  assert.equal(policy.allowMemoryWrite, true);
  assert.deepEqual(policyOf(file({ delegateTo: ["peer-b"] })).delegateTargets, [
    { runtimeAgentId: "peer-b", skillId: "task" },
  ]);
  assert.deepEqual(policyOf(file({}, { acceptFrom: ["peer-a"] })).acceptFromRuntimes, ["peer-a"]);
});

test("a canonical field wins, unless it is empty", () => {
  const both = (acceptFromRuntimes: string[]) =>
    policyOf(file({ acceptFrom: ["old"], acceptFromRuntimes })).acceptFromRuntimes;
  assert.deepEqual(both(["new"]), ["new"]);
  assert.deepEqual(both([]), ["old"]);
});

test("which are legacy is told, and whether they count", () => {
  const text = file(
    { acceptFrom: ["old"], acceptFromRuntimes: ["new"], delegateTo: ["b"] },
    { acceptFrom: [] },
  );
  const { legacy, notes } = readAgentsYaml("agents.yaml", [agent("support")], () => text);
  assert.deepEqual(Object.fromEntries(legacy), {
    defaults: [{ field: "acceptFrom", canonical: "acceptFromRuntimes", unused: false }],
    support: [
      { field: "acceptFrom", canonical: "acceptFromRuntimes", unused: true },
      { field: "delegateTo", canonical: "delegateTargets", unused: false },
    ],
  });
  // As synth says it.
  assert.deepEqual(
    notes.map((note) => note.replace(/^agents\.yaml:\d+: /, "")),
    [
      "defaults.acceptFrom: legacy; write acceptFromRuntimes",
      "agents.support.acceptFrom: legacy; counts for nothing beside acceptFromRuntimes: take it out",
      "agents.support.delegateTo: legacy; write delegateTargets",
    ],
  );
});

for (const [name, fields, error] of [
  [
    "a legacy field's value",
    { acceptFrom: ["no id!"] },
    /:\d+: agents\.support\.acceptFrom\[0\]: expected a runtime id/,
  ],
  ["a legacy field that is no list", { delegateTo: "peer" }, /agents\.support\.delegateTo: expected a list/],
  ["tools", { remoteToolPolicy: { allow: 1 } }, /remoteToolPolicy: expected \{ allow_memory_write/],
  [
    "Discord's own",
    { coPresentFrom: ["x"] },
    /agents\.support\.coPresentFrom: a field of agents that live on Discord/,
  ],
  ["a guild", { guildId: "1" }, /guildId: a field of agents that live on Discord, without a meaning here/],
  ["what is derived", { channelRef: "x" }, /channelRef: made of the deployment's name and the agent's id/],
  [
    "an exposed skill",
    { exposeSkills: [{ id: "fly" }] },
    /exposeSkills\[0\]\.id: expected a skill of the agent/,
  ],
] as const)
  test(`an error: ${name}`, () => assert.match(complaint(file(fields)), error));

test("an agent's own setting of such a name is its own", () => {
  const own = agent("support", z.object({ guildId: z.string() }));
  const { deployment } = readAgentsYaml("agents.yaml", [own], () => file({ guildId: "1" }));
  assert.deepEqual(deployment.agents[0]?.settings, { guildId: "1" });
});
