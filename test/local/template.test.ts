import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import fc from "fast-check";
import { resolveIntrinsics } from "../../infra/local/intrinsics.ts";
import { readStack } from "../../infra/local/stack.ts";
import { scaledQueue, scaledTimeoutMs } from "../../infra/local/time-scale.ts";
import {
  mapping,
  queueWithDead,
  type TestStack,
  temporaryFolder,
  writeAssembly,
} from "./support/assembly.ts";

const URLS = "http://127.0.0.1:9/000000000000";
const scope = {
  ref: (name: string) => ({ Name: "name", List: ["a", "b"], Count: 3 })[name],
  attribute: (id: string, name: string) => (id === "Name" ? `attribute ${name}` : undefined),
};
const resolve = (value: unknown) => resolveIntrinsics(value, scope, "here");
const read = (stack: TestStack) => readStack(writeAssembly(stack), URLS);

test("intrinsic functions", () => {
  const cases: [unknown, unknown][] = [
    [{ Ref: "Name" }, "name"],
    [
      { a: [{ Ref: "AWS::NoValue" }, { b: { Ref: "Count" } }], c: { Ref: "AWS::NoValue" } },
      { a: [{ b: 3 }] },
    ],
    [{ "Fn::GetAtt": ["Name", "A.B"] }, "attribute A.B"],
    [{ "Fn::GetAtt": "Name.A" }, "attribute A"],
    [{ "Fn::Join": ["-", ["x", { Ref: "Name" }, 7]] }, "x-name-7"],
    [{ "Fn::Join": ["", { Ref: "List" }] }, "ab"],
    [{ "Fn::Sub": `\${Name}/\${Name.Arn}/\${!Name}/\${Count}` }, `name/attribute Arn/\${Name}/3`],
    [{ "Fn::Sub": [`\${Own}\${Name}`, { Own: { Ref: "Count" } }] }, "3name"],
    [{ "Fn::Select": ["1", { "Fn::Split": [":", "a:b:c"] }] }, "b"],
    [
      { Ref: "Name", more: 1 },
      { Ref: "Name", more: 1 },
    ],
  ];
  for (const [value, expected] of cases) assert.deepEqual(resolve(value), expected);
});

test("a name that refers to nothing and a function that is not known are errors that say where", () => {
  assert.throws(() => resolve({ a: { Ref: "Nobody" } }), {
    code: "assembly_invalid",
    message: /here: Ref Nobody/,
  });
  assert.throws(() => resolve({ "Fn::GetAtt": ["Nobody", "Arn"] }), /here: Fn::GetAtt Nobody\.Arn/);
  assert.throws(() => resolve({ "Fn::ImportValue": "x" }), {
    code: "unsupported",
    message: /Fn::ImportValue/,
  });
});

test("a value without intrinsic functions stays what it is", () => {
  const plain = fc.jsonValue().filter((value) => !JSON.stringify(value).includes("Ref"));
  fc.assert(fc.property(plain, (value) => assert.deepEqual(resolve(value), value)));
});

test("what a stack declares, with names, units and defaults", () => {
  const { functions, queues, mappings, schedules, name } = read({
    functions: {
      worker: {
        source: "",
        properties: {
          Timeout: 900,
          MemorySize: 512,
          Environment: { Variables: { QUEUE: { Ref: "tasks" }, ARN: { "Fn::GetAtt": ["tasks", "Arn"] } } },
        },
      },
    },
    resources: {
      ...queueWithDead("tasks", 180, 5),
      source: mapping("tasks", "worker", { BatchSize: 1, ScalingConfig: { MaximumConcurrency: 50 } }),
      off: mapping("tasks", "worker", { Enabled: false }),
      rule: {
        Type: "AWS::Events::Rule",
        Properties: {
          ScheduleExpression: "rate(2 hours)",
          Targets: [{ Id: "x", Arn: { "Fn::GetAtt": ["worker", "Arn"] } }],
        },
      },
      role: { Type: "AWS::IAM::Role", Properties: { Any: { "Fn::GetAtt": ["elsewhere", "Arn"] } } },
    },
  });
  const arn = "arn:aws:sqs:us-east-1:000000000000:tasks";
  assert.equal(name, "Test");
  assert.partialDeepStrictEqual(functions, [
    {
      name: "worker",
      timeoutSec: 900,
      memoryMb: 512,
      reservedConcurrency: undefined,
      asyncRetries: 2,
      environment: { QUEUE: `${URLS}/tasks`, ARN: arn },
    },
  ]);
  assert.deepEqual(queues[0], {
    name: "tasks",
    arn,
    attributes: {
      VisibilityTimeout: "180",
      RedrivePolicy: JSON.stringify({ deadLetterTargetArn: `${arn}-dead`, maxReceiveCount: 5 }),
    },
  });
  assert.deepEqual(mappings, [
    {
      functionName: "worker",
      queueName: "tasks",
      queueArn: arn,
      batchSize: 1,
      maximumConcurrency: 50,
      reportBatchItemFailures: true,
    },
  ]);
  assert.partialDeepStrictEqual(schedules, [{ functionName: "worker", periodSec: 7_200, input: undefined }]);
});

