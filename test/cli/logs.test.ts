import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import * as z from "zod";
import { patternsOf } from "../../cli/logs/cloudwatch.ts";
import { lineOf } from "../../cli/logs/line.ts";
import { localLogs } from "../../cli/logs/local.ts";
import { linesAbout } from "../../cli/logs/task.ts";
import { dated, LogFile } from "../../infra/local/log-file.ts";
import { playAws } from "../support/aws.ts";
import { until } from "../support/until.ts";
import { run, start } from "./run.ts";

/** A folder in which a host seems to run, of which only the logs are needed: its table cannot be reached. */
const cwd = mkdtempSync(join(tmpdir(), "sluice-logs-"));
const dataDir = join(cwd, ".sluice");
const logs = join(dataDir, "logs");
mkdirSync(logs, { recursive: true });
const closed = "http://127.0.0.1:1";
writeFileSync(
  join(dataDir, "host.json"),
  JSON.stringify({
    pid: process.pid,
    nats: "nats://127.0.0.1:1",
    dynamodb: closed,
    s3: closed,
    sqs: closed,
    table: "t",
    bucket: "b",
    dataDir,
  }),
);
after(() => rmSync(cwd, { recursive: true, force: true }));

const TASK = "task_0123456789abcdef01234567";
const START = Date.now() - 10_000;

/** A line as Powertools' logger writes it. */
function line(
  service: string,
  offset: number,
  message: string,
  fields: Record<string, unknown> = {},
  level = "INFO",
): string {
  const timestamp = new Date(START + offset).toISOString();
  return JSON.stringify({ level, message, timestamp, service, cold_start: true, ...fields });
}

const write = (name: string, ...lines: string[]) =>
  appendFileSync(join(logs, `${name}.log`), lines.map((text) => `${text}\n`).join(""));

const request = randomUUID();
const of = { taskId: TASK, function_request_id: request };
write("admit", line("admit", 0, "a task is accepted", { taskId: TASK, from: "a-b", skill: "two words" }));
write(
  "work",
  `START RequestId: ${request} Version: $LATEST`,
  line("work", 5, "another task", { taskId: "task_other" }),
  line("work", 20, "a step has failed", { ...of, errorMessage: "\u001b[31mno ink" }, "WARN"),
  JSON.stringify({ _aws: {}, taskId: TASK }),
  `ERROR RequestId: ${request} Sandbox.Timedout: RequestId: ${request} Error: Task timed out after 900.00 seconds`,
  `REPORT RequestId: ${request}\tDuration: 900000 ms`,
);
write("sweep", line("sweep", 10, "a task could not be attended to", { taskId: TASK }, "ERROR"));

const record = z.strictObject({
  at: z.iso.datetime(),
  function: z.string(),
  level: z.string(),
  message: z.string(),
  requestId: z.string().nullable(),
  fields: z.record(z.string(), z.unknown()),
});

