import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { stringify } from "yaml";
import { ROOT } from "../../infra/bundle.ts";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { readBundled } from "../../shared/config/bundled.ts";
import { MAX_REMOTES } from "../../shared/config/remotes.ts";
import { agents, complaint, folder, read } from "./support/agents-yaml.ts";

const URL_OF = "https://auditor.example.com/a2a";
const DEFAULTS = { headers: {}, streaming: false, external: false, skills: [], subscribesTo: [] };

/** What is said of a single remote, from its second line on. */
const remote = (lines: string) => `deployment: acme\nremotes:\n  - name: auditor\n    ${lines}`;
const withUrl = (lines: string) => remote(`url: ${URL_OF}\n    ${lines}`);

test("a remote with every field, and one with none that it need not have", () => {
  const deployment = read(`${withUrl(`auth: { scheme: bearer, credentials: secret:auditor-token }
    headers: { a2a-extensions: "https://proto-labs.ai/a2a/ext/cost-v1" }
    streaming: true
    external: true
    skills: [license_scan, { name: sbom, description: Build an SBOM }, { name: Ärger, description: null, hitl: { mode: gated } }]
    hitl: { mode: notification, radius: repo, approvalSec: 2592000 }
    subscribesTo: [releases]`)}
  - { name: plain, url: "http://10.0.0.7:8080/a2a/" }
  - { name: filed, url: "${URL_OF}", auth: { credentials: file:key } }
outbound: { allow: ["http://10.0.0.7:8080", 10.1.0.0/16, fd00::/8, auditor.internal, 10.0.0.9, "::1"] }`);
  assert.deepEqual(deployment.remotes, [
    {
      name: "auditor",
      url: URL_OF,
      auth: { scheme: "bearer", credentials: "secret:auditor-token" },
      headers: { "a2a-extensions": "https://proto-labs.ai/a2a/ext/cost-v1" },
      streaming: true,
      external: true,
      skills: [
        { name: "license_scan" },
        { name: "sbom", description: "Build an SBOM" },
        { name: "Ärger", hitl: { mode: "gated" } },
      ],
      hitl: { mode: "notification", radius: "repo", approvalSec: 2_592_000 },
      subscribesTo: ["releases"],
    },
    { name: "plain", url: "http://10.0.0.7:8080/a2a/", ...DEFAULTS },
    {
      name: "filed",
      url: URL_OF,
      auth: { scheme: "apiKey", credentials: `file:${join(folder, "key")}` },
      ...DEFAULTS,
    },
  ]);
  assert.equal(deployment.outbound?.allow.length, 6);
  assert.deepEqual(readBundled(JSON.parse(JSON.stringify(deployment))), deployment);
});

test("the legacy apiKeyEnv is read as what it means, and reported with its line", () => {
  const text = withUrl("apiKeyEnv: AUDITOR_KEY");
  const { deployment, notes } = readAgentsYaml("agents.yaml", agents, () => text);
  assert.deepEqual(deployment.remotes, [
    { name: "auditor", url: URL_OF, auth: { scheme: "apiKey", credentials: "env:AUDITOR_KEY" }, ...DEFAULTS },
  ]);
  assert.deepEqual(notes, [
    "agents.yaml:5: remotes[0].apiKeyEnv: legacy; write auth: { scheme: apiKey, credentials: env:AUDITOR_KEY }",
  ]);
  assert.deepEqual(readAgentsYaml("agents.yaml", agents, () => withUrl("streaming: true")).notes, []);
});

test("the shipped example of the page is read", () => {
  const page = readFileSync(join(ROOT, "docs", "remotes.md"), "utf8");
  const example = /```yaml\n([\s\S]*?)```/.exec(page)?.[1];
  assert.ok(example);
  const deployment = read(`deployment: acme\n${example}`);
  assert.deepEqual(
    deployment.remotes?.map(({ name }) => name),
    ["auditor", "planner"],
  );
});

const allowing = (of: string) => `deployment: a\noutbound:\n  allow:\n    - ${of}`;
const NOT_ALLOWABLE =
  /^agents\.yaml:4: outbound\.allow\[0\]: expected an origin .* or a range of addresses .*, got a text/;

