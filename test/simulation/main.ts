/**
 * Explores histories: `npm run simulate -- [--minutes M | --histories N] [--seed S] [--threads T]`, or shows one again:
 * `npm run simulate -- --replay CHOICES`; see docs/simulation.md.
 */
import { randomInt } from "node:crypto";
import { availableParallelism } from "node:os";
import * as z from "zod";
import { keepRun } from "../support/kept-run.ts";
import { count, orRefuse, positive, readOptions, seedNumber } from "../support/options.ts";
import { readChoices } from "./choices.ts";
import { explore } from "./explore.ts";
import { narrate, smallest } from "./report.ts";

const MINUTE_MS = 60_000;
const MAX_SEED = 2 ** 32;
/** How often the progress is shown, in seconds. */
const PROGRESS_S = 5;

const schema = z.object({
  minutes: positive.optional(),
  histories: count.optional(),
  seed: seedNumber.optional(),
  threads: count.optional(),
  replay: z.string().min(1, "expected the choices of a history").optional(),
  brief: z.boolean().default(false),
});

const text = { type: "string" } as const;
const { options } = readOptions(schema, {
  minutes: text,
  histories: text,
  seed: text,
  threads: text,
  replay: text,
  brief: { type: "boolean" },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);

if (options.replay !== undefined) {
  const { replay } = options;
  const choices = orRefuse("--replay", () => readChoices(replay));
  if (!(await narrate(choices, say))) process.exitCode = 1;
} else await search(options);

async function search({
  minutes,
  histories,
  seed = randomInt(MAX_SEED),
  threads = availableParallelism(),
  brief,
}: z.infer<typeof schema>): Promise<void> {
  if (!brief) say(`seed ${seed}`);
  let shown = 0;
  const explored = await explore({
    seed,
    histories: histories ?? Number.MAX_SAFE_INTEGER,
    forMs:
      minutes === undefined && histories !== undefined ? Number.MAX_SAFE_INTEGER : (minutes ?? 1) * MINUTE_MS,
    threads,
    progress: (played, seconds) => {
      if (brief || seconds < shown + PROGRESS_S) return;
      shown = seconds;
      say(`${seconds.toFixed(0).padStart(5)} s  ${played} histories`);
    },
  });
  const { found, steps, seconds } = explored;
  if (brief)
    return say(
      JSON.stringify({ invariant: found?.violation.invariant, histories: explored.histories, seconds }),
    );
  const each = (explored.histories / seconds).toFixed(0);
  say(
    `${explored.histories} histories, ${steps} things that happened, in ${seconds.toFixed(1)} s: ${each} histories a second`,
  );
  const kept = { seed, threads, histories: explored.histories, steps, seconds };
  keepRun("simulation", `seed-${seed}`, { ...kept, broken: found?.violation.invariant });
  if (found === undefined) return say("no invariant is broken");
  process.exitCode = 1;
  say(`history ${found.history} of seed ${seed} breaks ${found.violation.invariant}; it is made small …\n`);
  const small = await smallest(found.violation, found.choices);
  await narrate(small.choices, say);
}
