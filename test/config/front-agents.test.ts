import assert from "node:assert/strict";
import { test } from "node:test";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { readBundled } from "../../shared/config/bundled.ts";
import { agents, complaint, read } from "./support/agents-yaml.ts";

const REMOTES = `remotes:
  - { name: auditor, url: "https://auditor.example.com/a2a", skills: [{ name: sbom, description: Build an SBOM }, "no slug"] }
  - { name: planner, url: "https://planner.example.com/a2a" }
`;
const file = (entry: string, remotes = REMOTES) =>
  `deployment: acme\n${remotes}agents:\n  audit:\n    ${entry}\n`;

test("an agent that is a remote one is hosted like any other, with the skills of the file", () => {
  const deployment = read(
    file(
      "remote: auditor\n    acceptFromRuntimes: [acme-cli]\n    acceptSkills: [of-its-card]\n  plan: { remote: planner }",
    ),
  );
  const [audit, plan] = deployment.agents.filter(({ remote }) => remote !== undefined);
  assert.deepEqual(
    [audit?.id, audit?.runtime, audit?.channelRef, audit?.remote, audit?.settings],
    ["audit", "acme-audit", "audit", "auditor", {}],
  );
  assert.deepEqual(audit?.skills, [{ slug: "sbom", name: "sbom", description: "Build an SBOM", tags: [] }]);
  assert.deepEqual(audit?.policy.acceptFromRuntimes, ["acme-cli"]);
  assert.deepEqual(
    plan?.skills.map(({ slug }) => slug),
    ["task"],
  );
  assert.deepEqual(readBundled(JSON.parse(JSON.stringify(deployment))), deployment);
});

test("a default skill that no agent has is refused, but beside a remote agent, whose skills are its card's", () => {
  const defaults = "defaults: { acceptSkills: [of-its-card] }\n";
  assert.equal(read(`${defaults}${file("remote: auditor")}`).agents.length, 3);
  assert.equal(
    complaint("deployment: a\ndefaults:\n  acceptSkills: [task, other, general_task, tasks]"),
    "agents.yaml:3: defaults.acceptSkills[3]: expected a skill of one of the agents: task, other",
  );
  assert.equal(
    complaint("deployment: a\ndefaults:\n  exposeSkills:\n    - id: others"),
    "agents.yaml:4: defaults.exposeSkills[0].id: expected a skill of one of the agents: task, other",
  );
});

test("it may have a function of its own, and a skill that is no slug is noted", () => {
  const { functions, notes } = readAgentsYaml("agents.yaml", agents, () =>
    file("{ remote: auditor, function: { memoryMb: 512 } }"),
  );
  assert.equal(functions.get("audit")?.memoryMb, 512);
  assert.deepEqual(notes, [
    'agents.yaml:3: remotes[0].skills: skill "no slug": left out: expected a slug: 1 to 64 of A-Z, a-z, 0-9, _ and -, a letter or digit first',
  ]);
});

