import assert from "node:assert/strict";
import { test } from "node:test";
import * as z from "zod";
import { agent, complaint, policyOf, read } from "./support/agents-yaml.ts";

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
    /^agents\.yaml:3: agent: unknown field; expected one of deployment, nats, defaults, agents, cloud, command, discovery, remotes, outbound, choosing$/,
  ],
  [
    "an unknown field of nats",
    "deployment: a\nnats:\n  server: x",
    /^agents\.yaml:3: nats\.server: unknown field; expected one of servers, credentials, tls$/,
  ],
  [
    "an unknown default",
    "deployment: a\ndefaults:\n  maxQueue: 1",
    /^agents\.yaml:3: defaults\.maxQueue: unknown field; expected one of enabled, .*, maxQueued, .*$/,
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
    "a misspelt remote",
    "deployment: a\nagents:\n  aud: { remot: auditor }",
    /^agents\.yaml:3: agents\.aud\.remot: unknown field; expected remote$/,
  ],
  [
    "a target of the command that is a name",
    "deployment: a\ncommand: { delegateTargets: [eve] }",
    /^agents\.yaml:2: command\.delegateTargets\[0\]: expected a map such as \{ runtimeAgentId: bob-lobby, skillId: task \}, got a text of 3 characters$/,
  ],
  [
    "a misspelt field of an agent",
    "deployment: a\nagents:\n  support:\n    maxQueue: 3",
    /^agents\.yaml:4: agents\.support\.maxQueue: unknown field; expected one of displayName, function, remote, enabled/,
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
    "an ARN of another service as credentials",
    "deployment: a\nnats:\n  credentials: secret:arn:aws:s3:::manuals",
    /^agents\.yaml:3: nats\.credentials: expected none, file:PATH or secret:NAME, got a text of 27 characters$/,
  ],
  [
    "an nkey's seed in place of the secret's name",
    `deployment: a\nnats:\n  credentials: secret:SU${"A".repeat(56)}`,
    /^agents\.yaml:3: nats\.credentials: expected none, file:PATH or secret:NAME, got a text of 65 characters$/,
  ],
  [
    "a remote agent's password",
    "deployment: a\nremotes:\n  - name: b\n    url: https://u:hunter2@a.example",
    /^agents\.yaml:4: remotes\[0\]\.url: expected a URL without user and password: a secret goes into auth\.credentials, got a text of 27 characters$/,
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
    /^agents\.yaml:3: remotes\[0\]\.name: expected a name: 1 to 64 of .*, got nothing$/,
  ],
  ["a key twice", "deployment: a\ndeployment: b", /^agents\.yaml:2: Map keys must be unique$/],
  ["no YAML", "deployment: [a", /^agents\.yaml:1: /],
  ["aliases without bound", aliasBomb(), /^agents\.yaml: Excessive alias count/],
  ["an alias of nothing", "deployment: *nothing", /^agents\.yaml.*: .*nothing/],
  [
    "an alias inside of what it stands for",
    "deployment: a\nagents:\n  exec:\n    commands: &c\n      date: *c",
    /^agents\.yaml:5: agents\.exec\.commands\.date: expected no alias inside of what it stands for$/,
  ],
  [
    "an agent called like an object's prototype",
    "deployment: a\nagents:\n  __proto__: { maxConcurrent: 3 }",
    /^agents\.yaml:3: agents\.__proto__: unknown field$/,
  ],
  [
    "a skill called like an object's prototype",
    "deployment: a\nchoosing:\n  cooldownSec: { a: 5, __proto__: 4 }",
    /^agents\.yaml:3: choosing\.cooldownSec\.__proto__: unknown field$/,
  ],
  [
    "one of a list with a field called like an object's prototype",
    "deployment: a\nremotes:\n  - { name: a }\n  - { name: b, __proto__: 4 }",
    /^agents\.yaml:4: remotes\[1\]\.__proto__: unknown field$/,
  ],
  [
    "a tag that nobody resolves",
    "deployment: a\nnats:\n  credentials: !env file:x",
    /^agents\.yaml:3: Unresolved tag: !env$/,
  ],
  [
    "an authority that is a folder",
    "deployment: a\nnats:\n  tls:\n    ca: file:.",
    /^agents\.yaml:4: nats\.tls\.ca: .*: expected a file that can be read: EISDIR/,
  ],
  [
    "a key that would rewrite the screen",
    'deployment: a\n"\\e[2J\\nx": 1',
    /^agents\.yaml:2: "\\u001b\[2J\\nx": unknown field; [^\n]*$/,
  ],
  ["a key without end", `deployment: a\n${"k".repeat(65)}: 1`, /^agents\.yaml:2: k{64}…: unknown field/],
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
    "agents.yaml:2: nats.server: unknown field; expected one of servers, credentials, tls",
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

