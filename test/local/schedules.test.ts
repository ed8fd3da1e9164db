import assert from "node:assert/strict";
import test from "node:test";
import { eventually, startTestHost } from "./support/host.ts";

const NOTES = `
import { appendFileSync } from "node:fs";
let calls = 0;
export const handler = async (event) => {
  calls++;
  appendFileSync(process.env.OUT, JSON.stringify(event) + "\\n");
  if (process.env.FAIL) throw new Error("no luck");
  if (process.env.HANG) await new Promise((done) => setTimeout(done, 60_000));
};
`;

const rule = (target: Record<string, unknown> = {}, expression = "rate(1 minute)") => ({
  Type: "AWS::Events::Rule",
  Properties: {
    ScheduleExpression: expression,
    Targets: [{ Id: "t", Arn: { "Fn::GetAtt": ["notes", "Arn"] }, ...target }],
  },
});

const invokeConfig = (MaximumRetryAttempts: number) => ({
  Type: "AWS::Lambda::EventInvokeConfig",
  Properties: { FunctionName: { Ref: "notes" }, Qualifier: "$LATEST", MaximumRetryAttempts },
});

test("a rule fires when the host starts, and again each period", async (t) => {
  const host = await startTestHost(
    t,
    { functions: { notes: { source: NOTES } }, resources: { minute: rule() } },
    { timeScale: 300 },
  );
  const lines = await eventually(host.seen, (seen) => seen.length >= 3);
  const { id, time, ...event } = JSON.parse(lines[0] ?? "");
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.equal(new Date(time).toISOString(), time);
  assert.deepEqual(event, {
    version: "0",
    "detail-type": "Scheduled Event",
    source: "aws.events",
    account: "000000000000",
    region: "us-east-1",
    resources: ["arn:aws:events:us-east-1:000000000000:rule/minute"],
    detail: {},
  });
});

test("a schedule of EventBridge Scheduler gives the declared input; a disabled one nothing", async (t) => {
  const schedule = (State: string, input: unknown) => ({
    Type: "AWS::Scheduler::Schedule",
    Properties: {
      ScheduleExpression: "rate(1 hours)",
      State,
      FlexibleTimeWindow: { Mode: "OFF" },
      Target: { Arn: { "Fn::GetAtt": ["notes", "Arn"] }, RoleArn: "any", Input: JSON.stringify(input) },
    },
  });
  const host = await startTestHost(t, {
    functions: { notes: { source: NOTES } },
    resources: { on: schedule("ENABLED", { hello: 1 }), off: schedule("DISABLED", { hello: 2 }) },
  });
  await eventually(host.seen, (seen) => seen.length === 1);
  assert.deepEqual(host.seen(), ['{"hello":1}']);
});

test("an event that fails is tried again as often as declared, with the same event", async (t) => {
  const input = { Input: '{"n":1}' };
  const once = await startTestHost(
    t,
    {
      functions: { notes: { source: NOTES } },
      resources: { day: rule(input, "rate(1 day)"), config: invokeConfig(1) },
    },
    { timeScale: 600, env: { FAIL: "1" } },
  );
  const troubles = () => once.events.flatMap((event) => (event.type === "trouble" ? [event.message] : []));
  await eventually(troubles, (lines) => lines.length === 2);
  assert.deepEqual(once.seen(), ['{"n":1}', '{"n":1}']);
  assert.deepEqual(troubles(), ["notes: Error: no luck", "notes: Error: no luck"]);
});

test("events of a function that does not keep up do not pile up", async (t) => {
  const host = await startTestHost(
    t,
    {
      functions: { notes: { source: NOTES, properties: { Timeout: 900, ReservedConcurrentExecutions: 1 } } },
      resources: { minute: rule(), config: invokeConfig(0) },
    },
    { timeScale: 600, env: { HANG: "1" } },
  );
  await eventually(host.seen, (seen) => seen.length === 1);
  assert.equal(host.functions().find(({ name }) => name === "notes")?.pids.length, 1);
});

test("an expression that the host does not know is an error that names it", async (t) => {
  await assert.rejects(
    startTestHost(t, {
      functions: { notes: { source: NOTES } },
      resources: { odd: rule({}, "cron(0 0 * * ? *)") },
    }),
    /odd: ScheduleExpression "cron\(0 0 \* \* \? \*\)": the local host knows rate/,
  );
});
