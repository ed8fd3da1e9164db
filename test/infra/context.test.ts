import assert from "node:assert/strict";
import { test } from "node:test";
import { readContext } from "../../infra/context.ts";
import { ConfigError } from "../../shared/config/config-error.ts";

test("what is not given is the file's", () => assert.deepEqual(readContext({ other: 1 }), {}));

test("what is given is taken", () => {
  const values = { stage: "dev", bridge: "lambda", natsCredentials: "secret:acme/nats", config: "a.yaml" };
  const { stage, bridge, natsCredentials, config, natsServers } = readContext({
    ...values,
    natsServers: "a:1,tls://b:2",
  });
  assert.deepEqual({ stage, bridge, natsCredentials, config }, values);
  assert.equal(natsServers, "nats://a:1,tls://b:2");
});

test("keys of others are passed over, but not what is nearly one of ours", () => {
  readContext({
    "aws:cdk:enable-path-metadata": true,
    "@aws-cdk/core:bootstrapQualifier": "x",
    account: "1",
  });
  for (const [typed, meant] of [
    ["Stage", "stage"],
    ["nats-servers", "natsServers"],
    ["agent", "agents"],
  ] as const)
    assert.throws(
      () => readContext({ [typed]: "hunter2" }),
      new ConfigError(`context ${typed}: unknown; expected ${meant}`),
    );
});

const WRONG: readonly [name: string, values: Readonly<Record<string, unknown>>, told: RegExp][] = [
  [
    "a stage in capitals",
    { stage: "Main" },
    /^context stage: expected 1 to 16 of .*, got a text of 4 characters$/,
  ],
  [
    "a stage out of a variable that is not set",
    { stage: "" },
    /^context stage: expected a text that is not empty, got a text of 0 characters$/,
  ],
  [
    "servers out of a variable that is not set",
    { natsServers: "" },
    /^context natsServers: expected a text that is not empty/,
  ],
  [
    "a bridge that there is not",
    { bridge: "fargate" },
    /^context bridge: expected lambda, got a text of 7 characters$/,
  ],
  [
    "credentials in place of their name",
    { natsCredentials: "hunter2" },
    /^context natsCredentials: expected none, file:PATH or secret:NAME, got a text of 7 characters$/,
  ],
  [
    "servers with a password",
    { natsServers: "nats://u:hunter2@a:1" },
    /^context natsServers: expected a URL without user and password/,
  ],
  ["what is no text", { config: ["a"] }, /^context config: expected a text, got a list of 1$/],
  ["several", { stage: "1", bridge: "x" }, /^context stage: [^\n]*\ncontext bridge: [^\n]*$/],
];
for (const [name, values, told] of WRONG)
  test(`error: ${name}`, () =>
    assert.throws(
      () => readContext(values),
      (error) => {
        assert.ok(error instanceof ConfigError);
        assert.match(error.message, told);
        assert.doesNotMatch(error.message, /hunter2/);
        return true;
      },
    ));
