import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { Alarms } from "../../../infra/local/metrics/alarms.ts";
import { readAlarms } from "../../../infra/local/metrics/definitions.ts";
import { metricsIn } from "../../../infra/local/metrics/emf.ts";
import { compile, ExpressionError, type Value } from "../../../infra/local/metrics/expression.ts";
import { MetricStore, MINUTE_MS } from "../../../infra/local/metrics/store.ts";
import { queueWithDead, writeAssembly } from "../support/assembly.ts";

const value = fc.option(fc.integer({ min: -5, max: 5 }), { nil: undefined });

test("metric math is that of arithmetic, and nothing comes of nothing", () => {
  const ids = new Set(["a", "b"]);
  const of = (text: string, a: Value, b: Value) =>
    compile(
      text,
      ids,
    )(
      new Map([
        ["a", a],
        ["b", b],
      ]),
    );
  fc.assert(
    fc.property(value, value, (a, b) => {
      const both = a !== undefined && b !== undefined;
      assert.equal(of("a + b * 2 - 1", a, b), both ? a + b * 2 - 1 : undefined);
      assert.equal(of("(a + b) * -2", a, b), both ? (a + b) * -2 : undefined);
      assert.equal(of("a / b", a, b), both && b !== 0 ? a / b : undefined);
      assert.equal(of("FILL(a, 7)", a, b), a ?? 7);
      const holds = (a ?? 0) > 0 && (b ?? 0) === 0;
      assert.equal(of("IF((FILL(a, 0) > 0) AND (FILL(b, 0) == 0), 1, 0)", a, b), holds ? 1 : 0);
      assert.equal(of("FILL(a, 0) > 2 OR FILL(b, 0) <= -2", a, b), (a ?? 0) > 2 || (b ?? 0) <= -2 ? 1 : 0);
      assert.equal(of("IF(a, b, 3)", a, b), a === undefined ? undefined : a === 0 ? 3 : b);
    }),
  );
});

test("what this machine does not know of metric math is an error that shows the expression", () => {
  for (const text of [
    "c",
    "a +",
    "RATE(a)",
    "FILL(a)",
    "IF(a, 1)",
    "a % b",
    "'a'",
    "a ? 1 : 2",
    "a.b",
    "[a]",
    "",
  ])
    assert.throws(
      () => compile(text, new Set(["a", "b"])),
      (error) => error instanceof ExpressionError && error.message.startsWith(text),
      text,
    );
});

test("statistics over a period are those of all its values", () => {
  const key = { namespace: "n", name: "m", dimensions: { b: "2", a: "1" } };
  const sample = fc.record({
    value: fc.integer({ min: -100, max: 100 }),
    at: fc.nat({ max: 5 * MINUTE_MS - 1 }),
  });
  fc.assert(
    fc.property(fc.array(sample), fc.integer({ min: 0, max: 4 }), (samples, minute) => {
      const store = new MetricStore();
      for (const { value: of, at } of samples) store.put(key, of, at);
      const [from, to] = [minute * MINUTE_MS, 5 * MINUTE_MS];
      const among = samples.filter(({ at }) => at >= from && at < to).map((of) => of.value);
      const look = (statistic: "Sum" | "Maximum" | "Minimum" | "SampleCount" | "Average") =>
        store.statistic({ ...key, dimensions: { a: "1", b: "2" } }, statistic, from, to);
      const sum = among.reduce((total, of) => total + of, 0);
      if (among.length === 0) return assert.equal(look("Sum"), undefined);
      assert.deepEqual(
        [look("Sum"), look("SampleCount"), look("Maximum"), look("Minimum"), look("Average")],
        [sum, among.length, Math.max(...among), Math.min(...among), sum / among.length],
      );
    }),
  );
});

