import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import type { InvocationResult } from "../../infra/local/host.ts";
import { eventually, isAlive, startTestHost } from "./support/host.ts";

/** A function that does as its event says. */
const OBEDIENT = `
import { appendFileSync, readFileSync } from "node:fs";
import { spawn } from "node:child_process";
const say = (line) => appendFileSync(process.env.OUT, line + "\\n");
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
let calls = 0;
const acts = {
  pid: () => ({ pid: process.pid, calls }),
  throw: () => { throw new RangeError("not today"); },
  exit: ({ code }) => process.exit(code),
  kill: () => process.kill(process.pid, "SIGKILL"),
  hang: () => new Promise(() => setInterval(() => {}, 1000)),
  spin: () => { for (;;); },
  reject: () => { Promise.reject(new TypeError("left alone")); return wait(1000); },
  later: () => { setTimeout(() => { throw new Error("much later"); }, 1); return wait(1000); },
  heap: () => { const all = []; for (;;) all.push({ at: all.length }); },
  buffers: async () => { const all = []; for (;;) { all.push(Buffer.alloc(16e6, 1)); await wait(1); } },
  cyclic: () => { const it = {}; it.it = it; return it; },
  nothing: () => undefined,
  huge: () => "x".repeat(6 * 1024 * 1024),
  child: () => ({ child: spawn("sleep", ["1000"], { stdio: "ignore" }).pid }),
  apart: async () => {
    const { pid, stdout } = spawn("sh", ["-c", "sleep 1000 & echo $!; wait"], { detached: true });
    for await (const said of stdout) return { leader: pid, child: Number(said) };
  },
  context: (_, context) => ({ ...context, left: context.getRemainingTimeInMillis(), env: process.env }),
  meet: async ({ want }) => {
    say("here");
    while (readFileSync(process.env.OUT, "utf8").split("here").length <= want) await wait(10);
  },
  enter: async ({ name }) => { say("in " + name); await wait(100); say("out " + name); return process.pid; },
};
export const handler = async (event, context) => { calls++; return acts[event.act](event, context); };
`;

const stack = (properties: Record<string, unknown> = {}) => ({
  functions: { obedient: { source: OBEDIENT, properties } },
});

function value(result: InvocationResult): Record<string, unknown> {
  assert.ok(result.ok, JSON.stringify(result));
  return JSON.parse(result.payload);
}

function failed(result: InvocationResult): { errorType: string; errorMessage: string } {
  assert.ok(!result.ok, "expected a failed invocation");
  return result;
}

test("a warm process is used again, and what a handler throws does not end it", async (t) => {
  const host = await startTestHost(t, stack());
  const first = value(await host.invoke("obedient", { act: "pid" }));
  const thrown = failed(await host.invoke("obedient", { act: "throw" }));
  assert.deepEqual([thrown.errorType, thrown.errorMessage], ["RangeError", "not today"]);
  const third = value(await host.invoke("obedient", { act: "pid" }));
  assert.deepEqual(third, { pid: first.pid, calls: 3 });
});

test("a process that ends fails its invocation and is replaced", async (t) => {
  const host = await startTestHost(t, stack({ Timeout: 30, MemorySize: 192 }));
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ act: "exit", code: 3 }, /Runtime\.ExitError.*Runtime exited with error: exit status 3/],
    [{ act: "exit", code: 0 }, /Runtime\.ExitError.*Runtime exited without providing a reason/],
    [{ act: "kill" }, /Runtime\.ExitError.*Runtime exited with error: signal: SIGKILL/],
    [{ act: "reject" }, /Runtime\.UnhandledPromiseRejection.*left alone/],
    [{ act: "later" }, /Runtime\.UncaughtException.*much later/],
    [{ act: "heap" }, /Runtime\.ExitError.*Runtime exited with error: signal: (SIGABRT|SIGTRAP|killed)/],
    [{ act: "buffers" }, /Runtime\.ExitError.*signal: killed \(over its 192 MB of memory\)/],
  ];
  for (const [event, expected] of cases) {
    const { pid } = value(await host.invoke("obedient", { act: "pid" }));
    const { errorType, errorMessage } = failed(await host.invoke("obedient", event));
    assert.match(`${errorType}: ${errorMessage}`, expected);
    const after = value(await host.invoke("obedient", { act: "pid" }));
    assert.notEqual(after.pid, pid);
    assert.equal(after.calls, 1);
    // It has told its error, and is leaving.
    await eventually(() => !isAlive(Number(pid)));
  }
  // In its log each death stands after the time of its own.
  const logged = readFileSync(join(host.dataDir, "logs", "obedient.log"), "utf8");
  assert.equal(logged.match(/^\d{4}-\d\d-\d\dT[\d:.]+Z ERROR RequestId: /gm)?.length, cases.length);
});

test("an invocation that overruns its time is killed, even if it never yields", async (t) => {
  const host = await startTestHost(t, stack({ Timeout: 1 }));
  for (const act of ["hang", "spin"]) {
    const { errorType, errorMessage } = failed(await host.invoke("obedient", { act }));
    assert.equal(errorType, "Sandbox.Timedout");
    assert.match(errorMessage, /Task timed out after 1\.00 seconds/);
  }
  assert.equal(value(await host.invoke("obedient", { act: "pid" })).calls, 1);
});

test("what a function answers must be JSON, and at most 6 MB of it", async (t) => {
  const host = await startTestHost(t, stack());
  assert.match(failed(await host.invoke("obedient", { act: "cyclic" })).errorMessage, /circular/);
  assert.deepEqual(await host.invoke("obedient", { act: "nothing" }), { ok: true, payload: "null" });
  assert.equal(
    failed(await host.invoke("obedient", { act: "huge" })).errorType,
    "Function.ResponseSizeTooLarge",
  );
});

