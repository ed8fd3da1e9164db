import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as z from "zod";
import { eventually, startTestHost } from "../support/host.ts";

/** A minute is a second. */
const SCALE = 60;

const alarmOf = (metric: string, statistic: string, threshold: number) => ({
  Type: "AWS::CloudWatch::Alarm",
  Properties: {
    AlarmName: metric,
    AlarmDescription: `About ${metric}.`,
    ComparisonOperator: "GreaterThanThreshold",
    Threshold: threshold,
    EvaluationPeriods: 1,
    TreatMissingData: "notBreaching",
    Namespace: metric === "Boiled" ? "Kitchen" : "AWS/Lambda",
    MetricName: metric,
    Dimensions:
      metric === "Boiled"
        ? [{ Name: "service", Value: "cook" }]
        : [{ Name: "FunctionName", Value: { Ref: "cook" } }],
    Statistic: statistic,
    Period: 60,
  },
});

/** Fails as asked, takes as long as asked, and says how much it has boiled. */
const source = `export const handler = async ({ ms = 0, fail = false, boiled = 0 }) => {
  const CloudWatchMetrics = [{ Namespace: "Kitchen", Dimensions: [["service"]], Metrics: [{ Name: "Boiled" }] }];
  console.log(JSON.stringify({ _aws: { Timestamp: 1, CloudWatchMetrics }, service: "cook", Boiled: boiled }));
  await new Promise((resolve) => setTimeout(resolve, ms));
  if (fail) throw new Error("burnt");
};`;

test("what functions do and say raises the alarms of the template, in the deployment's own time", async (t) => {
  const host = await startTestHost(
    t,
    {
      // Its timeout is scaled in full, so that what is refused counts.
      functions: { cook: { source, properties: { Timeout: 600, ReservedConcurrentExecutions: 1 } } },
      resources: {
        errors: alarmOf("Errors", "Average", 0.5),
        throttles: alarmOf("Throttles", "Sum", 0),
        // 5 s of the 10 s that it may take here are 300 s of its 600 s.
        duration: alarmOf("Duration", "Maximum", 20_000),
        concurrency: alarmOf("ConcurrentExecutions", "Maximum", 1),
        boiled: alarmOf("Boiled", "Sum", 6),
      },
    },
    { timeScale: SCALE },
  );
  const told = () => host.events.flatMap((of) => (of.type === "alarm" ? [`${of.name} ${of.to}`] : []));
  const raised = (name: string) => eventually(() => told().includes(`${name} ALARM`));
  const over = (name: string) =>
    eventually(() => told().lastIndexOf(`${name} OK`) > told().indexOf(`${name} ALARM`));

  await host.invoke("cook", { fail: true });
  await raised("Errors");
  await Promise.all([
    host.invoke("cook", { ms: 500 }),
    host.invoke("cook", {}),
    host.invoke("cook", { boiled: 7 }),
  ]);
  await raised("Throttles");
  await raised("Duration");
  await raised("Boiled");
  for (const name of ["Errors", "Throttles", "Duration", "Boiled"]) await over(name);
  assert.ok(!told().includes("ConcurrentExecutions ALARM"));

  const file = z.object({
    alarms: z.array(
      z.object({ name: z.string(), state: z.string(), description: z.string(), since: z.iso.datetime() }),
    ),
  });
  const { alarms } = file.parse(JSON.parse(readFileSync(join(host.dataDir, "alarms.json"), "utf8")));
  assert.deepEqual(
    alarms.map(({ name, description }) => [name, description]),
    ["Errors", "Throttles", "Duration", "ConcurrentExecutions", "Boiled"].map((of) => [of, `About ${of}.`]),
  );
});
