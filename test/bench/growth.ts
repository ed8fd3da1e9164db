import { growthOfAgents } from "./growth/agents.ts";
import { growthOfHistories } from "./growth/histories.ts";
import { growthOfTasks } from "./growth/stored.ts";
import { Recording } from "./recording.ts";

export interface GrowthOptions {
  readonly rounds: number;
  /** Which part of the usual sizes is filled in. */
  readonly share: number;
}

const BOUND = 1.5;

/** Whether what was measured stays the same where more tasks are stored, more agents hosted, histories longer. */
export async function benchGrowth(options: GrowthOptions): Promise<void> {
  const out = new Recording("growth");
  const of = (sizes: readonly number[]) => [
    ...new Set(sizes.map((size) => Math.max(1, Math.round(size * options.share)))),
  ];
  const grown = [
    await growthOfTasks({ ...options, sizes: of([1, 1_000, 100_000]) }),
    await growthOfAgents({ ...options, sizes: of([1, 10, 100]) }),
    await growthOfHistories({ ...options, sizes: of([10, 10_000]) }),
  ];
  for (const { what, sizes, measures } of grown) {
    out.table(
      [what.toUpperCase(), ...sizes.map((size) => size.toLocaleString("en")), "LARGEST / SMALLEST"],
      measures.map(({ name, values, ratio }) => [name, ...values, ratio]),
    );
    for (const { name, values, ratio } of measures) {
      out.figure(`${what}: ${name}`, ratio);
      const first = values[0] ?? Number.NaN;
      out.line(
        what,
        name,
        sizes.map((x, at) => ({ x, y: (values[at] ?? Number.NaN) / first })),
      );
    }
  }
  out.note(
    `Medians of ${options.rounds} rounds, in milliseconds where nothing else is said; LARGEST / SMALLEST is the median of ` +
      `what it was within each round. At most ${BOUND} is flat.`,
  );
  out.save();
}