const WRONG: readonly [name: string, text: string, complaint: RegExp][] = [
  [
    "a remote that there is not",
    file("remote: auditer"),
    /^agents\.yaml:7: agents\.audit\.remote: expected one of remotes \(auditor, planner\), got auditer$/,
  ],
  [
    "a remote where there is none",
    file("remote: auditor", ""),
    /^agents\.yaml:4: agents\.audit\.remote: expected one of remotes \(there is none\), got auditor$/,
  ],
  [
    "an empty remote",
    file("remote:"),
    /^agents\.yaml:7: agents\.audit\.remote: expected one of remotes \(auditor, planner\), it is empty$/,
  ],
  [
    "an empty text as remote",
    file("remote: ''"),
    /^agents\.yaml:7: agents\.audit\.remote: expected one of remotes \(auditor, planner\), it is empty$/,
  ],
  [
    "an empty remote where the remotes cannot be read",
    file("remote:", "remotes: {}\n"),
    /^agents\.yaml:2: remotes: .*\nagents\.yaml:5: agents\.audit\.remote: expected one of remotes, it is empty$/,
  ],
  [
    "a text that no remote can be called",
    file(`remote: "\\u202e${"y".repeat(100)}"`),
    /\.remote: expected one of remotes \(auditor, planner\), got a text of 101 characters$/,
  ],
  [
    "no name",
    file("remote: 7"),
    /^agents\.yaml:7: agents\.audit\.remote: expected the name of a remote, a text$/,
  ],
  [
    "an agent that has a file",
    `deployment: acme\n${REMOTES}agents:\n  support: { remote: auditor }\n`,
    /^agents\.yaml:6: agents\.support\.remote: expected an agent without a file: agents\/support\.ts is there/,
  ],
  [
    "an id that no file could have",
    `deployment: acme\n${REMOTES}agents:\n  Audit: { remote: auditor }\n`,
    /^agents\.yaml:6: agents\.Audit: expected 1 to 48 of a-z, 0-9 and -/,
  ],
  [
    "a setting",
    file("remote: auditor\n    verbose: true"),
    /^agents\.yaml:8: agents\.audit\.verbose: unknown field; expected one of displayName, function, /,
  ],
  [
    "the id of a remote",
    `deployment: acme\n${REMOTES}agents:\n  auditor: { remote: auditor }\n`,
    /^agents\.yaml:3: remotes\[0\]\.name: expected another name: auditor is an agent of this deployment$/,
  ],
  [
    "a field of its policy that is none",
    file("remote: auditor\n    maxConcurrent: many"),
    /^agents\.yaml:8: agents\.audit\.maxConcurrent: expected/,
  ],
];
for (const [name, text, expected] of WRONG)
  test(`is refused with line and field: ${name}`, () => assert.match(complaint(text), expected));

test("what is wrong with the remotes is told once", () => {
  const told = complaint(file("remote: auditor", "remotes: [{ name: auditor }]\n"));
  assert.match(told, /^agents\.yaml:2: remotes\[0\]\.url: expected a URL https:.* characters, got nothing$/);
});

test("of an agent that has a file an empty remote means none, as what is empty elsewhere", () => {
  const { agents } = read("deployment: acme\nagents:\n  support: { remote: }\n");
  assert.equal(agents.find(({ id }) => id === "support")?.remote, undefined);
});

test("what else is wrong with the agent, and in the file, is told along with a remote that there is not", () => {
  const told = complaint(
    [
      "deployment: acme",
      "nats: { tls: { ca: file:no.pem } }",
      "remotes:",
      '  - { name: support, url: "https://auditor.example.com:8443/a2a" }',
      "agents:",
      "  audit: { remote: auditer, maxConcurrent: many, verbose: true }",
      "  Plan: { remote: support, maxQueued: 0 }",
      "choosing: { default: nobody }",
      "agent: {}",
    ].join("\n"),
  );
  const lines = told.split("\n").map((line) => line.split(": ").slice(0, 2).join(" "));
  assert.deepEqual(lines.toSorted(), [
    "agents.yaml:2 nats.tls.ca",
    "agents.yaml:4 remotes[0].name",
    "agents.yaml:4 remotes[0].url",
    "agents.yaml:6 agents.audit.maxConcurrent",
    "agents.yaml:6 agents.audit.remote",
    "agents.yaml:6 agents.audit.verbose",
    "agents.yaml:7 agents.Plan",
    "agents.yaml:7 agents.Plan.maxQueued",
    "agents.yaml:8 choosing.default",
    "agents.yaml:9 agent",
  ]);
});

test("whoever is named as the default is not told to be missing where something else of it is wrong", () => {
  const told = complaint(`${file("remote: auditer")}choosing: { default: audit }\n`);
  assert.match(told, /^agents\.yaml:7: agents\.audit\.remote: .*$/);
});
