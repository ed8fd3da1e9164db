import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { Template } from "aws-cdk-lib/assertions";
import { parseDeployment } from "../../shared/config/deployment.ts";
import { callsOf } from "./support/calls.ts";
import {
  allowedBy,
  changed,
  deniedTo,
  findings,
  neededBy,
  otherRoles,
  type Permission,
  type Program,
  programsOf,
  templateOf,
} from "./support/permissions.ts";
import { deploymentOf, stackWith } from "./support/stack.ts";

/**
 * A role allows what its function needs and nothing else. What it needs is derived: from its code, as much of it as its
 * bundle keeps, which calls it can make; from its declaration, on what. What functions were seen to ask for in
 * end-to-end runs (test/infra/seen-calls.json, `npm run seen-calls`) is held against it.
 */

/** What the operator grants an agent's own function (agents.yaml). */
const GRANTED = { actions: ["s3:GetObject"], resources: ["arn:aws:s3:::manuals/*"] };
/** Of whom two tell who we are by a secret, one of them by that of NATS. */
const REMOTES = ["secret:acme/nats", "secret:acme/auditor", "env:KEY", "file:/key"].map((credentials, i) => ({
  name: `remote${i}`,
  url: "https://a.example/a2a",
  auth: { credentials },
}));
const NETWORK = { vpcId: "new" };

/**
 * Of a VPC's flow logs (VPC User Guide, "IAM role for publishing flow logs to CloudWatch Logs"; the group is there), and of
 * ECS, which fetches the container's image and passes its logs on (ECS Developer Guide, "Amazon ECS task execution IAM role").
 */
const IMAGES =
  "arn:AWS::Partition:ecr:AWS::Region:AWS::AccountId:repository/cdk-hnb659fds-container-assets-AWS::AccountId-AWS::Region";
const SERVICES = {
  NetworkVpcRefusedIAMRole81938B59: ["CreateLogStream", "DescribeLogStreams", "PutLogEvents"].map(
    (of) => `logs:${of} NetworkLogs410D5F1E`,
  ),
  bridgeTaskExecutionRole7D0AC49B: [
    ...["BatchCheckLayerAvailability", "BatchGetImage"].map((of) => `ecr:${of} ${IMAGES}`),
    "ecr:GetAuthorizationToken *",
    `ecr:GetDownloadUrlForLayer ${IMAGES}`,
    ...["CreateLogStream", "PutLogEvents"].map((of) => `logs:${of} bridgeLogsA579DB2C`),
  ],
};

const forms = {
  "a bridge as a function, in no network": synthesized({
    deployment: parseDeployment({ ...deploymentOf("support", "billing"), remotes: REMOTES }),
    nats: { credentials: "secret:acme/nats" },
    functions: { billing: { permissions: [GRANTED] } },
  }),
  "a bridge as a service, in a network": synthesized({ cloud: { bridge: "fargate", network: NETWORK } }),
};

function synthesized(options: Parameters<typeof stackWith>[0]) {
  const template = templateOf.parse(Template.fromStack(stackWith(options)).toJSON());
  return { template, programs: programsOf(template) };
}

/** What a program runs, below `functions/`. */
function entryOf({ id }: Program): string {
  if (id.startsWith("bridgeTask")) return "bridge/service.ts";
  const [kind = ""] = /^(bridge|admit|control|events|work|sweep|cards)/.exec(id) ?? [];
  return `${kind}/handler.ts`;
}

/** What is given by the operator, whatever the agent's own code does with it; and the secrets of remote agents. */
function grantedTo({ id, environment }: Program): Permission[] {
  if (id.startsWith("workbilling")) return ["s3:GetObject arn:aws:s3:::manuals/*"];
  const secret = "arn:AWS::Partition:secretsmanager:AWS::Region:AWS::AccountId:secret:acme/auditor";
  const asks = id.startsWith("cards") && environment.CREDENTIAL_VARIABLES === "KEY";
  return asks ? [`secretsmanager:GetSecretValue ${secret}`] : [];
}

for (const [form, { template, programs }] of Object.entries(forms))
  describe(form, () => {
    const needs = new Map<Program, ReadonlySet<Permission>>();
    before(async () => {
      for (const program of programs) {
        const needed = neededBy(template, program, await callsOf(entryOf(program)));
        needs.set(program, new Set([...needed, ...grantedTo(program)]));
      }
    });

    for (const program of programs)
      test(`${program.id} may do what it does and nothing else`, () => {
        const needed = needs.get(program) ?? new Set();
        const allowed = allowedBy(template, program.role);
        assert.ok(allowed.size > 0);
        assert.deepEqual(findings(needed, allowed), []);
        assert.deepEqual(deniedTo(template, program), program.denied);
      });

    test("what AWS does for the stack beside its programs it may, and nothing else", () => {
      const others = otherRoles(template, programs).map((id) => [
        id,
        [...allowedBy(template, id)].toSorted(),
      ]);
      assert.deepEqual(Object.fromEntries(others), form.includes("service") ? SERVICES : {});
    });

    test("a single permission that is removed is missed", () => {
      for (const [program, needed] of needs)
        for (const permission of allowedBy(template, program.role)) {
          const less = changed(template, program.role, (all) =>
            all.filter((of) => of.permission !== permission),
          );
          assert.deepEqual(findings(needed, allowedBy(less, program.role)), [`missing: ${permission}`]);
        }
    });

    test("a single permission that is added is found", () => {
      const known = [...needs.keys()].flatMap((program) => [...allowedBy(template, program.role)]);
      const actions = new Set(known.map((of) => of.split(" ")[0] ?? ""));
      const resources = new Set(known.map((of) => of.split(" ")[1] ?? ""));
      for (const [program, needed] of needs)
        for (const action of [...actions, "dynamodb:Scan", "s3:DeleteObject"])
          for (const resource of resources) {
            if (needed.has(`${action} ${resource}`)) continue;
            const permission = `${action} ${resource}`;
            const added = { permission, statement: { Effect: "Allow", Action: action, Resource: resource } };
            const more = changed(template, program.role, (all) => [...all, added]);
            assert.deepEqual(findings(needed, allowedBy(more, program.role)), [`unused: ${permission}`]);
          }
    });
  });
