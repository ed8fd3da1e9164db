import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { stringify } from "yaml";
import * as z from "zod";
import { type Agent, defineAgent, skill } from "../../shared/agents/index.ts";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { readBundled } from "../../shared/config/bundled.ts";
import { ConfigError } from "../../shared/config/config-error.ts";
import {
  type AgentPolicy,
  agentPolicy,
  MAX_CONCURRENT,
  MAX_DELEGATION_DEPTH,
  MAX_QUEUED,
  MAX_STATUS_EVERY_SEC,
  MAX_TIMEOUT_SEC,
} from "../../shared/config/deployment.ts";

const folder = mkdtempSync(join(tmpdir(), "sluice-config-"));
after(() => rmSync(folder, { recursive: true }));

function agent(id: string, settings: z.ZodType = z.object({})): Agent {
  const task = skill({
    name: "Task",
    description: "Does it",
    tags: ["a"],
    input: z.string(),
    run: () => "done",
  });
  return defineAgent({ id, description: `The agent ${id}`, settings, skills: { task, other: task } });
}
const support = agent("support");
const exec = agent(
  "exec",
  z.strictObject({ commands: z.record(z.string(), z.array(z.string())).default({}) }),
);
const agents = [exec, support];

function read(text: string, hosted: readonly Agent[] = agents) {
  const path = join(folder, "agents.yaml");
  writeFileSync(path, text);
  return readAgentsYaml(path, hosted).deployment;
}

/** What is said of a file, without the folder's name. */
function complaint(text: string, hosted: readonly Agent[] = agents): string {
  try {
    read(text, hosted);
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.message.replaceAll(`${folder}/`, "");
  }
  return assert.fail("expected an error");
}

function policyOf(text: string, id = "support"): AgentPolicy {
  const found = read(text).agents.find((of) => of.id === id);
  assert.ok(found);
  return found.policy;
}

const DEFAULTS: AgentPolicy = {
  acceptFromRuntimes: [],
  acceptSkills: [],
  timeoutSec: { default: 300, max: 86_400 },
  maxDelegationDepth: 1,
  maxConcurrent: 10,
  maxQueued: 1_000,
  statusEverySec: 5,
  discoverable: true,
  delegateTargets: [],
  allowMemoryWrite: false,
};

const EXAMPLE = `
deployment: acme
nats:
  servers: [nats://127.0.0.1:4222]
  credentials: none
  tls: { ca: file:ca.pem }
defaults:
  acceptFromRuntimes: []
  timeoutSec: { default: 300, max: 86400 }
agents:
  support:
    acceptFromRuntimes: [adam-lobby-1a2b3c4d]
    acceptSkills: [task]
    displayName: Support
  exec:
    acceptFromRuntimes: ["*"]
    maxConcurrent: 2
    commands: { disk: [df, -h], uptime: [uptime] }
discovery:
  discordGuildId: "101234567890123456"
remotes:
  - name: auditor
    url: https://auditor.example.com/a2a
    auth: { scheme: bearer, credentials: secret:auditor-token }
    skills: [license_scan, { name: sbom, description: Build an SBOM }]
`;

test("a file with every section", () => {
  const pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  writeFileSync(join(folder, "ca.pem"), pem);
  const deployment = read(EXAMPLE);
  assert.deepEqual(deployment.nats, { servers: ["nats://127.0.0.1:4222"], credentials: "none", ca: pem });
  assert.deepEqual(
    deployment.agents.map(({ id, runtime, channelRef, displayName }) => ({
      id,
      runtime,
      channelRef,
      displayName,
    })),
    [
      { id: "exec", runtime: "acme-exec", channelRef: "exec", displayName: "exec" },
      { id: "support", runtime: "acme-support", channelRef: "support", displayName: "Support" },
    ],
  );
  const [first, second] = deployment.agents;
  assert.deepEqual(first?.settings, { commands: { disk: ["df", "-h"], uptime: ["uptime"] } });
  assert.deepEqual(first?.policy, { ...DEFAULTS, acceptFromRuntimes: ["*"], maxConcurrent: 2 });
  assert.deepEqual(second?.skills, [
    { slug: "task", name: "Task", description: "Does it", tags: ["a"] },
    { slug: "other", name: "Task", description: "Does it", tags: ["a"] },
  ]);
  assert.equal(deployment.discovery?.discordGuildId, "101234567890123456");
  assert.equal(deployment.remotes?.[0]?.name, "auditor");
  // What goes into the bundles comes out of them again.
  assert.deepEqual(readBundled(JSON.parse(JSON.stringify(deployment))), deployment);
});

