import assert from "node:assert/strict";
import { test } from "node:test";
import { Match, Template } from "aws-cdk-lib/assertions";
import * as z from "zod";
import { OwnMetrics } from "../../infra/observability/metrics.ts";
import { resources, stackWith } from "./support/stack.ts";

const ARN = "arn:aws:sns:eu-central-1:123456789012:pager";

test("alarms go to a topic of the stack's own, that only CloudWatch may publish to, and its subscribers", () => {
  const template = Template.fromStack(stackWith({ cloud: { alarms: { emails: ["a@b.example"] } } }));
  template.hasResourceProperties("AWS::SNS::Subscription", { Protocol: "email", Endpoint: "a@b.example" });
  template.hasResourceProperties("AWS::SNS::TopicPolicy", {
    PolicyDocument: {
      Statement: [
        Match.objectLike({ Effect: "Deny", Condition: { Bool: { "aws:SecureTransport": "false" } } }),
        Match.objectLike({
          Effect: "Allow",
          Principal: { Service: "cloudwatch.amazonaws.com" },
          Condition: { StringEquals: { "aws:SourceAccount": { Ref: "AWS::AccountId" } } },
        }),
      ],
    },
  });
});

test("or to the operator's topic, and then there is no other", () => {
  const template = Template.fromStack(stackWith({ cloud: { alarms: { topicArn: ARN } } }));
  template.resourceCountIs("AWS::SNS::Topic", 0);
  for (const { Properties } of resources(template, "AWS::CloudWatch::Alarm"))
    assert.deepEqual([Properties.AlarmActions, Properties.OKActions], [[ARN], [ARN]]);
});

test("each queue, each function and each agent's own is watched; a bridge as a service by its metrics", () => {
  const names = (options: Parameters<typeof stackWith>[0]) =>
    resources(Template.fromStack(stackWith(options)), "AWS::CloudWatch::Alarm")
      .map(({ Properties }) => String(Properties.AlarmName))
      .toSorted();
  const usual = names({});
  for (const queue of ["tasks", "controls", "events", "work"])
    for (const kind of ["dead-letters", "queue-age"])
      assert.ok(usual.includes(`sluice-acme-${kind}-${queue}`));
  for (const name of ["bridge", "admit", "control", "events", "work", "sweep", "cards"])
    for (const kind of ["errors", "throttles", "duration"])
      assert.equal(
        usual.includes(`sluice-acme-function-${kind}-${name}`),
        kind !== "duration" || name !== "bridge",
        `${kind} ${name}`,
      );
  const own = names({ functions: { heavy: { timeoutSec: 30 } } });
  assert.deepEqual(
    own.filter((name) => !usual.includes(name)),
    [
      "sluice-acme-dead-letters-work-heavy",
      "sluice-acme-function-duration-work-heavy",
      "sluice-acme-function-errors-work-heavy",
      "sluice-acme-function-throttles-work-heavy",
      "sluice-acme-queue-age-work-heavy",
    ],
  );
  const service = names({ cloud: { bridge: "fargate", network: { vpcId: "new" } } });
  assert.deepEqual(
    usual.filter((name) => !service.includes(name)),
    ["sluice-acme-function-errors-bridge", "sluice-acme-function-throttles-bridge"],
  );
});

/** What an alarm on one of AWS's metrics says, as a line. */
const watching = z
  .object({
    AlarmName: z.string(),
    Statistic: z.string(),
    MetricName: z.string(),
    Dimensions: z.tuple([z.object({ Value: z.unknown() })]),
    ComparisonOperator: z.literal("GreaterThanThreshold"),
    Threshold: z.number(),
    DatapointsToAlarm: z.int(),
    EvaluationPeriods: z.int(),
    Period: z.literal(60),
    TreatMissingData: z.literal("notBreaching"),
  })
  .transform((of) => {
    const [, whose] = /"(\w+?)[0-9A-F]{8}"/.exec(JSON.stringify(of.Dimensions[0].Value)) ?? [];
    const periods = `${of.DatapointsToAlarm} of ${of.EvaluationPeriods}`;
    return [
      of.AlarmName.replace("sluice-acme-", ""),
      `${of.Statistic} ${of.MetricName} of ${whose} > ${of.Threshold}, ${periods}`,
    ] as const;
  });

test("alarms on AWS's metrics look at their own resource, as docs/metrics.md says", () => {
  const all = resources(
    Template.fromStack(stackWith({ functions: { heavy: { timeoutSec: 60 } } })),
    "AWS::CloudWatch::Alarm",
  ).filter(({ Properties }) => Properties.MetricName !== undefined && Properties.Statistic !== undefined);
  const queues = { tasks: 300, controls: 300, events: 300, work: 6_600, "work-heavy": 1_560 };
  const functions = { bridge: 75, admit: 30, control: 30, events: 30, work: 900, sweep: 60, cards: 45 };
  const title = (name: string) => `${name[0]?.toUpperCase()}${name.slice(1).replace("-", "")}`;
  const expected = [
    ...Object.entries(queues).flatMap(([name, age]) => [
      [
        `dead-letters-${name}`,
        `Maximum ApproximateNumberOfMessagesVisible of ${title(name)}Dead > 0, 1 of 1`,
      ],
      [`queue-age-${name}`, `Maximum ApproximateAgeOfOldestMessage of ${title(name)} > ${age}, 3 of 3`],
    ]),
    ...Object.entries({ ...functions, "work-heavy": 60 }).flatMap(([name, sec]) => {
      const whose = name.replace("-", "");
      return [
        [`function-errors-${name}`, `Average Errors of ${whose} > 0.1, 3 of 5`],
        [`function-throttles-${name}`, `Sum Throttles of ${whose} > 0, 3 of 5`],
        ...(name === "bridge"
          ? []
          : [[`function-duration-${name}`, `Maximum Duration of ${whose} > ${(sec - 5) * 1_000}, 3 of 5`]]),
      ];
    }),
  ];
  assert.deepEqual(
    Object.fromEntries(all.map(({ Properties }) => watching.parse(Properties))),
    Object.fromEntries(expected),
  );
});

test("a stage has its own dashboard, alarms, queries and metrics", () => {
  const template = Template.fromStack(stackWith({ cloud: { stage: "dev" } }));
  // Of all names in a stack this alone must be unique in all regions of the account.
  const dashboard = { "Fn::Join": ["", ["sluice-acme--dev-", { Ref: "AWS::Region" }]] };
  template.hasResourceProperties("AWS::CloudWatch::Dashboard", { DashboardName: dashboard });
  template.hasResourceProperties("AWS::CloudWatch::Alarm", { AlarmName: "sluice-acme--dev-bridge-silent" });
  const body = JSON.stringify(template.findResources("AWS::CloudWatch::Dashboard"));
  assert.match(body, /Sluice\/sluice-acme--dev/);
  assert.doesNotMatch(body, /Sluice\/sluice-acme[^-]/);
  for (const { Properties } of resources(template, "AWS::Logs::QueryDefinition")) {
    assert.match(String(Properties.Name), /^sluice-acme--dev\//);
    assert.equal(z.array(z.unknown()).parse(Properties.LogGroupNames).length, 7);
  }
});

test("no alarm and no widget can look at dimensions under which nothing is published", () => {
  const own = new OwnMetrics(stackWith());
  assert.throws(
    () => own.of("work", "TasksEnded", { dimensions: { runtime: "a" } }),
    /not published by runtime/,
  );
  assert.throws(() => own.of("work", "StepsRetried"), /service alone/);
});