test("two agents whose ids become one on NATS", () =>
  assert.equal(
    complaint("deployment: a\nagents:\n  b--c: {}", [agent("b--c"), agent("b-c")]),
    "agents.yaml:2: agents.b-c: expected agents whose ids on NATS differ, got a-b-c for b--c and b-c: rename one",
  ));

test("an agent that is on NATS who the command is", () =>
  assert.equal(
    complaint("deployment: a\nagents:\n  cli: {}", [agent("cli")]),
    "agents.yaml:3: agents.cli: expected another id: on NATS the command sluice is a-cli itself",
  ));

test("what is wrong in choosing is told by its line", () => {
  for (const [lines, expected] of [
    ["defualt: exec", "defualt: unknown field; expected one of default, cooldownSec"],
    ["default: exce", "default: expected the id of one of the agents: exec, support"],
    ["default: 7", "default: expected a text, got 7"],
    ["cooldownSec: { scan: 86401 }", "cooldownSec.scan: expected at most 86400, got 86401"],
    ["cooldownSec: { scan: -1 }", "cooldownSec.scan: expected at least 0, got -1"],
    ["cooldownSec: { scan: 1.5 }", "cooldownSec.scan: expected a whole number, got 1.5"],
  ] as const)
    assert.equal(complaint(`deployment: a\nchoosing:\n  ${lines}`), `agents.yaml:3: choosing.${expected}`);
  assert.match(
    complaint('deployment: a\nchoosing:\n  cooldownSec: { "a b": 1 }'),
    /^agents\.yaml:3: choosing/,
  );
  const skills = Array.from({ length: 201 }, (_, n) => `s${n}: 1`);
  const many = (count: number) =>
    `deployment: a\nchoosing:\n  cooldownSec: { ${skills.slice(0, count).join(", ")} }`;
  assert.match(complaint(many(201)), /cooldownSec: expected at most 200 skills/);
  assert.equal(Object.keys(read(many(200)).choosing?.cooldownSec ?? {}).length, 200);
});

test("the default takes what nobody else does, so it must have the skill for that", () => {
  const { skills, ...rest } = agent("narrow");
  const narrow = { ...rest, skills: { other: skills.other ?? assert.fail() } };
  assert.equal(
    complaint("deployment: a\nchoosing:\n  default: narrow", [narrow]),
    "agents.yaml:3: choosing.default: expected an agent with the skill task, which narrow has not",
  );
});

test("a setting that may have several forms", () => {
  const entry = z.union([z.array(z.string().min(1)).min(1), z.strictObject({ argv: z.array(z.string()) })]);
  const hosted = [agent("run", z.strictObject({ commands: z.record(z.string(), entry) }))];
  const of = (value: string) =>
    complaint(`deployment: a\nagents: { run: { commands: { disk: ${value} } } }`, hosted).replace(
      /^.*commands\.disk/,
      "",
    );
  // Where its kind shows which one is meant, what that one lacks is told.
  assert.equal(of("[]"), ": expected at least 1 entries, got a list of 0");
  assert.equal(of("[df, 7]"), "[1]: expected a text, got 7");
  assert.equal(of("{ argv: [df], arg: true }"), ".arg: unknown field; expected one of argv");
  assert.equal(of("df -h"), ": expected a list or a map, got a text of 5 characters");
});
