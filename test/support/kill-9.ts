/**
 * Kills a process as `kill -9` does.
 *
 * @param pid as a number or as a file says it. Nothing at all would be 0, and that is the caller's own group: the test
 * runner, and whoever has started it (kill(2)).
 * @throws Error when it is no process's
 */
export function kill9(pid: number | string | undefined): void {
  if (!/^[1-9]\d*$/.test(String(pid)))
    throw new Error(`kill -9: expected a process's id, got ${JSON.stringify(pid)}`);
  process.kill(Number(pid), "SIGKILL");
}

/** What a file holds that another process writes, line by line; of the last nobody knows whether it is whole yet. */
export function wholeLines(text: string): string[] {
  return text.split("\n").slice(0, -1);
}
