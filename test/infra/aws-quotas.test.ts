import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Stack } from "aws-cdk-lib";
import { PolicyDocument, PolicyStatement } from "aws-cdk-lib/aws-iam";
import { keepWithinQuotas } from "../../infra/aws-quotas.ts";
import { MAX_OWN_FUNCTIONS } from "../../shared/config/cloud.ts";
import { parseDeployment } from "../../shared/config/deployment.ts";
import { deploymentOf, stackWith } from "./support/stack.ts";

const ARN = "arn:aws:s3:::";
/** A policy as long as is said. */
function policyOf(length: number): PolicyDocument {
  const of = (name: string) =>
    new PolicyDocument({ statements: [new PolicyStatement({ actions: ["s3:A"], resources: [ARN + name] })] });
  const usual = JSON.stringify(new Stack().resolve(of(""))).length;
  return of("x".repeat(length - usual));
}

describe("what IAM and Lambda would refuse is an error of the synthesis", () => {
  const check = (policies: readonly PolicyDocument[], value: number) => () =>
    keepWithinQuotas(new Stack(), {
      field: "agents.a.function",
      policies,
      environment: { LONG: "x".repeat(value - '{"LONG":"","B":"b"}'.length), B: "b" },
    });

  test("a role's policies may have 10,240 characters together", () => {
    check([policyOf(10_240)], 100)();
    check([policyOf(5_120), policyOf(5_120)], 100)();
    for (const policies of [[policyOf(10_241)], [policyOf(5_120), policyOf(5_121)]])
      assert.throws(
        check(policies, 100),
        /^ConfigError: agents\.a\.function: expected .* at most 10240 characters, got about 10241$/,
      );
  });

  test("a function's variables may have 4,096 bytes together", () => {
    check([], 4_096)();
    assert.throws(
      check([], 4_097),
      /^ConfigError: agents\.a\.function: expected .* at most 4096 bytes .*, got about 4097, most of them in LONG$/,
    );
  });
});

test("an agent's function may be granted less than what its fields take one by one", () => {
  const permissions = Array.from({ length: 20 }, (_, i) => ({
    actions: ["s3:GetObject"],
    resources: Array.from({ length: 50 }, (_, j) => `arn:aws:s3:::manuals-${i}-${j}/*`),
  }));
  const grants = (count: number) => ({
    functions: { billing: { permissions: permissions.slice(0, count) } },
  });
  stackWith(grants(3));
  assert.throws(
    () => stackWith(grants(20)),
    /^ConfigError: agents\.billing\.function: .* of the role work-billing /,
  );
});

test("of remote agents as many have a secret as the role of cards may read", () => {
  const remotes = (name: string) =>
    Array.from({ length: 100 }, (_, i) => ({
      name: `r${i}`,
      url: "https://a.example/a2a",
      auth: { credentials: `secret:${name}${i}` },
    }));
  const withRemotes = (name: string) => ({
    deployment: parseDeployment({ ...deploymentOf("support"), remotes: remotes(name) }),
  });
  stackWith(withRemotes("acme/"));
  assert.throws(
    () => stackWith(withRemotes("acme/remotes/of/others/")),
    /^ConfigError: remotes: .* role cards /,
  );
});

test("as many functions of agents' own as there may be are within the quotas, whatever they are called", () => {
  const ids = Array.from({ length: MAX_OWN_FUNCTIONS }, (_, i) => `${"a".repeat(46)}${10 + i}`);
  const deployment = { ...deploymentOf(...ids), deployment: "d".repeat(32) };
  const agents = deployment.agents.map((of) => ({
    ...of,
    runtime: `${"d".repeat(32)}-${of.id}`.slice(0, 64),
  }));
  stackWith({
    deployment: { ...deployment, agents },
    cloud: { stage: "s".repeat(16), network: { vpcId: "new" } },
    functions: Object.fromEntries(ids.map((id) => [id, {}])),
  });
});
