import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { inTime, until } from "../support/until.ts";
import { openStage, type Stage } from "./peer.ts";

const launcher = new URL("../../sluice", import.meta.url).pathname;
const CTRL_C = "\u0003";
/** Gives a program a terminal: a part of util-linux, which most systems have. */
const PTY = "script";
const skip = spawnSync(PTY, ["--version"]).status === 0 ? false : `no program ${PTY} here`;

let stage: Stage;
let cwd: string;

before(async () => {
  stage = await openStage();
  stage.script = async () => {};
  cwd = mkdtempSync(join(tmpdir(), "sluice-terminal-"));
  writeFileSync(join(cwd, "agents.yaml"), "deployment: acme\nagents: { digest: {} }\n");
});
after(async () => {
  await stage[Symbol.asyncDispose]();
  rmSync(cwd, { recursive: true, force: true });
});

/** `./sluice …` on a terminal of a hundred columns. */
function onTerminal(args: string) {
  const line = `stty cols 100; exec ${launcher} ${args} --nats ${stage.nats.url}`;
  // With CI set the spinner would take the terminal for none.
  const { NATS_URL: _, NO_COLOR: __, CI: ___, ...env } = process.env;
  const child = spawn(PTY, ["-qec", line, "/dev/null"], { cwd, env: { ...env, TERM: "xterm" } });
  let shown = "";
  child.stdout.on("data", (chunk) => (shown += chunk));
  const ended = once(child, "close");
  return {
    shown: () => shown,
    type: (text: string) => child.stdin.write(text),
    exitCode: async () => {
      await inTime(`the end of ${args}`, ended);
      return child.exitCode;
    },
  };
}

// The spinner brings a signal handler of its own, which must not end the process before it has said goodbye.
test("Ctrl-C beside the spinner ends watch well and ask with 130", { skip }, async () => {
  for (const [args, waiting, exitCode, last] of [
    ["watch", "watching; Ctrl-C ends it", 0, /^/],
    ["ask digest x", "waiting for acme-digest", 130, /sluice: interrupted\r\n/],
  ] as const) {
    const run = onTerminal(args);
    await until(waiting, () => run.shown().includes(waiting), { seen: run.shown });
    run.type(CTRL_C);
    assert.equal(await run.exitCode(), exitCode, run.shown());
    assert.match(run.shown(), last);
    assert(run.shown().includes("\u001b[?25h"), "the cursor is back");
  }
});
