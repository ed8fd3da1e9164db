import type { Load } from "../load.ts";
import { median } from "../print.ts";

/** One measure at each size, in the sizes' order. */
export interface Grown {
  /** What grows. */
  readonly what: string;
  readonly sizes: readonly number[];
  readonly measures: readonly { readonly name: string; readonly values: readonly number[] }[];
}

export interface GrowthRun {
  readonly sizes: readonly number[];
  readonly rounds: number;
}

const TASKS_A_ROUND = 12;
const CONTROLS_A_ROUND = 6;

/** What is measured of a running product. */
export const OF_A_PRODUCT = ["published → result", "control → answered", "a run of sweep"] as const;

/** One round of these, in milliseconds. */
export async function roundOf(load: Load): Promise<number[]> {
  const { host } = load.sluice;
  const results = (await load.run(TASKS_A_ROUND, 1)).map(({ result }) => result);
  const controls: number[] = [];
  for (let n = 0; n < CONTROLS_A_ROUND; n++) controls.push(await load.control());
  const sweep = host.functions().find(({ name }) => name.endsWith("sweep"))?.name ?? "sweep";
  const began = performance.now();
  const swept = await host.invoke(sweep, {});
  if (!swept.ok) throw new Error(`sweep: ${swept.errorMessage}`);
  return [median(results), median(controls), performance.now() - began];
}

/** The medians of rounds, measure by measure. */
export function mediansOf(rounds: readonly (readonly number[])[]): number[] {
  return (rounds[0] ?? []).map((_, at) => median(rounds.map((round) => round[at] ?? Number.NaN)));
}

/** Turns what was measured by size into what was measured by measure. */
export function grown(
  what: string,
  sizes: readonly number[],
  names: readonly string[],
  bySize: readonly (readonly number[])[],
): Grown {
  const measures = names.map((name, at) => ({
    name,
    values: bySize.map((values) => values[at] ?? Number.NaN),
  }));
  return { what, sizes, measures };
}
