import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import * as z from "zod";
import exec, { HeadAndTail, KEPT_BYTES, MAX_ARG_LENGTH, MAX_ARGS, run, settings } from "../../agents/exec.ts";
import { Processes } from "../../infra/local/processes.ts";
import { FatalError } from "../../shared/agents/index.ts";
import { isAlive } from "../local/support/host.ts";
import { perform } from "./perform.ts";

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
const ask = async (a2a: unknown, signal?: AbortSignal) => {
  const { outcome } = await perform(exec, a2a, { settings: { commands }, ...(signal && { signal }) });
  return { text: outcome.text ?? "", data: data.parse(outcome.data) };
};
const alive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
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
  await assert.rejects(ask("rm -rf /"), /command "rm" is not allowed; allowed: hello, fail, /);
  await assert.rejects(ask("constructor"), FatalError);
  await assert.rejects(ask(""), FatalError);
  await assert.rejects(ask("hello there"), /command hello takes no arguments/);
  await assert.rejects(perform(exec, "hello"), /allowed: none/);
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

test("the signal kills the whole process group", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "sluice-exec-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const pids = join(dir, "pids");
  const script = `
    const child = require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    require("node:fs").writeFileSync(${JSON.stringify(pids)}, process.pid + " " + child.pid);
    setInterval(() => {}, 1000);`;
  const stop = new AbortController();
  const running = run([node, "-e", script], 60_000, stop.signal);
  const failed = assert.rejects(running, /stop it/);
  while (!existsSync(pids) || readFileSync(pids, "utf8") === "") await sleep(10);
  stop.abort(new Error("stop it"));
  await failed;
  const left = readFileSync(pids, "utf8").split(" ").map(Number);
  for (let tries = 200; tries > 0 && left.some(alive); tries--) await sleep(10);
  assert.deepEqual(left.filter(alive), []);
  await assert.rejects(run([node, "-v"], 1_000, stop.signal), /stop it/);
});

/** A process that runs the agent's command, as a worker does; `pid` is the command's, which says its own. */
async function worker(t: TestContext, env: Record<string, string>) {
  const exec = JSON.stringify(new URL("../../agents/exec.ts", import.meta.url).href);
  const dir = mkdtempSync(join(tmpdir(), "sluice-exec-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, "pid");
  const command = `require("node:fs").writeFileSync(${JSON.stringify(file)}, String(process.pid));
    setInterval(() => {}, 1000)`;
  const argv = JSON.stringify([node, "-e", command]);
  const script = `const { run } = await import(${exec}); await run(${argv}, 600000, AbortSignal.timeout(600000));`;
  const child = spawn(node, ["--input-type=module", "-e", script], {
    cwd: new URL("../..", import.meta.url),
    env: { PATH: process.env.PATH, ...env },
    stdio: "inherit",
  });
  t.after(() => child.kill("SIGKILL"));
  while (!existsSync(file) || readFileSync(file, "utf8") === "") await sleep(10);
  return { child, pid: Number(readFileSync(file, "utf8")) };
}

const SETPRIV = "setpriv";
const noLeash = spawnSync(SETPRIV, ["--version"]).status !== 0 && "there is no setpriv here";

test("a command dies with its worker", { skip: noLeash, timeout: 60_000 }, async (t) => {
  const { child, pid } = await worker(t, {});
  assert.equal(isAlive(pid), true);
  child.kill("SIGKILL");
  for (let tries = 1_000; tries > 0 && isAlive(pid); tries--) await sleep(10);
  assert.equal(isAlive(pid), false);
});

test("a command carries the mark by which a local host ends it", { timeout: 60_000 }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "sluice-exec-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const processes = new Processes(dir);
  const { pid } = await worker(t, { SLUICE_LOCAL_HOST: realpathSync(dir) });
  assert.ok((await processes.endAll()) >= 2);
  assert.equal(isAlive(pid), false);
});

test("a process left behind neither holds the result back nor stays", async () => {
  const script = `
    const child = require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "inherit" });
    console.log(child.pid); child.unref(); process.exit(0);`;
  const ran = await run([node, "-e", script], 60_000, new AbortController().signal);
  assert.equal(ran.exitCode, 0);
  const pid = Number(ran.stdout.text);
  for (let tries = 200; tries > 0 && alive(pid); tries--) await sleep(10);
  assert.equal(alive(pid), false);
});

test("output at the bound is whole, one byte more is cut in the middle and says so", async () => {
  const write = (bytes: number) =>
    run([node, "-e", `process.stdout.write("x".repeat(${bytes}))`], 60_000, new AbortController().signal);
  const whole = await write(2 * KEPT_BYTES);
  assert.deepEqual([whole.stdout.text.length, whole.stdout.cut], [2 * KEPT_BYTES, 0]);
  const cut = await write(2 * KEPT_BYTES + 1);
  assert.deepEqual([cut.stdout.bytes, cut.stdout.cut], [2 * KEPT_BYTES + 1, 1]);
  assert.match(cut.stdout.text, /^x+\n\[… 1 bytes cut …\]\nx+$/);
});

test("head and tail hold whole code points and account for every byte", () => {
  const chunks = fc.array(fc.string({ unit: "grapheme", maxLength: 12 }), { maxLength: 12 });
  fc.assert(
    fc.property(chunks, fc.integer({ min: 4, max: 40 }), (texts, kept) => {
      const keeper = new HeadAndTail(kept);
      for (const text of texts) for (const byte of Buffer.from(text)) keeper.write(Buffer.of(byte));
      const whole = texts.join("");
      const { text, bytes, cut } = keeper.read();
      assert.equal(bytes, Buffer.byteLength(whole));
      if (bytes <= 2 * kept) return assert.equal(text, whole);
      const [head = "", tail = ""] = text.split(`\n[… ${cut} bytes cut …]\n`);
      assert(whole.startsWith(head) && whole.endsWith(tail));
      assert.equal(Buffer.byteLength(head) + Buffer.byteLength(tail) + cut, bytes);
      assert(Buffer.byteLength(head) <= kept && Buffer.byteLength(tail) <= kept);
    }),
  );
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
    { x: { argv: ["a"], timeoutSec: 841 } },
    { "a b": ["a"] },
  ])
    assert.equal(settings.safeParse({ commands: wrong }).success, false, JSON.stringify(wrong));
  assert.equal(settings.safeParse({ command: {} }).success, false);
});
