import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import * as z from "zod";
import { INVARIANTS, type Violation } from "./invariants.ts";

/** What a worker is to play. */
export interface Lot {
  readonly seed: number;
  /** The first history's number, and the distance to the next. */
  readonly first: number;
  readonly stride: number;
  /** How many histories at the most. */
  readonly count: number;
  /** For how long, in milliseconds. */
  readonly forMs: number;
}

/** A history that has broken an invariant. */
export interface Found {
  readonly history: number;
  readonly violation: Violation;
  readonly choices: readonly number[];
}

/** What came of it all. */
export interface Explored {
  readonly histories: number;
  readonly steps: number;
  readonly seconds: number;
  readonly found: Found | undefined;
}

const names = Object.keys(INVARIANTS) as [keyof typeof INVARIANTS, ...(keyof typeof INVARIANTS)[]];
const report = z.object({
  histories: z.int(),
  steps: z.int(),
  found: z
    .object({
      history: z.int(),
      violation: z.object({ invariant: z.enum(names), text: z.string() }),
      choices: z.array(z.int()),
    })
    .optional(),
  done: z.boolean(),
});
export type Report = z.infer<typeof report>;

/** A worker that says nothing for so long is in a loop. */
const SILENCE_MS = 180_000;

/**
 * Plays histories in several threads until one breaks an invariant, or there were enough.
 *
 * @param options.progress told now and then how many histories were played, and for how long
 * @throws Error when a thread does not come back from a history
 */
export async function explore(options: {
  readonly seed: number;
  readonly histories: number;
  readonly forMs: number;
  readonly threads?: number;
  readonly progress?: (histories: number, seconds: number) => void;
}): Promise<Explored> {
  const { seed, histories, forMs, threads = availableParallelism(), progress } = options;
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1_000;
  const played = Array.from({ length: threads }, () => ({ histories: 0, steps: 0 }));
  let found: Found | undefined;
  const workers: Worker[] = [];
  const one = (first: number) => {
    const lot: Lot = { seed, first, stride: threads, count: Math.ceil((histories - first) / threads), forMs };
    const worker = new Worker(new URL("./explore-thread.ts", import.meta.url), { workerData: lot });
    workers.push(worker);
    return new Promise<void>((resolve, reject) => {
      let silence: NodeJS.Timeout | undefined;
      const hear = () => {
        clearTimeout(silence);
        const at = first + (played[first]?.histories ?? 0) * threads;
        const error = new Error(`a history of seed ${seed} does not end: ${at}, or one shortly after it`);
        // Unreferenced, for when another thread has found something nobody waits for this one any more.
        silence = setTimeout(() => reject(error), SILENCE_MS).unref();
      };
      hear();
      worker.on("message", (message: unknown) => {
        const said = report.parse(message);
        played[first] = said;
        found ??= said.found;
        hear();
        progress?.(
          played.reduce((sum, of) => sum + of.histories, 0),
          seconds(),
        );
        if (said.done || found !== undefined) {
          clearTimeout(silence);
          resolve();
        }
      });
      worker.on("error", reject);
    });
  };
  try {
    const all = Array.from({ length: Math.min(threads, histories) }, (_, first) => one(first));
    // Whoever finds something ends the search for all.
    await Promise.race([
      Promise.all(all),
      ...all.map((each) => each.then(() => (found ? undefined : never()))),
    ]);
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
  return {
    histories: played.reduce((sum, of) => sum + of.histories, 0),
    steps: played.reduce((sum, of) => sum + of.steps, 0),
    seconds: seconds(),
    found,
  };
}

const never = () => new Promise<never>(() => {});