test("what a function started ends with it", async (t) => {
  const host = await startTestHost(t, stack());
  const { child } = value(await host.invoke("obedient", { act: "child" }));
  assert.equal(isAlive(Number(child)), true);
  failed(await host.invoke("obedient", { act: "exit", code: 1 }));
  await eventually(() => !isAlive(Number(child)));
});

test("what a function started in a group of its own ends with it, and nothing of its neighbours", async (t) => {
  const host = await startTestHost(t, {
    functions: { obedient: { source: OBEDIENT }, neighbour: { source: OBEDIENT } },
  });
  const ours = value(await host.invoke("obedient", { act: "apart" }));
  const theirs = value(await host.invoke("neighbour", { act: "apart" }));
  const pids = (of: Record<string, unknown>) => [Number(of.leader), Number(of.child)];
  failed(await host.invoke("obedient", { act: "kill" }));
  await eventually(() => !pids(ours).some(isAlive));
  assert.deepEqual(pids(theirs).map(isAlive), [true, true]);
  await host.stop();
  assert.deepEqual(pids(theirs).map(isAlive), [false, false]);
});

test("a function that cannot be loaded fails its invocation in words, each time", async (t) => {
  const host = await startTestHost(t, {
    functions: {
      broken: { source: 'throw new Error("no configuration");' },
      empty: { source: "export const other = 1;" },
      missing: { source: "", properties: { Handler: "elsewhere.handler" } },
    },
  });
  for (const name of ["broken", "broken"])
    assert.equal(failed(await host.invoke(name, {})).errorMessage, "no configuration");
  assert.equal(failed(await host.invoke("empty", {})).errorType, "Runtime.HandlerNotFound");
  assert.equal(failed(await host.invoke("missing", {})).errorType, "Runtime.ImportModuleError");
});

test("a function sees its declared environment, its context and where the parts are, and no secret of ours", async (t) => {
  process.env.SLUICE_TEST_SECRET = "hidden";
  const declared = { Variables: { FUNCTION: { Ref: "obedient" }, PLAIN: "text" } };
  const host = await startTestHost(t, stack({ Timeout: 20, MemorySize: 300, Environment: declared }), {
    env: { FURTHER: "more" },
    timeScale: 2,
  });
  const { env, left, ...context } = value(await host.invoke("obedient", { act: "context" }));
  assert.ok(typeof env === "object" && env !== null && typeof left === "number");
  assert.ok(left > 0 && left <= 10_000, `the declared time by the scale, got ${left}`);
  assert.match(String(context.awsRequestId), /^[0-9a-f-]{36}$/);
  const { awsRequestId: _, ...rest } = context;
  assert.deepEqual(rest, {
    callbackWaitsForEmptyEventLoop: true,
    functionName: "obedient",
    functionVersion: "$LATEST",
    invokedFunctionArn: "arn:aws:lambda:us-east-1:000000000000:function:obedient",
    logGroupName: "/aws/lambda/obedient",
    logStreamName: "local",
    memoryLimitInMB: "300",
  });
  const variables: Record<string, unknown> = { ...env };
  assert.partialDeepStrictEqual(variables, {
    FUNCTION: "obedient",
    PLAIN: "text",
    FURTHER: "more",
    TIME_SCALE: "2",
    AWS_REGION: "us-east-1",
    AWS_ENDPOINT_URL_DYNAMODB: host.endpoints.dynamodb,
    AWS_ENDPOINT_URL_SQS: host.endpoints.sqs,
    AWS_ENDPOINT_URL_S3: host.endpoints.s3,
    NATS_SERVERS: host.endpoints.nats,
    NATS_CREDENTIALS: "none",
  });
  assert.equal(variables.SLUICE_TEST_SECRET, undefined);
});

test("reserved concurrency bounds the processes", async (t) => {
  const host = await startTestHost(t, stack({ ReservedConcurrentExecutions: 2 }));
  const names = ["a", "b", "c", "d", "e", "f"];
  const results = await Promise.all(names.map((name) => host.invoke("obedient", { act: "enter", name })));
  assert.ok(results.every(({ ok }) => ok));
  assert.ok(mostAtOnce(host.seen()) <= 2);
  assert.ok((host.functions()[0]?.pids.length ?? 0) <= 2);
});

test("without reserved concurrency as many run at once as are invoked", async (t) => {
  const host = await startTestHost(t, stack({ Timeout: 120 }));
  const invocations = Array.from({ length: 4 }, () => host.invoke("obedient", { act: "meet", want: 4 }));
  assert.ok((await Promise.all(invocations)).every(({ ok }) => ok));
});

test("each invocation is reported with its time and memory", async (t) => {
  const host = await startTestHost(t, stack());
  await host.invoke("obedient", { act: "pid" });
  await host.invoke("obedient", { act: "pid" });
  const lines = host.events.flatMap((event) => (event.type === "line" ? [event.line] : []));
  const reports = lines.filter((line) => line.startsWith("REPORT"));
  const report =
    /^REPORT RequestId: \S+\tDuration: \S+ ms\tBilled Duration: \d+ ms\tMemory Size: 256 MB\tMax Memory Used: [1-9]\d* MB/;
  assert.equal(reports.length, 2);
  for (const line of reports) assert.match(line, report);
  assert.deepEqual(
    reports.map((line) => line.includes("Init Duration")),
    [true, false],
  );
});

function mostAtOnce(lines: readonly string[]): number {
  let now = 0;
  return Math.max(...lines.map((line) => (now += line.startsWith("in ") ? 1 : -1)));
}
