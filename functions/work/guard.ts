import { Worker } from "node:worker_threads";
import type { Timing } from "../../shared/config/timing.ts";

/** How often, in the time that the main thread may stand still, the guard looks. */
const LOOKS = 6;
/** What a handler computes takes as long as ever, however fast the clocks around it run: no time scale goes below. */
const MIN_STILL_MS = 3_000;

/**
 * The guard's own thread. It counts its looks rather than the time: a sandbox that is frozen between invocations, or
 * that gets no processor, is not one that spins. It writes to the file and not to `console`, which goes by way of the
 * thread that stands still.
 */
const GUARD = `
const { moves, lookMs, looks, allowedMs } = require("node:worker_threads").workerData;
const asleep = new Int32Array(new SharedArrayBuffer(4));
for (let last = -1, still = 0; still <= looks; ) {
  Atomics.wait(asleep, 0, 0, lookMs);
  const now = Atomics.load(moves, 0);
  still = now === last ? still + 1 : 0;
  last = now;
}
const message = "a handler has not yielded for " + allowedMs + " ms; this process ends, another worker goes on";
require("node:fs").writeSync(2, JSON.stringify({ level: "ERROR", message, timestamp: new Date().toISOString() }) + "\\n");
process.kill(process.pid, "SIGKILL");
`;

/**
 * Ends this process when its main thread has stood still for longer than a lease. Who does not yield for so long
 * cannot show that it lives, has lost its claim already, and would otherwise burn a processor until the invocation's
 * timeout (docs/tasks.md, takeovers). Keeps nothing alive.
 */
export function guardMainThread({ leaseMs }: Pick<Timing, "leaseMs">): void {
  const allowedMs = Math.max(leaseMs, MIN_STILL_MS);
  const lookMs = Math.ceil(allowedMs / LOOKS);
  const moves = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  setInterval(() => Atomics.add(moves, 0, 1), lookMs).unref();
  new Worker(GUARD, {
    eval: true,
    workerData: { moves, lookMs, looks: LOOKS, allowedMs },
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 },
  }).unref();
}