test("at most so many remotes, skills, headers and allowed places", () => {
  const remotes = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ name: `r${at}`, url: URL_OF }));
  const of = (fields: object, rest: object = {}) =>
    stringify({ deployment: "a", remotes: [{ name: "r", url: URL_OF, ...fields }], ...rest });
  const many = (count: number) => Array.from({ length: count }, (_, at) => `x${at}`);
  const headers = (count: number) => Object.fromEntries(many(count).map((name) => [name, "v"]));

  assert.equal(read(stringify({ deployment: "a", remotes: remotes(MAX_REMOTES) })).remotes?.length, 100);
  assert.match(
    complaint(stringify({ deployment: "a", remotes: remotes(MAX_REMOTES + 1) })),
    /remotes: expected at most 100 entries, got a list of 101$/,
  );
  read(of({ skills: many(256), headers: headers(32), subscribesTo: many(100) }));
  read(of({}, { outbound: { allow: many(100) } }));
  assert.match(complaint(of({ skills: many(257) })), /skills: expected at most 256 entries/);
  assert.match(complaint(of({ headers: headers(33) })), /headers: expected at most 32 headers/);
  assert.match(complaint(of({ subscribesTo: many(101) })), /subscribesTo: expected at most 100 entries/);
  assert.match(complaint(of({}, { outbound: { allow: many(101) } })), /allow: expected at most 100 entries/);
});

test("every range of addresses is taken in one way to write it", () => {
  const ranges = fc.tuple(fc.ipV4(), fc.integer({ min: 1, max: 32 })).map(([address, prefix]) => {
    const value = address.split(".").reduce((all, byte) => all * 256 + Number(byte), 0);
    const size = 2 ** (32 - prefix);
    const start = Math.floor(value / size) * size;
    const text = (of: number) =>
      `${[24, 16, 8, 0].map((at) => Math.floor(of / 2 ** at) % 256).join(".")}/${prefix}`;
    return { network: text(start), other: size > 1 ? text(start + 1) : undefined };
  });
  fc.assert(
    fc.property(ranges, ({ network, other }) => {
      assert.deepEqual(read(allowing(network)).outbound?.allow, [network]);
      if (other !== undefined) assert.match(complaint(allowing(other)), NOT_ALLOWABLE);
    }),
    { numRuns: 30 },
  );
});

test("whatever remotes are written are the remotes that are read, in file and bundle", () => {
  const text = fc.stringMatching(/^[a-zA-Z0-9_-]{1,20}$/);
  const remotes = fc.uniqueArray(
    fc.record(
      {
        name: fc.stringMatching(/^[a-z][a-z0-9_-]{0,30}$/).filter((name) => !/^(exec|support|a-)/.test(name)),
        url: fc.webUrl({ validSchemes: ["https", "http"] }).filter((url) => !url.includes("@")),
        auth: fc.record(
          {
            scheme: fc.constantFrom("apiKey", "bearer", "hmac"),
            credentials: text.map((name) => `secret:x${name}`),
          },
          { noNullPrototype: true },
        ),
        headers: fc.dictionary(
          text.map((name) => `x-y-${name}`),
          text,
          { noNullPrototype: true, maxKeys: 3 },
        ),
        streaming: fc.boolean(),
        external: fc.boolean(),
        skills: fc.uniqueArray(
          fc.record({ name: text, description: text }, { requiredKeys: ["name"], noNullPrototype: true }),
          { selector: ({ name }) => name, maxLength: 4 },
        ),
        subscribesTo: fc.array(text, { maxLength: 3 }),
      },
      { noNullPrototype: true },
    ),
    { selector: ({ name }) => name, maxLength: 4 },
  );
  fc.assert(
    fc.property(remotes, (written) => {
      const allow = written.map(({ url }) => new URL(url).origin);
      const deployment = read(stringify({ deployment: "a", remotes: written, outbound: { allow } }));
      assert.deepEqual(deployment.remotes, written);
      assert.deepEqual(readBundled(JSON.parse(JSON.stringify(deployment))), deployment);
    }),
    { numRuns: 50 },
  );
});

test("a bundle whose remotes are not as they were written is refused", () => {
  const sound = JSON.parse(JSON.stringify(read(withUrl("streaming: true"))));
  const [first] = sound.remotes;
  for (const change of [{ url: "ftp://x" }, { auth: { scheme: "bearer" } }, { extra: 1 }, { skills: ["a"] }])
    assert.throws(
      () => readBundled({ ...sound, remotes: [{ ...first, ...change }] }).remotes,
      /^Error: the deployment's configuration: [\s\S]*remotes\[0\]/,
    );
  assert.throws(
    () => readBundled({ ...sound, outbound: { allow: [1] } }).outbound,
    /at outbound\.allow\[0\]/,
  );
});
