import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { App } from "aws-cdk-lib";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { CfnQueue } from "aws-cdk-lib/aws-sqs";
import fc from "fast-check";
import * as z from "zod";
import { RETENTION_MS } from "../../functions/admit/admit.ts";
import { FUNCTION_NAMES, type FunctionName } from "../../infra/bundle.ts";
import { CONSUMPTION, FUNCTION_SIZES, QUEUE_NAMES, VALUES_KEPT_DAYS } from "../../infra/sizes.ts";
import { type SluiceStack, stackName } from "../../infra/stack.ts";
import { stageName } from "../../shared/config/cloud.ts";
import { parseDeployment } from "../../shared/config/deployment.ts";
import { actionsOf, hosted, resources as resourcesOf, stackWith, statementsOf } from "./support/stack.ts";

const template = Template.fromStack(stackWith());

const resources = (type: string) => resourcesOf(template, type);
const variables = z.object({ Variables: z.record(z.string(), z.unknown()) });

/** The one function of this name, with its environment. */
function functionNamed(name: FunctionName) {
  const found = resources("AWS::Lambda::Function").filter(
    (of) => variables.parse(of.Properties.Environment).Variables.POWERTOOLS_SERVICE_NAME === name,
  );
  assert.equal(found.length, 1, name);
  const properties = found[0]?.Properties ?? {};
  return { properties, environment: variables.parse(properties.Environment).Variables };
}

test("the table has its index, expires items, can be restored, is kept, and is paid by use", () => {
  const [table, ...others] = resources("AWS::DynamoDB::Table");
  assert.equal(others.length, 0);
  assert.equal(table?.DeletionPolicy, "Retain");
  template.hasResourceProperties("AWS::DynamoDB::Table", {
    BillingMode: "PAY_PER_REQUEST",
    KeySchema: [
      { AttributeName: "pk", KeyType: "HASH" },
      { AttributeName: "sk", KeyType: "RANGE" },
    ],
    AttributeDefinitions: [
      { AttributeName: "pk", AttributeType: "S" },
      { AttributeName: "sk", AttributeType: "S" },
      { AttributeName: "dueShard", AttributeType: "S" },
      { AttributeName: "dueAt", AttributeType: "N" },
    ],
    GlobalSecondaryIndexes: [
      {
        IndexName: "due",
        KeySchema: [
          { AttributeName: "dueShard", KeyType: "HASH" },
          { AttributeName: "dueAt", KeyType: "RANGE" },
        ],
        Projection: { ProjectionType: "KEYS_ONLY" },
      },
    ],
    TimeToLiveSpecification: { AttributeName: "expiresAt", Enabled: true },
    PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    SSESpecification: { SSEEnabled: true },
    DeletionProtectionEnabled: true,
  });
});

test("what holds data keeps its logical id: under another an upgrade would make a new one, and delete this", () => {
  const ids = (type: string) => Object.keys(template.findResources(type)).toSorted();
  assert.deepEqual(ids("AWS::DynamoDB::Table"), ["StorageTableB43FDCE7"]);
  assert.deepEqual(ids("AWS::S3::Bucket"), ["StorageBucket5CB7C8EA"]);
  assert.deepEqual(ids("AWS::SecretsManager::Secret"), ["SigningKeySecret12FE2763"]);
  assert.deepEqual(ids("AWS::SQS::Queue"), [
    ...["ControlsDeadB7C9E281", "ControlsFF3AAC4A", "EventsD32975C2", "EventsDead8436A46E"],
    ...["Tasks0BA6A452", "TasksDeadD3E91490", "WorkBF636A8B", "WorkDead2AD4D985"],
  ]);
});

test("the bucket is closed, encrypted, kept, and forgets what nobody can need any more", () => {
  assert.equal(resources("AWS::S3::Bucket")[0]?.DeletionPolicy, "Retain");
  template.hasResourceProperties("AWS::S3::Bucket", {
    PublicAccessBlockConfiguration: {
      BlockPublicAcls: true,
      BlockPublicPolicy: true,
      IgnorePublicAcls: true,
      RestrictPublicBuckets: true,
    },
    BucketEncryption: {
      ServerSideEncryptionConfiguration: [{ ServerSideEncryptionByDefault: { SSEAlgorithm: "AES256" } }],
    },
    LifecycleConfiguration: {
      Rules: [
        { Id: "values", Prefix: "values/", ExpirationInDays: 31, Status: "Enabled" },
        { Id: "incomplete-uploads", AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 } },
      ],
    },
  });
});