test("every field but deployment has a default", () => {
  const deployment = read("deployment: acme");
  assert.deepEqual(deployment.nats, { servers: ["nats://127.0.0.1:4222"], credentials: "none" });
  assert.deepEqual(
    deployment.agents.map(({ policy }) => policy),
    [DEFAULTS, DEFAULTS],
  );
  assert.match(complaint("agents: {}"), /^agents\.yaml:1: deployment: expected a text, got nothing$/);
  assert.match(complaint(""), /^agents\.yaml.*: deployment: expected a text, got nothing$/);
});

test("without a file the agents work for the local command alone", () => {
  const { deployment } = readAgentsYaml(join(folder, "none.yaml"), agents);
  assert.equal(deployment.deployment, "local");
  assert.deepEqual(
    deployment.agents.map(({ runtime }) => runtime),
    ["local-exec", "local-support"],
  );
  for (const { policy } of deployment.agents)
    assert.deepEqual(policy, { ...DEFAULTS, acceptFromRuntimes: ["local-cli"] });
});

test("an agent's own value wins over the defaults, null means the default", () => {
  const text = `
deployment: acme
defaults: { maxConcurrent: 3, acceptFromRuntimes: [peer-a], timeoutSec: { max: 600 }, statusEverySec: null }
agents:
  support: { maxConcurrent: 4, acceptFromRuntimes: [], timeoutSec: { default: 60 } }
  exec: { maxConcurrent: null, maxQueued: null }
`;
  assert.deepEqual(policyOf(text), {
    ...DEFAULTS,
    maxConcurrent: 4,
    acceptFromRuntimes: [],
    timeoutSec: { default: 60, max: 600 },
  });
  assert.deepEqual(policyOf(text, "exec"), {
    ...DEFAULTS,
    maxConcurrent: 3,
    acceptFromRuntimes: ["peer-a"],
    timeoutSec: { default: 300, max: 600 },
  });
  assert.deepEqual(read("deployment: acme\nnats:\nagents:\n  support:\ndefaults:\n").agents.length, 2);
  assert.deepEqual(policyOf("deployment: a\ndefaults: { timeoutSec: { max: 20 } }").timeoutSec, {
    default: 20,
    max: 20,
  });
});

test("whom an agent may delegate to", () => {
  const text = (targets: string) => `deployment: a\nagents:\n  support:\n    delegateTargets: ${targets}`;
  assert.deepEqual(
    policyOf(text("[{ runtimeAgentId: peer-a, skillId: 'ref/ta*' }, { runtimeAgentId: '*' }]"))
      .delegateTargets,
    [
      { runtimeAgentId: "peer-a", skillId: "ref/ta*" },
      { runtimeAgentId: "*", skillId: "task" },
    ],
  );
  assert.match(
    complaint(text("[{ runtimeAgentId: peer a }]")),
    /^agents\.yaml:4: agents\.support\.delegateTargets\[0\]\.runtimeAgentId: expected a runtime id \(.*\) or \*, got a text of 6 characters$/,
  );
  assert.match(
    complaint(text("[{ runtimeAgentId: p, skillId: 'a*b' }]")),
    /skillId: expected a slug or ref\/slug/,
  );
});

