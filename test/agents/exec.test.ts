import assert from "node:assert/strict";
import { test } from "node:test";
import { startTask } from "sluice/testing";
import * as z from "zod";
import exec, { settings } from "../../agents/exec.ts";
import { MAX_ARG_LENGTH, MAX_ARGS } from "../../agents/parts/command.ts";
import { dieAtEachWrite } from "../support/kill-points.ts";

const node = process.execPath;
const commands = {
  hello: [node, "-e", "console.log('hello')"],
  fail: [node, "-e", "console.error('oops'); process.exitCode = 3"],
  args: { argv: [node, "-p", "JSON.stringify(process.argv.slice(1))"], args: true },
  env: [node, "-p", "JSON.stringify(process.env)"],
  slow: { argv: [node, "-e", "console.log('started'); setInterval(() => {}, 1000)"], timeoutSec: 0.5 },
  missing: ["/nonexistent/program"],
};
const data = z.looseObject({
  exitCode: z.number().nullable(),
  stdout: z.string(),
  stderr: z.string(),
  durationMs: z.number(),
  timedOut: z.boolean(),
});
/** What a task brings; one that fails throws its error's message. */
const ask = async (message: unknown, settings: unknown = { commands }) => {
  const { text, data: given, error } = await (await startTask(exec, { message, settings })).outcome();
  if (error !== null) throw new Error(error.message);
  return { text, data: data.parse(given) };
};

test("runs an allowed command, asked for as text or data", async () => {
  for (const a2a of ["hello", { parts: [{ data: { command: "hello" } }] }, '{"command":"hello"}']) {
    const { text, data } = await ask(a2a);
    assert.deepEqual([data.exitCode, data.stdout, data.stderr], [0, "hello\n", ""]);
    assert.equal(text, "hello: exit code 0\nhello");
  }
});

test("a non-zero exit is a result that carries it", async () => {
  const { text, data } = await ask("fail");
  assert.deepEqual([data.exitCode, data.stderr], [3, "oops\n"]);
  assert.equal(text, "fail: exit code 3\noops");
});

test("arguments reach the program as argv, never a shell", async () => {
  const args = ["$(id)", "; rm -rf /", "a b", "*", "`x`", "&&"];
  assert.deepEqual(
    JSON.parse((await ask({ parts: [{ data: { command: "args", args } }] })).data.stdout),
    args,
  );
  assert.deepEqual(JSON.parse((await ask("args  one\ttwo")).data.stdout), ["one", "two"]);
});

test("nothing but what the operator allows", async () => {
  await assert.rejects(ask("rm -rf /"), /"rm" is not allowed; allowed: hello, fail, /);
  await assert.rejects(ask("constructor"), /FatalError: "constructor" is not allowed/);
  await assert.rejects(ask(""), /FatalError: "" is not allowed/);
  await assert.rejects(ask("hello there"), /hello takes no arguments/);
  await assert.rejects(ask("hello", {}), /allowed: none \(see `commands`/);
  await assert.rejects(ask({ parts: [{ data: { command: "hello", shell: true } }] }), /shell/);
  await assert.rejects(ask("missing"), /cannot run \/nonexistent\/program: /);
});

test("arguments at their bounds", async () => {
  const ok = await ask({ parts: [{ data: { command: "args", args: Array(MAX_ARGS).fill("x") } }] });
  assert.equal(JSON.parse(ok.data.stdout).length, MAX_ARGS);
  for (const args of [Array(MAX_ARGS + 1).fill("x"), ["x".repeat(MAX_ARG_LENGTH + 1)], ["a\0b"]])
    await assert.rejects(ask({ parts: [{ data: { command: "args", args } }] }), /input\.args/);
});

test("the environment holds no secrets of ours", async () => {
  process.env.SLUICE_TEST_SECRET = "s3cret";
  const { data } = await ask("env");
  delete process.env.SLUICE_TEST_SECRET;
  const names = Object.keys(JSON.parse(data.stdout)).sort();
  assert.deepEqual(names, ["HOME", "LANG", "PATH"]);
});

test("a command whose time is up is killed, and what it wrote is kept", async () => {
  const { text, data } = await ask("slow");
  assert.deepEqual([data.timedOut, data.exitCode, data.stdout], [true, null, "started\n"]);
  assert.match(text, /^slow: stopped after \d+ ms: its time was up\nstarted$/);
});

test("settings: argv alone, or with what a task may add; anything else is refused", () => {
  const { commands } = settings.parse({
    commands: { disk: ["df", "-h"], ping: { argv: ["ping"], args: true, timeoutSec: 840 } },
  });
  assert.deepEqual(commands.disk, { argv: ["df", "-h"], args: false, timeoutSec: 60 });
  assert.deepEqual(commands.ping, { argv: ["ping"], args: true, timeoutSec: 840 });
  for (const wrong of [
    { x: [] },
    { x: [""] },
    { x: "df -h" },
    { x: ["df", "\0"] },
    { x: { argv: ["a"], timeoutSec: 841 } },
    { "a b": ["a"] },
  ])
    assert.equal(settings.safeParse({ commands: wrong }).success, false, JSON.stringify(wrong));
  assert.equal(settings.safeParse({ command: {} }).success, false);
});

for (const when of ["before", "after"] as const)
  test(`whichever write a process dies ${when}, the task ends with the same events`, async () => {
    await dieAtEachWrite({
      agent: exec,
      start: { text: "hello", settings: { commands: { hello: ["echo", "hello"] } } },
      when,
      play: (task) => task.outcome(),
      eventsOf: (events) =>
        events.map(({ revision, kind, state, content }) => [revision, kind, state, content]),
    });
  });
