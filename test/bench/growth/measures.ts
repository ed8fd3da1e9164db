import type { Load } from "../load.ts";
import { median } from "../print.ts";

/** What was measured at each size, in the sizes' order. */
export interface Grown {
  /** What grows. */
  readonly what: string;
  readonly sizes: readonly number[];
  readonly measures: readonly Measure[];
}

interface Measure {
  readonly name: string;
  /** The median of the rounds at each size. */
  readonly values: readonly number[];
  /** The largest size's part of the smallest's: the median of what it was in each round. */
  readonly ratio: number;
}

export interface GrowthRun {
  readonly sizes: readonly number[];
  readonly rounds: number;
}

/** What one round has measured, in the order of the measures' names. */
type Round = readonly number[];

const TASKS_A_ROUND = 12;
const CONTROLS_A_ROUND = 6;
const SWEEPS_A_ROUND = 6;

/** What is measured of a running product. */
export const OF_A_PRODUCT = ["published → result", "control → answered", "a run of sweep"] as const;

/** One round of these, in milliseconds. */
export async function roundOf(load: Load): Promise<Round> {
  const results = (await load.run(TASKS_A_ROUND, 1)).map(({ result }) => result);
  const controls: number[] = [];
  for (let n = 0; n < CONTROLS_A_ROUND; n++) controls.push(await load.control());
  const sweeps: number[] = [];
  for (let n = 0; n < SWEEPS_A_ROUND; n++) sweeps.push(await sweep(load));
  return [median(results), median(controls), median(sweeps)];
}

async function sweep({ sluice: { host } }: Load): Promise<number> {
  const name = host.functions().find((of) => of.name.endsWith("sweep"))?.name ?? "sweep";
  const began = performance.now();
  const swept = await host.invoke(name, {});
  if (!swept.ok) throw new Error(`sweep: ${swept.errorMessage}`);
  return performance.now() - began;
}

/**
 * Measures subjects in turns, one of each size, there and back again: whatever else the machine does, and whether it
 * gets slower or faster meanwhile, then meets all sizes alike. The first round warms up.
 *
 * @returns the rounds of each subject
 */
export async function inTurns<T>(
  subjects: readonly T[],
  rounds: number,
  roundOf: (subject: T) => Promise<Round>,
): Promise<Round[][]> {
  const measured = subjects.map((subject) => ({ subject, rounds: [] as Round[] }));
  for (let n = 0; n <= rounds; n++)
    for (const of of n % 2 === 0 ? measured : measured.toReversed()) {
      const round = await roundOf(of.subject);
      if (n > 0) of.rounds.push(round);
    }
  return measured.map((of) => of.rounds);
}

/** Turns the rounds of each size into what was measured by measure. */
export function grown(
  what: string,
  sizes: readonly number[],
  names: readonly string[],
  bySize: readonly (readonly Round[])[],
): Grown {
  const measures = names.map((name, at) => {
    const of = (round: Round | undefined) => round?.[at] ?? Number.NaN;
    const largest = bySize.at(-1) ?? [];
    return {
      name,
      values: bySize.map((rounds) => median(rounds.map(of))),
      // Within a round both sizes had nearly the same machine.
      ratio: median(largest.map((round, n) => of(round) / of(bySize[0]?.[n]))),
    };
  });
  return { what, sizes, measures };
}