/** Ten levels of ten aliases each. */
function aliasBomb(): string {
  const levels = Array.from({ length: 10 }, (_, level) => {
    const of = level === 0 ? "x" : `*a${level - 1}`;
    return `a${level}: &a${level} [${Array(10).fill(of).join(", ")}]`;
  });
  return `deployment: a\n${levels.join("\n")}`;
}

const WRONG: readonly [name: string, text: string, complaint: RegExp][] = [
  [
    "an unknown section",
    "deployment: a\n\nagent: {}",
    /^agents\.yaml:3: agent: unknown field; expected one of deployment, nats, defaults, agents, cloud, discovery, remotes$/,
  ],
  [
    "an unknown field of nats",
    "deployment: a\nnats:\n  server: x",
    /^agents\.yaml:3: nats\.server: unknown field$/,
  ],
  [
    "an unknown default",
    "deployment: a\ndefaults:\n  maxQueue: 1",
    /^agents\.yaml:3: defaults\.maxQueue: unknown field$/,
  ],
  [
    "a default of the wrong kind",
    "deployment: a\ndefaults:\n  maxQueued: many",
    /^agents\.yaml:3: defaults\.maxQueued: expected a number, got a text of 4 characters$/,
  ],
  [
    "a fraction",
    "deployment: a\ndefaults:\n  maxQueued: 1.5",
    /^agents\.yaml:3: defaults\.maxQueued: expected a whole number, got 1\.5$/,
  ],
  [
    "an agent without a file",
    "deployment: a\nagents:\n  suport: {}",
    /^agents\.yaml:3: agents\.suport: expected an agent that has a file: exec, support$/,
  ],
  [
    "a misspelt field of an agent",
    "deployment: a\nagents:\n  support:\n    maxQueue: 3",
    /^agents\.yaml:4: agents\.support\.maxQueue: unknown field; expected one of displayName, function, acceptFromRuntimes/,
  ],
  [
    "a misspelt setting",
    "deployment: a\nagents:\n  exec:\n    comands: {}",
    /^agents\.yaml:4: agents\.exec\.comands: unknown field; .*, commands$/,
  ],
  [
    "a setting of the wrong kind",
    "deployment: a\nagents:\n  exec:\n    commands:\n      disk: df",
    /^agents\.yaml:5: agents\.exec\.commands\.disk: expected a list, got a text of 2 characters$/,
  ],
  [
    "a skill that the agent lacks",
    "deployment: a\nagents:\n  support:\n    acceptSkills:\n      - task\n      - tasks",
    /^agents\.yaml:6: agents\.support\.acceptSkills\[1\]: expected a skill of the agent: task, other$/,
  ],
  [
    "a peer's id with a space",
    "deployment: a\nagents:\n  support: { acceptFromRuntimes: [a b] }",
    /^agents\.yaml:3: agents\.support\.acceptFromRuntimes\[0\]: expected a runtime id \(.*\) or \*, got a text of 3 characters$/,
  ],
  [
    "a default time over the ceiling",
    "deployment: a\nagents:\n  support:\n    timeoutSec:\n      default: 20\n      max: 10",
    /^agents\.yaml:5: agents\.support\.timeoutSec\.default: expected no more than max, got 20$/,
  ],
  [
    "a name that is too long",
    `deployment: a\nagents:\n  support: { displayName: ${"x".repeat(129)} }`,
    /displayName: expected at most 128 characters, got a text of 129 characters$/,
  ],
  [
    "a deployment with a dot",
    "deployment: a.b",
    /^agents\.yaml:1: deployment: expected 1 to 32 of A-Z, a-z, 0-9, _ and -, got a text of 3 characters$/,
  ],
  [
    "an id that peers' sanitizers blank",
    "deployment: token",
    /^agents\.yaml:1: agents\.exec: expected a deployment and an agent whose names make an id that peers accept, got token-exec/,
  ],
  [
    "credentials in place of their file",
    "deployment: a\nnats:\n  credentials: hunter2",
    /^agents\.yaml:3: nats\.credentials: expected none, file:PATH or secret:NAME, got a text of 7 characters$/,
  ],
  [
    "a server that is no NATS URL",
    "deployment: a\nnats: { servers: ['http://x'] }",
    /^agents\.yaml:2: nats\.servers\[0\]: expected a URL nats:/,
  ],
  [
    "a server with a password",
    "deployment: a\nnats:\n  servers:\n    - nats://alice:hunter2@a.example:4222",
    /^agents\.yaml:4: nats\.servers\[0\]: expected a URL without user and password: [^@]*credentials \(file:PATH[^@]*, got a text of 35 characters$/,
  ],
  [
    "a server's port that is none",
    "deployment: a\nnats: { servers: ['nats://a:65536'] }",
    /^agents\.yaml:2: nats\.servers\[0\]: expected a URL .* with a port of at most 65535, got a text/,
  ],
  [
    "no server",
    "deployment: a\nnats: { servers: [] }",
    /^agents\.yaml:2: nats\.servers: expected at least 1 entries, got a list of 0$/,
  ],
  [
    "an authority that is not there",
    "deployment: a\nnats:\n  tls:\n    ca: file:no.pem",
    /^agents\.yaml:4: nats\.tls\.ca: expected a file, no\.pem is none$/,
  ],
  [
    "an authority that is no certificate",
    "deployment: a\nnats:\n  tls:\n    ca: file:agents.yaml",
    /^agents\.yaml:4: nats\.tls\.ca: expected certificates as PEM text in agents\.yaml$/,
  ],
  [
    "a guild written as a number",
    "deployment: a\ndiscovery:\n  discordGuildId: 101234567890123456",
    /^agents\.yaml:3: discovery\.discordGuildId: expected a text/,
  ],
  [
    "a remote without a name",
    "deployment: a\nremotes:\n  - url: https://a.example",
    /^agents\.yaml:3: remotes\[0\]\.name: expected a text, got nothing$/,
  ],
  ["a key twice", "deployment: a\ndeployment: b", /^agents\.yaml:2: Map keys must be unique$/],
  ["no YAML", "deployment: [a", /^agents\.yaml:1: /],
  ["aliases without bound", aliasBomb(), /^agents\.yaml: Excessive alias count/],
  ["an alias of nothing", "deployment: *nothing", /^agents\.yaml.*: .*nothing/],
  ["a list in place of a map", "- a", /^agents\.yaml:1: expected a map, got a list of 1$/],
];
for (const [name, text, expected] of WRONG)
  test(`error: ${name}`, () => assert.match(complaint(text), expected));

test("every finding is told at once, one a line", () => {
  const told = complaint(
    "deployment: a\nagents:\n  support: { maxQueued: 0 }\n  exec: { maxQueued: 0 }",
  ).split("\n");
  assert.deepEqual(told, [
    "agents.yaml:4: agents.exec.maxQueued: expected at least 1, got 0",
    "agents.yaml:3: agents.support.maxQueued: expected at least 1, got 0",
  ]);
  const everywhere = `deployment: a
nats: { server: x }
defaults: { maxQueued: -1 }
agents:
  suport: {}
  support: { maxConcurrent: -1 }
`;
  assert.deepEqual(complaint(everywhere).split("\n"), [
    "agents.yaml:2: nats.server: unknown field",
    "agents.yaml:3: defaults.maxQueued: expected at least 1, got -1",
    "agents.yaml:5: agents.suport: expected an agent that has a file: exec, support",
    "agents.yaml:6: agents.support.maxConcurrent: expected at least 0, got -1",
  ]);
});

test("a field that an alias stands for is found where it was written", () => {
  const text = "deployment: a\ndefaults: &d\n  maxQueued: 7\nagents:\n  support: *d";
  assert.equal(policyOf(text).maxQueued, 7);
  assert.match(complaint(text.replace("7", "0")), /^agents\.yaml:3: /);
});

test("names that every object has are fields like any other", () => {
  for (const field of ["constructor", "toString"])
    assert.match(
      complaint(`deployment: a\nagents:\n  support:\n    ${field}: 3`),
      new RegExp(`^agents\\.yaml:4: agents\\.support\\.${field}: unknown field`),
    );
});

test("an agent whose settings are open takes what it is given", () => {
  const open = agent("open", z.looseObject({}));
  const [hosted] = read("deployment: a\nagents: { open: { anything: { at: [all] } } }", [open]).agents;
  assert.deepEqual(hosted?.settings, { anything: { at: ["all"] } });
});

const BOUNDS: readonly [field: string, least: number, most: number][] = [
  ["maxDelegationDepth", 0, MAX_DELEGATION_DEPTH],
  ["maxConcurrent", 0, MAX_CONCURRENT],
  ["maxQueued", 1, MAX_QUEUED],
  ["statusEverySec", 0, MAX_STATUS_EVERY_SEC],
];
for (const [field, least, most] of BOUNDS)
  test(`bounds of ${field}`, () => {
    const text = (value: number) => `deployment: a\ndefaults: { ${field}: ${value} }`;
    for (const value of [least, most]) assert.doesNotThrow(() => read(text(value)));
    assert.match(
      complaint(text(least - 1)),
      new RegExp(`${field}: expected at least ${least}, got ${least - 1}$`),
    );
    assert.match(
      complaint(text(most + 1)),
      new RegExp(`${field}: expected at most ${most}, got ${most + 1}$`),
    );
  });

test("bounds of timeoutSec and of names", () => {
  const time = (of: string) => `deployment: a\ndefaults: { timeoutSec: { ${of} } }`;
  assert.deepEqual(policyOf(time(`default: 1, max: ${MAX_TIMEOUT_SEC}`)).timeoutSec.max, MAX_TIMEOUT_SEC);
  assert.match(complaint(time("default: 0")), /expected at least 1, got 0$/);
  assert.match(complaint(time(`max: ${MAX_TIMEOUT_SEC + 1}`)), /expected at most 31622400/);
  assert.doesNotThrow(() => read(`deployment: ${"d".repeat(32)}`));
  assert.match(complaint(`deployment: ${"d".repeat(33)}`), /deployment: expected 1 to 32/);
  assert.doesNotThrow(() => read(`deployment: a\nagents: { support: { displayName: ${"x".repeat(128)} } }`));
});

const PLAIN = { noNullPrototype: true };

test("whatever policy is written is the policy that is read", () => {
  const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
  const max = fc.integer({ min: 1, max: MAX_TIMEOUT_SEC });
  const policies = fc.record(
    {
      acceptFromRuntimes: fc.array(fc.oneof(id, fc.constant("*")), { maxLength: 4 }),
      acceptSkills: fc.subarray(["task", "other"]),
      timeoutSec: max.chain((most) =>
        fc.record({ default: fc.integer({ min: 1, max: most }), max: fc.constant(most) }, PLAIN),
      ),
      maxDelegationDepth: fc.integer({ min: 0, max: MAX_DELEGATION_DEPTH }),
      maxConcurrent: fc.integer({ min: 0, max: MAX_CONCURRENT }),
      maxQueued: fc.integer({ min: 1, max: MAX_QUEUED }),
      statusEverySec: fc.double({ min: 0, max: MAX_STATUS_EVERY_SEC, noNaN: true }),
      discoverable: fc.boolean(),
      delegateTargets: fc.array(
        fc.record({ runtimeAgentId: id, skillId: fc.constantFrom("a", "a/b", "a/b*", "*") }, PLAIN),
        {
          maxLength: 3,
        },
      ),
      allowMemoryWrite: fc.boolean(),
    },
    PLAIN,
  );
  fc.assert(
    fc.property(policies, (policy) => {
      assert.deepEqual(policyOf(stringify({ deployment: "a", agents: { support: policy } })), policy);
      assert.deepEqual(agentPolicy.parse(policy), policy);
    }),
    { numRuns: 50 },
  );
});
