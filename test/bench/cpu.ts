import { existsSync, readFileSync } from "node:fs";

/** Clock ticks, of which there are a hundred a second on Linux (proc(5), stat). */
const MS_PER_TICK = 10;

/** What processes have computed, in milliseconds (proc(5), stat: utime and stime). */
export function cpuOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, "utf8") : "";
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return sum + (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * MS_PER_TICK;
  }, 0);
}

/** The nats-servers that this process has started. */
export function natsServers(): number[] {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ");
  return children
    .map(Number)
    .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("nats-server"));
}
