import assert from "node:assert/strict";
import { test } from "node:test";
import { Template } from "aws-cdk-lib/assertions";
import * as z from "zod";
import { actionsOf, resources, stackWith, statementsOf } from "./support/stack.ts";

const SHARED_ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:shared-AbCdEf";
/** A stack in which `billing` and `legal` have functions of their own and `support` has not. */
const template = Template.fromStack(
  stackWith({
    nats: { credentials: "secret:acme/nats" },
    functions: {
      billing: {
        memoryMb: 2048,
        timeoutSec: 60,
        batchSize: 5,
        maxConcurrency: 3,
        secrets: ["acme/model-key", SHARED_ARN],
        permissions: [
          { actions: ["s3:GetObject"], resources: ["arn:aws:s3:::manuals/*"] },
          { actions: ["textract:DetectDocumentText"], resources: ["*"] },
        ],
      },
      legal: {},
    },
  }),
);

const declared = z.object({
  Description: z.string(),
  MemorySize: z.int(),
  Timeout: z.int(),
  Environment: z.object({ Variables: z.record(z.string(), z.unknown()) }),
});
/** The one function of this description. */
function functionOf(description: string) {
  const all = resources(template, "AWS::Lambda::Function").map(({ Properties }) =>
    declared.parse(Properties),
  );
  const [found, ...others] = all.filter((of) => of.Description === description);
  assert.ok(found, description);
  assert.equal(others.length, 0);
  return { ...found, variables: found.Environment.Variables };
}

/** Logical ids that a value refers to. */
const refersTo = (value: unknown) =>
  [...JSON.stringify(value).matchAll(/\{"(?:Ref|Fn::GetAtt)":\[?"(\w+?)[0-9A-F]{8}"/g)].map(([, id]) => id);

test("a function is as large and may take as long as the agent asks", () => {
  const billing = functionOf("Runs the handlers of billing");
  assert.deepEqual([billing.MemorySize, billing.Timeout], [2048, 60]);
  const legal = functionOf("Runs the handlers of legal");
  assert.deepEqual([legal.MemorySize, legal.Timeout], [1024, 900]);
});

test("its queue hides messages for six times its timeout, and feeds it alone", () => {
  const queues = Object.entries(template.findResources("AWS::SQS::Queue"));
  const hidden = (id: string) =>
    queues.find(([name]) => name.startsWith(id) && !name.includes("Dead"))?.[1].Properties.VisibilityTimeout;
  assert.equal(hidden("Workbilling"), 360);
  assert.equal(hidden("Worklegal"), 5400);
  const [source, ...others] = resources(template, "AWS::Lambda::EventSourceMapping").filter(
    ({ Properties }) => refersTo(Properties.EventSourceArn).includes("Workbilling"),
  );
  assert.equal(others.length, 0);
  assert.deepEqual(refersTo(source?.Properties.FunctionName), ["workbilling"]);
  assert.equal(source?.Properties.BatchSize, 5);
  assert.deepEqual(source?.Properties.ScalingConfig, { MaximumConcurrency: 3 });
});

test("whoever hints knows the queue of each agent; a function of its own only that one", () => {
  for (const description of ["Decides each task once", "Runs the agents' handlers"]) {
    const { variables } = functionOf(description);
    assert.deepEqual(refersTo(variables.WORK_QUEUE_URL), ["Work"]);
    assert.deepEqual(refersTo(variables.WORK_QUEUE_URLS), ["Workbilling", "Worklegal"]);
    assert.match(JSON.stringify(variables.WORK_QUEUE_URLS), /acme-billing.*acme-legal/);
  }
  const { variables } = functionOf("Runs the handlers of billing");
  assert.equal(variables.WORK_QUEUE_URL, undefined);
  assert.deepEqual(refersTo(variables.WORK_QUEUE_URLS), ["Workbilling"]);
});

/** The queues on which a role may do something. */
const queuesFor = (role: string, action: string) =>
  statementsOf(template, role)
    .filter(({ Action }) => Action.includes(action))
    .flatMap(({ Resource }) => refersTo(Resource))
    .toSorted();

test("each role reaches the queues that its function uses", () => {
  for (const role of ["admitRole", "controlRole", "eventsRole", "sweepRole", "workRole"])
    assert.deepEqual(queuesFor(role, "sqs:SendMessage"), ["Work", "Workbilling", "Worklegal"]);
  assert.deepEqual(queuesFor("workRole", "sqs:ReceiveMessage"), ["Work"]);
  for (const action of ["sqs:SendMessage", "sqs:ReceiveMessage"])
    assert.deepEqual(queuesFor("workbillingRole", action), ["Workbilling"]);
});

/** The secrets that a role may read, without partition, region and account. */
const secretsFor = (role: string) =>
  statementsOf(template, role)
    .filter(({ Action }) => Action.includes("secretsmanager:GetSecretValue"))
    .flatMap(({ Resource }) => [Resource].flat())
    .map((of) => (typeof of === "string" ? of : /:secret:([^"]*)"/.exec(JSON.stringify(of))?.[1]))
    .toSorted();

test("an agent's secrets and permissions are its own", () => {
  assert.deepEqual(
    secretsFor("workbillingRole"),
    ["acme/model-key-??????", "acme/nats-??????", SHARED_ARN].toSorted(),
  );
  // Who they are on NATS, all must know.
  for (const role of ["bridgeRole", "admitRole", "workRole", "worklegalRole", "sweepRole"])
    assert.deepEqual(secretsFor(role), ["acme/nats-??????"], role);
  assert.ok(actionsOf(template, "workbillingRole").includes("textract:DetectDocumentText"));
  for (const role of ["workRole", "worklegalRole"])
    assert.equal(actionsOf(template, role).includes("textract:DetectDocumentText"), false);
});

test("the command is told the queues", () => {
  const { AgentQueueUrls } = template.findOutputs("AgentQueueUrls");
  assert.deepEqual(refersTo(AgentQueueUrls?.Value), [
    "Workbilling",
    "WorkbillingDead",
    "Worklegal",
    "WorklegalDead",
  ]);
});