test("a line in the embedded metric format gives each metric by each set of dimensions", () => {
  const line = JSON.stringify({
    _aws: {
      Timestamp: 1,
      CloudWatchMetrics: [
        {
          Namespace: "n",
          Dimensions: [["s", "r"], ["s"]],
          Metrics: [{ Name: "A", Unit: "Count" }, { Name: "B" }],
        },
      ],
    },
    s: "work",
    r: "acme",
    A: 2,
    B: [1, 2],
  });
  assert.deepEqual(
    metricsIn(line).map(({ key, values }) => [key.name, key.dimensions, values]),
    [
      ["A", { s: "work", r: "acme" }, [2]],
      ["A", { s: "work" }, [2]],
      ["B", { s: "work", r: "acme" }, [1, 2]],
      ["B", { s: "work" }, [1, 2]],
    ],
  );
  for (const other of ["", "text", "{", '{"CloudWatchMetrics":1}', '{"_aws":{"CloudWatchMetrics":[{}]}}'])
    assert.deepEqual(metricsIn(other), []);
  fc.assert(fc.property(fc.string(), (text) => void metricsIn(`{"CloudWatchMetrics"${text}`)));
});

function alarm(properties: object): object {
  return {
    Type: "AWS::CloudWatch::Alarm",
    Properties: {
      AlarmName: "age",
      ComparisonOperator: "GreaterThanThreshold",
      Threshold: 60,
      EvaluationPeriods: 3,
      DatapointsToAlarm: 2,
      TreatMissingData: "notBreaching",
      ...properties,
    },
  };
}

const AGE = {
  Namespace: "AWS/SQS",
  MetricName: "ApproximateAgeOfOldestMessage",
  Dimensions: [{ Name: "QueueName", Value: { "Fn::GetAtt": ["inbox", "QueueName"] } }],
  Statistic: "Maximum",
  Period: 60,
};

test("an alarm of the template rises, and is over, by what is measured", () => {
  const dir = writeAssembly({ resources: { ...queueWithDead("inbox", 30, 3), age: alarm(AGE) } });
  const [definition, ...others] = readAlarms(dir);
  assert.ok(definition);
  assert.equal(others.length, 0);
  const [key] = definition.metrics;
  assert.deepEqual(key?.dimensions, { QueueName: "inbox" });
  const store = new MetricStore();
  const alarms = new Alarms([definition], store, 0);
  const states: string[] = [];
  for (const [minute, age] of [0, 0, 0, 90, 10, 90, 0, 0, 0].entries()) {
    if (key !== undefined) store.put(key, age, minute * MINUTE_MS);
    states.push(...alarms.evaluate((minute + 1) * MINUTE_MS).map(({ to }) => `${minute} ${to}`));
  }
  assert.deepEqual(states, ["2 OK", "5 ALARM", "6 OK"]);
  assert.deepEqual(
    alarms.status().map(({ name, state, since }) => [name, state, since]),
    [["age", "OK", 7 * MINUTE_MS]],
  );
});

test("what this machine cannot evaluate is said, with the alarm's name", () => {
  const math = (Expression: string) => ({
    Metrics: [
      { Id: "e", Expression },
      {
        Id: "m",
        ReturnData: false,
        MetricStat: { Metric: { Namespace: "n", MetricName: "a" }, Period: 60, Stat: "Sum" },
      },
    ],
  });
  const bad: [object, RegExp][] = [
    [{ ...AGE, Statistic: undefined, ExtendedStatistic: "p99" }, /expected a metric with a statistic/],
    [{ ...AGE, Period: 10 }, /Period/],
    [{ ...AGE, ComparisonOperator: "LessThanLowerThreshold" }, /ComparisonOperator/],
    [math("RATE(m)"), /RATE/],
    [math("x + 1"), /no metric x/],
    [{ Metrics: [{ Id: "e", Expression: "1 + 1" }] }, /the same period/],
  ];
  for (const [properties, message] of bad) {
    const dir = writeAssembly({ resources: { ...queueWithDead("inbox", 30, 3), late: alarm(properties) } });
    assert.throws(() => readAlarms(dir), { code: "unsupported", message: /template: late: / });
    assert.throws(() => readAlarms(dir), { message });
  }
});
