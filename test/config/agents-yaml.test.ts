import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { stringify } from "yaml";
import * as z from "zod";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { readBundled } from "../../shared/config/bundled.ts";
import {
  type AgentPolicy,
  agentPolicy,
  MAX_CONCURRENT,
  MAX_DELEGATION_DEPTH,
  MAX_EVENTS_PER_MIN,
  MAX_MEDIA_BYTES,
  MAX_QUEUED,
  MAX_QUOTA,
  MAX_STATUS_EVERY_SEC,
  MAX_TIMEOUT_SEC,
} from "../../shared/config/policy.ts";
import { agent, agents, complaint, folder, policyOf, read } from "./support/agents-yaml.ts";

const DEFAULTS: AgentPolicy = {
  enabled: true,
  acceptFromRuntimes: [],
  acceptSkills: [],
  resultVisibility: "any",
  timeoutSec: { default: 300, max: 86_400 },
  maxDelegationDepth: 1,
  maxConcurrent: 10,
  maxQueued: 1_000,
  quotas: { open: 0, openPerPeer: 0 },
  statusEverySec: 5,
  eventsPerMin: 0,
  discoverable: true,
  exposeSkills: [],
  delegateTargets: [],
  delegateMedia: { allowedMimeTypes: [], maxBytes: 67_108_864, allowObjectRefs: true },
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
choosing:
  default: support
  cooldownSec: { license_scan: 300 }
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
  assert.deepEqual(deployment.choosing, { default: "support", cooldownSec: { license_scan: 300 } });
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
  assert.match(
    complaint("agents: {}"),
    /^agents\.yaml:1: deployment: expected 1 to 32 of A-Z, a-z, 0-9, _ and -, got nothing$/,
  );
  assert.match(
    complaint(""),
    /^agents\.yaml.*: deployment: expected 1 to 32 of A-Z, a-z, 0-9, _ and -, got nothing$/,
  );
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
test("an agent whose settings are open takes what it is given", () => {
  const open = agent("open", z.looseObject({}));
  const [hosted] = read("deployment: a\nagents: { open: { anything: { at: [all] } } }", [open]).agents;
  assert.deepEqual(hosted?.settings, { anything: { at: ["all"] } });
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
      enabled: fc.boolean(),
      resultVisibility: fc.constantFrom("any", "proxy", "transparent"),
      quotas: fc.record(
        {
          open: fc.integer({ min: 0, max: MAX_QUOTA }),
          openPerPeer: fc.integer({ min: 0, max: MAX_QUOTA }),
        },
        PLAIN,
      ),
      eventsPerMin: fc.integer({ min: 0, max: MAX_EVENTS_PER_MIN }),
      exposeSkills: fc.array(fc.record({ id: fc.constantFrom("task", "other") }, PLAIN), { maxLength: 2 }),
      delegateMedia: fc.record(
        {
          allowedMimeTypes: fc.subarray(["text/plain", "image/*"]),
          maxBytes: fc.integer({ min: 0, max: MAX_MEDIA_BYTES }),
          allowObjectRefs: fc.boolean(),
        },
        PLAIN,
      ),
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