test("the lines of one task come together in order of time, with what Lambda says of its invocations", async () => {
  const { code, stdout, stderr } = await run(["logs", TASK], { cwd });
  assert.equal(code, 0, stderr);
  const lines = stdout.trimEnd().split("\n");
  const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}`;
  const wanted = [
    'admit    INFO   a task is accepted  from=a-b  skill="two words"',
    "sweep    ERROR  a task could not be attended to",
    'work     WARN   a step has failed  errorMessage="no ink"',
    `work            ERROR RequestId: ${request} .*Task timed out after 900.00 seconds`,
  ];
  assert.equal(lines.length, wanted.length, stdout);
  for (const [index, pattern] of wanted.entries())
    assert.match(lines[index] ?? "", new RegExp(`^${time}  ${pattern}$`));

  const { json } = await run(["logs", TASK, "--json"], { cwd });
  const records = json().map((value) => record.parse(value));
  assert.deepEqual(
    records.map(({ function: name, level }) => [name, level]),
    [
      ["admit", "INFO"],
      ["sweep", "ERROR"],
      ["work", "WARN"],
      ["work", ""],
    ],
  );
  assert.deepEqual(records[0]?.fields, { taskId: TASK, from: "a-b", skill: "two words" });
  assert.equal(records[2]?.requestId, request);
});

test("a death is shown at its own time, and not at that of the line before it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-logs-death-"));
  const file = new LogFile(join(folder, "work.log"));
  const started = dated(`START RequestId: ${request} Version: $LATEST`, START);
  const died = dated(`ERROR RequestId: ${request} Runtime.ExitError: Runtime exited`, START + 4_000);
  for (const text of [started, line("work", 1, "a task is taken up", of), died]) file.write(text);
  file.close();
  assert.deepEqual(
    (await linesAbout(localLogs(folder), [TASK], 0).next()).map(({ message, at }) => [message, at - START]),
    [
      ["a task is taken up", 1],
      [`ERROR RequestId: ${request} Runtime.ExitError: Runtime exited`, 4_000],
    ],
  );
  rmSync(folder, { recursive: true });
});

test("a beginning means the tasks whose ids begin so, with or without task_, and each line then tells whose it is", async () => {
  const [one, other] = ["task_311f0", "task_311f1"];
  const both = randomUUID();
  const subject = `a2a.v1.control.a-b.c-d.${other}.cancel`;
  write("work", line("work", 1, "one", { taskId: one, function_request_id: both, epoch: 1 }));
  write("work", line("work", 2, "its child", { taskId: "task_77", messageId: `dlg_${one.slice(5)}_1` }));
  write("control", line("control", 3, "not taken", { subject }, "WARN"));
  write("work", line("work", 4, "other", { taskId: other, function_request_id: both }));
  write("work", dated(`ERROR RequestId: ${both} Runtime exited`, START + 5));
  const read = async (text: string) => {
    const { stdout } = await run(["logs", text], { cwd });
    return stdout
      .trimEnd()
      .split("\n")
      .map((text) => text.split(/ {2,}/).slice(2));
  };
  const lines = await read("311f");
  assert.deepEqual(lines, [
    ["INFO", "one", `taskId=${one}`, "epoch=1"],
    ["WARN", "not taken", `taskId=${other}`, `subject=${subject}`],
    ["INFO", "other", `taskId=${other}`],
    [`ERROR RequestId: ${both} Runtime exited`, `taskId=${one}`, `taskId=${other}`],
  ]);
  assert.deepEqual(await read("task_311f"), lines);
  // Of one task alone it need not be said.
  assert.deepEqual(await read("311f0"), [
    ["INFO", "one", "epoch=1"],
    [`ERROR RequestId: ${both} Runtime exited`],
  ]);
});

test("a task that nobody has logged, and wrong command lines", async () => {
  const none = await run(["logs", "task_none", "--hours", "2"], { cwd });
  assert.equal(none.code, 1);
  assert.match(none.stderr, /^sluice: task task_none: no line of it in .*logs since .*; --hours looks/);
  for (const args of [[], ["a b"], [TASK, "--hours", "0"], [TASK, "--stack", ""]])
    assert.equal((await run(["logs", ...args], { cwd })).code, 2, args.join(" "));
});

test("--follow goes on with what is written, until Ctrl-C", async () => {
  const following = start(["logs", "task_followed", "--follow", "--json"], { cwd });
  let said = "";
  following.onOutput((text) => {
    said += text;
  });
  write("admit", line("admit", 1, "first", { taskId: "task_followed" }));
  await until("the first line", () => said.includes("first"));
  write("work", line("work", 2, "second", { taskId: "task_followed" }));
  await until("the second line", () => said.includes("second"));
  following.signal("SIGINT");
  const { code, json } = await following.finished;
  assert.equal(code, 0);
  assert.deepEqual(
    json().map((value) => record.parse(value).message),
    ["first", "second"],
  );
});

test("a log file that is put aside at its bound is read on, and no line twice", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-logs-turn-"));
  const path = join(folder, "work.log");
  const file = new LogFile(path, 400);
  const tail = localLogs(folder).tail({ of: ["task_t"], since: 0 });
  const seen: string[] = [];
  for (let index = 0; index < 6; index++) {
    file.write(line("work", index, `line ${index}`, { taskId: "task_t" }));
    seen.push(...(await tail.next()).map(({ message }) => message));
  }
  assert.deepEqual(seen, ["line 0", "line 1", "line 2", "line 3", "line 4", "line 5"]);
  // A line without its end is left for later.
  appendFileSync(path, line("work", 9, "half", { taskId: "task_t" }));
  assert.deepEqual(await tail.next(), []);
  appendFileSync(path, "\n");
  renameSync(path, `${path}.1`);
  assert.deepEqual(
    (await tail.next()).map(({ message }) => message),
    ["half"],
  );
  file.close();
  rmSync(folder, { recursive: true });
});

test("a stack's lines are found in the log groups that it has made, page by page", async () => {
  await using aws = await playAws({ dynamodb: closed, sqs: closed });
  const groups = ["admit", "work"].map((name) => `sluice-acme-${name}Logs`);
  aws.played.stacks["sluice-acme"] = {
    outputs: { TableName: "t", BucketName: "b" },
    resources: [
      ["admitLogs0A1B2C3D", "AWS::Logs::LogGroup", groups[0] ?? ""],
      ["workLogs0A1B2C3D", "AWS::Logs::LogGroup", groups[1] ?? ""],
      ["Table", "AWS::DynamoDB::Table", "t"],
    ],
  };
  const event = (at: number, message: string) => ({ eventId: randomUUID(), timestamp: START + at, message });
  aws.played.logs[groups[0] ?? ""] = [
    event(0, line("admit", 0, "a task is accepted", { taskId: TASK })),
    event(1, line("admit", 1, "another", { taskId: "task_other" })),
  ];
  aws.played.logs[groups[1] ?? ""] = [
    event(5, line("work", 5, "claimed", of)),
    event(9, `${new Date(START + 7).toISOString()} ${request} Task timed out after 900.00 seconds\n\n`),
    event(8, `RequestId: ${request} Error: Runtime exited with error: exit status 1\nRuntime.ExitError`),
    event(9, `REPORT RequestId: ${request}`),
  ];
  const deployed = (...args: string[]) =>
    run(["logs", TASK, "--stack", "sluice-acme", "--json", ...args], { cwd: tmpdir(), env: aws.env });
  const { code, stderr, json } = await deployed();
  assert.equal(code, 0, stderr);
  assert.deepEqual(
    json()
      .map((value) => record.parse(value))
      .map(({ function: name, message, at }) => [name, message, Date.parse(at) - START]),
    [
      ["admit", "a task is accepted", 0],
      ["work", "claimed", 5],
      ["work", `${request} Task timed out after 900.00 seconds`, 7],
      ["work", `RequestId: ${request} Error: Runtime exited with error: exit status 1\nRuntime.ExitError`, 8],
    ],
  );
  aws.played.refused.add("FilterLogEvents");
  const refused = await deployed();
  assert.equal(refused.code, 3);
  assert.match(refused.stderr, /cannot read the logs of the stack sluice-acme: you are not allowed/);
});

test("a pattern is never longer than CloudWatch takes", () => {
  assert.deepEqual(patternsOf(["a"]), ['"a"']);
  assert.deepEqual(patternsOf(["a", 'b"c']), ['?"a" ?"bc"']);
  const many = patternsOf(Array.from({ length: 100 }, () => randomUUID()));
  assert.equal(many.join(" ").match(/\?"/g)?.length, 100);
  for (const pattern of many) assert.ok(pattern.length <= 1_024);
  assert.ok((many[0]?.length ?? 0) > 1_024 - 40);
});

test("what is no line of a task is left out", async () => {
  const found = (text: string) => lineOf({ id: "1", text, function: "work", at: 5 });
  for (const text of ["", " ", "START RequestId: x", "INIT_START Runtime", "{}", '{"level":1}', "{broken"])
    assert.equal(found(text), undefined, text);
  assert.deepEqual(found("Runtime exited"), {
    id: "1",
    at: 5,
    function: "work",
    level: "",
    message: "Runtime exited",
    fields: {},
  });
  // Of an invocation that has written none of the task's lines nothing is told.
  const tail = linesAbout(localLogs(logs), ["task_other"], 0);
  assert.deepEqual(
    (await tail.next()).map(({ message }) => message),
    ["another task"],
  );
});