test("the signing key's secret has no value, is kept, and nobody may read or write it but who signs", () => {
  const [secret, ...others] = resources("AWS::SecretsManager::Secret");
  assert.equal(others.length, 0);
  assert.equal(secret?.DeletionPolicy, "Retain");
  assert.deepEqual(Object.keys(secret.Properties), ["Description"]);
  for (const { Properties } of resources("AWS::IAM::Role"))
    assert.ok(!JSON.stringify(Properties.Policies ?? []).includes("SigningKey"));
});

test("a value outlives the longest task and the time that decisions are kept", () => {
  assert.ok(VALUES_KEPT_DAYS * 86_400_000 >= RETENTION_MS);
  const daysFor = (...maxSec: number[]) => {
    const deployment = parseDeployment({
      deployment: "acme",
      agents: maxSec.map((of, i) => hosted(of, `agent${i}`)),
    });
    const [bucket] = Object.values(
      Template.fromStack(stackWith({ deployment })).findResources("AWS::S3::Bucket"),
    );
    return bucket?.Properties.LifecycleConfiguration.Rules[0].ExpirationInDays;
  };
  assert.equal(daysFor(), 30);
  assert.equal(daysFor(86_400, 60), 31);
  assert.equal(daysFor(86_401), 32);
});

test("each queue is encrypted, reachable by TLS only, and has a dead-letter queue", () => {
  const queues = Object.entries(template.findResources("AWS::SQS::Queue"));
  assert.equal(queues.length, 2 * QUEUE_NAMES.length);
  for (const [, { Properties }] of queues) assert.equal(Properties.SqsManagedSseEnabled, true);

  const live = queues.filter(([, { Properties }]) => Properties.RedrivePolicy !== undefined);
  assert.equal(live.length, QUEUE_NAMES.length);
  for (const [, { Properties }] of live) assert.equal(Properties.RedrivePolicy.maxReceiveCount, 5);

  const guarded = resources("AWS::SQS::QueuePolicy").map((of) =>
    JSON.stringify(of.Properties.PolicyDocument),
  );
  assert.equal(guarded.length, queues.length);
  for (const policy of guarded) assert.match(policy, /"aws:SecureTransport":"false"\}\},"Effect":"Deny"/);
});

test("a message stays hidden for six times its consumer's timeout", () => {
  const hidden = resources("AWS::SQS::Queue").map((of) => of.Properties.VisibilityTimeout);
  assert.deepEqual(hidden.filter((of) => of !== undefined).toSorted(), [180, 180, 180, 5400]);
  for (const name of QUEUE_NAMES) {
    const timeout = FUNCTION_SIZES[CONSUMPTION[name].consumer].timeoutSec;
    assert.ok(hidden.includes(6 * timeout), name);
  }
});

test("queues are consumed with bounded concurrency and partial failures", () => {
  const mappings = resources("AWS::Lambda::EventSourceMapping").map(({ Properties: of }) => ({
    batch: of.BatchSize,
    concurrency: of.ScalingConfig,
    responses: of.FunctionResponseTypes,
  }));
  const mapping = (batch: number, most: number) => ({
    batch,
    concurrency: { MaximumConcurrency: most },
    responses: ["ReportBatchItemFailures"],
  });
  assert.deepEqual(mappings, [mapping(10, 4), mapping(10, 2), mapping(10, 4), mapping(1, 50)]);
});