test("a resource without a declared name has that of its construct's path, the same each time", () => {
  const dir = writeAssembly({
    resources: {
      A1B2: { Type: "AWS::SQS::Queue" },
      C3: { Type: "AWS::SQS::Queue" },
      D4: { Type: "AWS::SQS::Queue" },
    },
  });
  const metadata = (data: string) => [{ type: "aws:cdk:logicalId", data }];
  writeFileSync(
    join(dir, "manifest.json"),
    JSON.stringify({
      artifacts: {
        Test: {
          type: "aws:cloudformation:stack",
          properties: { templateFile: "Test.template.json" },
          metadata: {
            "/Test/Queues/TasksDead/Resource": metadata("A1B2"),
            "/Test/Queues/Queue/Resource": metadata("C3"),
          },
        },
      },
    }),
  );
  assert.deepEqual(
    readStack(dir, URLS).queues.map(({ name }) => name),
    ["tasks-dead", "queues-queue-resource", "d4"],
  );
});

test("a folder that is no assembly, and a declaration that one machine cannot run, are errors that name it", () => {
  assert.throws(
    () => readStack(temporaryFolder("empty"), URLS),
    /manifest\.json: no such file; expected.*cdk synth/,
  );
  const broken = writeAssembly({});
  writeFileSync(join(broken, "Test.template.json"), '{"Resources": {"A": {}}}');
  assert.throws(() => readStack(broken, URLS), /Test\.template\.json: .*Resources\.A\.Type/s);
  const functions = { worker: { source: "" } };
  const cases: [Record<string, unknown>, RegExp][] = [
    [
      { m: mapping("tasks", "worker", { FilterCriteria: { Filters: [] } }) },
      /m: .*filters are not supported/s,
    ],
    [
      { m: mapping("tasks", "worker", { EventSourceArn: "arn:aws:kinesis:x" }) },
      /m: EventSourceArn arn:aws:kinesis:x is no queue/,
    ],
    [{ m: mapping("tasks", "worker", { FunctionName: "other" }) }, /m: other is no Node\.js function/],
    [{ m: mapping("tasks", "worker", { BatchSize: "many" }) }, /m: .*BatchSize/s],
  ];
  for (const [resources, message] of cases)
    assert.throws(
      () => read({ functions, resources: { ...queueWithDead("tasks", 30, 5), ...resources } }),
      message,
    );
});

test("a time scale shortens timeouts and visibility, down to a bound", () => {
  const stack = read({
    functions: {
      long: { source: "", properties: { Timeout: 900 } },
      short: { source: "", properties: { Timeout: 30 } },
      tiny: { source: "", properties: { Timeout: 2 } },
    },
    resources: {
      ...queueWithDead("one", 180, 5),
      ...queueWithDead("two", 5400, 5),
      a: mapping("one", "short"),
      b: mapping("two", "long"),
    },
  });
  const timeouts = (scale: number) =>
    stack.functions.map((declaration) => scaledTimeoutMs(declaration, scale));
  assert.deepEqual(timeouts(1), [900_000, 30_000, 2_000]);
  assert.deepEqual(timeouts(10), [90_000, 3_000, 2_000]);
  assert.deepEqual(timeouts(1_000), [3_000, 3_000, 2_000]);
  const of = (name: string) => (name.startsWith("long") ? 8_000 : 4_000);
  assert.deepEqual(
    stack.functions.map((declaration) => scaledTimeoutMs(declaration, 1_000, of)),
    [8_000, 4_000, 2_000],
  );
  const visibility = (scale: number) =>
    stack.queues.map(
      (queue) => scaledQueue(queue, stack.mappings, stack.functions, scale).attributes.VisibilityTimeout,
    );
  assert.deepEqual(visibility(1), ["180", undefined, "5400", undefined]);
  assert.deepEqual(visibility(50), ["4", undefined, "108", undefined]);
  assert.deepEqual(visibility(1_000), ["3", undefined, "6", undefined]);
});
