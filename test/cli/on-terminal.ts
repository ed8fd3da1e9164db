import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { inTime } from "../support/until.ts";

const launcher = new URL("../../sluice", import.meta.url).pathname;
/** Gives a program a terminal: a part of util-linux, which most systems have. */
const PTY = "script";
/** Why tests on a terminal are skipped, if they are. */
export const skip = spawnSync(PTY, ["--version"]).status === 0 ? false : `no program ${PTY} here`;

/** `./sluice …` on a terminal of a hundred columns. */
export function onTerminal(args: string, cwd: string) {
  const line = `stty cols 100; exec ${launcher} ${args}`;
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