const COMMON = ["LOG_LEVEL", "NODE_OPTIONS", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_SERVICE_NAME"];
const STORED = ["BUCKET_NAME", "TABLE_NAME"];
const ENVIRONMENT: Readonly<Record<FunctionName, readonly string[]>> = {
  bridge: ["CONTROLS_QUEUE_URL", "EVENTS_QUEUE_URL", "INSTANCE_ID", "TASKS_QUEUE_URL"],
  admit: [...STORED, "WORK_QUEUE_URL"],
  control: [...STORED, "WORK_QUEUE_URL"],
  events: [...STORED, "WORK_QUEUE_URL"],
  work: [...STORED, "WORK_QUEUE_URL"],
  sweep: [...STORED, "WORK_QUEUE_URL"],
  cards: ["INSTANCE_ID", "TABLE_NAME"],
};

for (const name of FUNCTION_NAMES)
  test(`the function ${name} runs as declared and is told what it needs`, () => {
    const { properties, environment } = functionNamed(name);
    assert.equal(properties.Runtime, "nodejs24.x");
    assert.deepEqual(properties.Architectures, ["arm64"]);
    assert.deepEqual(properties.TracingConfig, { Mode: "Active" });
    assert.equal(properties.Handler, "index.handler");
    assert.equal(properties.Timeout, FUNCTION_SIZES[name].timeoutSec);
    assert.equal(properties.MemorySize, FUNCTION_SIZES[name].memoryMb);
    assert.equal(properties.ReservedConcurrentExecutions, name === "bridge" ? 2 : undefined);
    assert.deepEqual(Object.keys(environment).toSorted(), [...COMMON, ...ENVIRONMENT[name]].toSorted());
    assert.equal(environment.POWERTOOLS_METRICS_NAMESPACE, "Sluice/sluice-acme");
  });

test("every function has a log group of its own that forgets", () => {
  const groups = resources("AWS::Logs::LogGroup");
  assert.equal(groups.length, FUNCTION_NAMES.length);
  for (const { Properties } of groups) assert.equal(Properties.RetentionInDays, 30);
  for (const { Properties } of resources("AWS::Lambda::Function"))
    assert.match(JSON.stringify(Properties.LoggingConfig), /^\{"LogGroup":\{"Ref":"\w+Logs\w+"\}\}$/);
});

test("bridge, sweep and cards start each minute, and a start that failed is not repeated", () => {
  const rules = resources("AWS::Events::Rule");
  assert.equal(rules.length, 3);
  for (const { Properties } of rules) assert.equal(Properties.ScheduleExpression, "rate(1 minute)");
  for (const { Properties } of resources("AWS::Lambda::EventInvokeConfig"))
    assert.equal(Properties.MaximumRetryAttempts, 0);
});

const TRACES = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"];
const COMMON_GRANTS = ["logs:CreateLogStream", "logs:PutLogEvents", ...TRACES];
const CONSUME = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"];
const VALUES = ["s3:GetObject", "s3:ListBucket", "s3:PutObject"];
const LEAVES = ["ConditionCheckItem", "DeleteItem", "GetItem", "Query", "UpdateItem"].map(
  (of) => `dynamodb:${of}`,
);
const ALLOWED: Readonly<Record<FunctionName, readonly string[]>> = {
  bridge: ["sqs:GetQueueAttributes", "sqs:SendMessage"],
  admit: [
    ...CONSUME,
    ...VALUES,
    "dynamodb:BatchGetItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "sqs:SendMessage",
  ],
  control: [...CONSUME, ...VALUES, ...LEAVES, "dynamodb:BatchGetItem", "dynamodb:PutItem", "sqs:SendMessage"],
  events: [
    ...CONSUME,
    ...VALUES,
    "dynamodb:BatchGetItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
    "sqs:SendMessage",
  ],
  work: [...CONSUME, ...VALUES, ...LEAVES, "dynamodb:BatchGetItem", "dynamodb:PutItem", "sqs:SendMessage"],
  sweep: [...LEAVES, "dynamodb:BatchGetItem", "s3:GetObject", "s3:ListBucket", "sqs:SendMessage"],
  cards: [
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
  ],
};
for (const name of FUNCTION_NAMES)
  test(`the function ${name} may do what it does and nothing else`, () => {
    assert.deepEqual(actionsOf(template, `${name}Role`), [...COMMON_GRANTS, ...ALLOWED[name]].toSorted());
    for (const { Action, Resource } of statementsOf(template, `${name}Role`)) {
      if (Action.every((of) => TRACES.includes(of))) continue;
      const text = JSON.stringify(Resource);
      assert.equal(text.replace('"/values/*"', "").includes("*"), false, text);
    }
  });

test("where NATS is can be told by the stack", () => {
  const nats = { servers: "tls://nats.example:4222", credentials: "secret:nats" };
  Template.fromStack(stackWith({ nats })).allResourcesProperties("AWS::Lambda::Function", {
    Environment: { Variables: { NATS_SERVERS: nats.servers, NATS_CREDENTIALS: nats.credentials } },
  });
});

test("credentials that only this machine has are warned of", () => {
  const withFile = stackWith({ nats: { credentials: "file:/etc/nats.creds" } });
  Template.fromStack(withFile);
  Annotations.fromStack(withFile).hasWarning(
    "*",
    Match.stringLikeRegexp("cannot read; expected secret:NAME"),
  );
  Annotations.fromStack(stackWith()).hasNoWarning("*", Match.anyValue());
});

test("a server that only this machine has is warned of", () => {
  for (const servers of ["nats://127.0.0.1:4222", "tls://nats.example,nats://localhost:4222", "nats://[::1]"])
    Annotations.fromStack(stackWith({ nats: { servers } })).hasWarning(
      "*",
      Match.stringLikeRegexp("is this machine.*cannot reach"),
    );
});

test("the command finds the parts by the stack's outputs", () => {
  assert.deepEqual(Object.keys(template.findOutputs("*")).toSorted(), [
    "AgentQueueUrls",
    "BucketName",
    "ControlsDeadQueueUrl",
    "ControlsQueueUrl",
    "DeploymentName",
    "EventsDeadQueueUrl",
    "EventsQueueUrl",
    "FunctionNames",
    "LogGroupNames",
    "NatsCredentials",
    "NatsServers",
    "SigningKeySecret",
    "Stage",
    "TableName",
    "TasksDeadQueueUrl",
    "TasksQueueUrl",
    "Version",
    "WorkDeadQueueUrl",
    "WorkQueueUrl",
  ]);
});

test("a stack's name has only characters that CloudFormation takes, and no two stacks share one", () => {
  assert.equal(stackName("acme"), "sluice-acme");
  assert.equal(stackName("acme", "main"), "sluice-acme");
  assert.equal(stackName("acme", "dev"), "sluice-acme--dev");
  assert.equal(stackName("acme-dev"), "sluice-acme-dev");
  assert.match(stackName("acme_eu-1"), /^sluice-acme-eu-1--0[0-9a-f]{8}$/);
  assert.match(stackName("acme--dev", "dev"), /^sluice-acme-dev--0[0-9a-f]{8}--dev$/);
  // Short names of few characters meet soonest.
  const deployment = fc.string({ unit: fc.constantFrom("a", "0", "_", "-"), minLength: 1, maxLength: 6 });
  const stage = fc.string({ unit: fc.constantFrom("a", "0", "-"), maxLength: 5 });
  const names = new Map<string, string>();
  fc.assert(
    fc.property(deployment, fc.option(stage), (of, more) => {
      const at = more === null ? "main" : stageName.parse(`a${more}`);
      const name = stackName(of, at);
      assert.match(name, /^[a-zA-Z][-a-zA-Z0-9]{0,127}$/);
      assert.equal(names.get(name) ?? `${of} ${at}`, `${of} ${at}`);
      names.set(name, `${of} ${at}`);
    }),
    { numRuns: 2_000 },
  );
});

/** The report on a stack whose synthesis fails. */
function findings(t: TestContext, of: SluiceStack): string {
  t.mock.method(console, "error", () => {});
  assert.throws(() => Template.fromStack(of), /Validation failed/);
  const app = App.of(of);
  assert.ok(app);
  return readFileSync(join(app.outdir, "validation-report.json"), "utf8");
}

test("a finding of cdk-nag fails the synthesis", (t) => {
  const stack = stackWith();
  new CfnQueue(stack, "Open", { sqsManagedSseEnabled: true });
  assert.match(findings(t, stack), /AwsSolutions-SQS4/);
});

test("what CloudFormation would refuse fails the synthesis", (t) => {
  const stack = stackWith();
  new CfnQueue(stack, "Long", { visibilityTimeout: 43_201 });
  assert.match(findings(t, stack), /VisibilityTimeout/);
});
