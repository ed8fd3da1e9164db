import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { HeadAndTail, KEPT_BYTES, run } from "../../../agents/parts/command.ts";
import { Processes } from "../../../infra/local/processes.ts";
import { isAlive } from "../../local/support/host.ts";

/** Node with these arguments. */
const command = (...args: string[]) => ({ argv: [process.execPath, ...args], timeoutMs: 60_000 });

const alive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test("the signal kills the whole process group", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "sluice-exec-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const pids = join(dir, "pids");
  const script = `
    const child = require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    require("node:fs").writeFileSync(${JSON.stringify(pids)}, process.pid + " " + child.pid);
    setInterval(() => {}, 1000);`;
  const stop = new AbortController();
  const running = run(command("-e", script), stop.signal);
  const failed = assert.rejects(running, /stop it/);
  while (!existsSync(pids) || readFileSync(pids, "utf8") === "") await sleep(10);
  stop.abort(new Error("stop it"));
  await failed;
  const left = readFileSync(pids, "utf8").split(" ").map(Number);
  for (let tries = 200; tries > 0 && left.some(alive); tries--) await sleep(10);
  assert.deepEqual(left.filter(alive), []);
  await assert.rejects(run(command("-v"), stop.signal), /stop it/);
});

/** A process that runs a command, as a worker does; `pid` is the command's, which says its own. */
async function worker(t: TestContext, env: Record<string, string>) {
  const module = JSON.stringify(new URL("../../../agents/parts/command.ts", import.meta.url).href);
  const dir = mkdtempSync(join(tmpdir(), "sluice-exec-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, "pid");
  const says = `require("node:fs").writeFileSync(${JSON.stringify(file)}, String(process.pid));
    setInterval(() => {}, 1000)`;
  const asked = JSON.stringify({ argv: [process.execPath, "-e", says], timeoutMs: 600_000 });
  const script = `const { run } = await import(${module}); await run(${asked}, AbortSignal.timeout(600000));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    cwd: new URL("../../..", import.meta.url),
    env: { PATH: process.env.PATH, ...env },
    stdio: "inherit",
  });
  t.after(() => child.kill("SIGKILL"));
  while (!existsSync(file) || readFileSync(file, "utf8") === "") await sleep(10);
  const pid = Number(readFileSync(file, "utf8"));
  t.after(() => {
    if (isAlive(pid)) process.kill(pid, "SIGKILL");
  });
  return { child, pid };
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
  const ran = await run(command("-e", script), new AbortController().signal);
  assert.equal(ran.exitCode, 0);
  const pid = Number(ran.stdout.text);
  for (let tries = 200; tries > 0 && alive(pid); tries--) await sleep(10);
  assert.equal(alive(pid), false);
});

test("output at the bound is whole, one byte more is cut in the middle and says so", async () => {
  const write = (bytes: number) =>
    run(command("-e", `process.stdout.write("x".repeat(${bytes}))`), new AbortController().signal);
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

test("a variable given to the command is there beside the usual ones", async () => {
  const print = command("-p", "JSON.stringify(process.env)");
  const ran = await run(print, new AbortController().signal, { SLUICE_TASK: "task_1" });
  const env = JSON.parse(ran.stdout.text);
  assert.deepEqual(Object.keys(env).sort(), ["HOME", "LANG", "PATH", "SLUICE_TASK"]);
  assert.equal(env.SLUICE_TASK, "task_1");
});
