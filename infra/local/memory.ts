import { readFileSync } from "node:fs";

/** What a process has of memory, in MB; undefined where the system does not tell, or when it has ended. */
export interface Memory {
  /** Its own pages, which nothing but its end gives back: what a memory limit is about. */
  readonly ownMb: number;
  /** The most that it ever had resident. */
  readonly peakMb: number;
}

export function memoryOf(pid: number): Memory | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const mb = (name: string) =>
      Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) / 1024;
    return { ownMb: mb("RssAnon"), peakMb: mb("VmHWM") };
  } catch {
    return undefined;
  }
}
