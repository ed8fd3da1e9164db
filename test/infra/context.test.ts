import assert from "node:assert/strict";
import { test } from "node:test";
import { CONTEXT, checkKeys, readContext } from "../../infra/context.ts";
import { ConfigError } from "../../shared/config/config-error.ts";

const read = (values: Readonly<Record<string, unknown>>) => readContext((key) => values[key]);

test("what is not given is the file's", () =>
  assert.deepEqual(read({ other: 1 }), {
    agents: undefined,
    config: undefined,
    stage: undefined,
    bridge: undefined,
    natsServers: undefined,
    natsCredentials: undefined,
  }));

test("what is given is taken", () => {
  const values = { stage: "dev", bridge: "lambda", natsCredentials: "secret:acme/nats", config: "a.yaml" };
  const { stage, bridge, natsCredentials, config, natsServers } = read({
    ...values,
    natsServers: "a:1,tls://b:2",
  });
  assert.deepEqual({ stage, bridge, natsCredentials, config }, values);
  assert.equal(natsServers, "nats://a:1,tls://b:2");
});

test("a mistyped key is an error that names the one that was meant; another is told", () => {
  assert.throws(
    () => checkKeys(["stage", "stag", "natsServer", "other"]),
    new ConfigError(
      'context "stag": there is no such key, did you mean stage?\ncontext "natsServer": there is no such key, did you mean natsServers?',
    ),
  );
  const [told, ...more] = checkKeys(["other", ...Object.values(CONTEXT)]);
  assert.match(
    told ?? "",
    /^context "other": there is no such key, it is passed over; known are agents, config,/,
  );
  assert.deepEqual(more, []);
});

test("what CDK and its libraries have in the context is no matter of ours", () =>
  assert.deepEqual(
    checkKeys([
      "@aws-cdk/core:checkSecretUsage",
      "aws:cdk:enable-path-metadata",
      "availability-zones:account=1:region=eu-central-1",
      "cdk-nag/x",
      "acknowledged-issue-numbers",
    ]),
    [],
  ));

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
      () => read(values),
      (error) => {
        assert.ok(error instanceof ConfigError);
        assert.match(error.message, told);
        assert.doesNotMatch(error.message, /hunter2/);
        return true;
      },
    ));
