import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type TestContext, test } from "node:test";
import { DynamoDBClient, QueryCommand } from "@aws-sdk/client-dynamodb";
import * as z from "zod";
import { awsSettings } from "../../infra/local/aws.ts";
import { createTelemetry } from "../../shared/telemetry/index.ts";
import { dimensionSets, METRICS, type MetricName } from "../../shared/telemetry/metrics.ts";
import { countThrottled } from "../../shared/telemetry/throttled.ts";

process.env.POWERTOOLS_DEV = "true"; // metrics go through the console, where the test can see them
process.env.POWERTOOLS_METRICS_DISABLED = "false";
process.env.POWERTOOLS_METRICS_NAMESPACE = "Sluice/test";
process.env.POWERTOOLS_SERVICE_NAME = "admit";

const line = z.looseObject({
  _aws: z.object({
    CloudWatchMetrics: z.tuple([
      z.object({
        Namespace: z.string(),
        Dimensions: z.array(z.array(z.string())),
        Metrics: z.array(z.object({ Name: z.string(), Unit: z.string() })),
      }),
    ]),
  }),
});

/** The lines that are written meanwhile. */
function said(t: TestContext): () => z.infer<typeof line>[] {
  const { mock } = t.mock.method(console, "log", () => {});
  return () => mock.calls.map(({ arguments: [text] }) => line.parse(JSON.parse(String(text))));
}

test("what is counted is added up, and what has the same dimensions shares a line", (t) => {
  const lines = said(t);
  const telemetry = createTelemetry();
  telemetry.count("TasksOffered");
  telemetry.count("TasksOffered", 2);
  telemetry.measure("UnpublishedAge", 5);
  telemetry.measure("TasksRunning", 10, { runtime: "acme-a" });
  telemetry.measure("TasksRunning", 30, { runtime: "acme-a" });
  telemetry.count("StepsRetried", 3, { runtime: "acme-a" });
  assert.equal(lines().length, 0);
  telemetry.flush();
  const [plain, steps, ...others] = lines();
  assert.equal(others.length, 0);
  assert.equal(plain?._aws.CloudWatchMetrics[0].Namespace, "Sluice/test");
  assert.deepEqual(plain?._aws.CloudWatchMetrics[0].Dimensions, [["service"]]);
  assert.deepEqual([plain?.service, plain?.TasksOffered, plain?.UnpublishedAge], ["admit", 3, 5]);
  assert.deepEqual(steps?._aws.CloudWatchMetrics[0], {
    Namespace: "Sluice/test",
    Dimensions: [["service", "runtime"]],
    Metrics: [
      { Name: "TasksRunning", Unit: "Count" },
      { Name: "StepsRetried", Unit: "Count" },
    ],
  });
  assert.deepEqual([steps?.TasksRunning, steps?.StepsRetried], [[10, 30], 3]);
  telemetry.flush();
  assert.equal(lines().length, 2);
});

test("a metric for alarms is published under fewer dimensions, too", (t) => {
  const lines = said(t);
  const telemetry = createTelemetry();
  telemetry.count("TasksDecided", 1, { runtime: "acme-a", outcome: "accepted" });
  telemetry.count("TasksDecided", 1, { runtime: "acme-a", outcome: "overloaded" });
  telemetry.measure("TimeToResult", 7, { runtime: "acme-a" });
  telemetry.flush();
  assert.deepEqual(
    lines().map((of) => [of._aws.CloudWatchMetrics[0].Dimensions, of.outcome]),
    [
      [
        [
          ["service", "runtime", "outcome"],
          ["service", "outcome"],
        ],
        "accepted",
      ],
      [
        [
          ["service", "runtime", "outcome"],
          ["service", "outcome"],
        ],
        "overloaded",
      ],
      [[["service", "runtime"], ["service"]], undefined],
    ],
  );
});

test("no line holds more values of a metric than CloudWatch takes", (t) => {
  const lines = said(t);
  const telemetry = createTelemetry();
  for (let i = 0; i < 250; i++) telemetry.measure("StepDuration", i, { runtime: "acme-a" });
  telemetry.flush();
  const values = lines().map(({ StepDuration }) => z.array(z.number()).parse(StepDuration));
  assert.deepEqual(
    values.map(({ length }) => length),
    [99, 99, 52],
  );
  assert.deepEqual(
    values.flat(),
    Array.from({ length: 250 }, (_, i) => i),
  );
  assert.ok(lines().every((of) => of.runtime === "acme-a"));
});

test("the catalogue has no dimension whose values grow without bound", () => {
  const known = new Set(["runtime", "outcome", "consumer", "operation", "round"]);
  for (const metric of Object.keys(METRICS) as MetricName[]) // keys of the catalogue
    for (const set of dimensionSets(metric)) for (const name of set) assert.ok(known.has(name), metric);
});

test("an attempt that the table throttles is counted, though the request succeeds", async (t) => {
  const lines = said(t);
  const telemetry = createTelemetry();
  let asked = 0;
  const server = createServer((_, response) => {
    const throttled = ++asked <= 2;
    response.writeHead(throttled ? 400 : 200, { "content-type": "application/x-amz-json-1.0" });
    response.end(throttled ? '{"__type":"ThrottlingException","message":"too much"}' : '{"Items":[]}');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = z.object({ port: z.int() }).parse(server.address());
  const client = new DynamoDBClient(awsSettings(`http://127.0.0.1:${port}`));
  t.after(() => client.destroy());
  countThrottled(client, telemetry);
  await client.send(new QueryCommand({ TableName: "t" }));
  assert.equal(asked, 3);
  telemetry.flush();
  assert.deepEqual(
    lines().map((of) => [of.operation, of.RequestsThrottled]),
    [["Query", 2]],
  );
});
