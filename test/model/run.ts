/**
 * Explores the model of the protocol (docs/model.md):
 *
 *   npm run model [-- --minutes M] [--seed S]   whether the invariants hold, and the states of interest are reached
 *   npm run model -- --mutations [--seed S]     whether each mutation breaks the invariant that it should
 */
import { randomInt } from "node:crypto";
import { availableParallelism } from "node:os";
import * as z from "zod";
import { keepRun } from "../support/kept-run.ts";
import { positive, readOptions, seedNumber } from "../support/options.ts";
import { readHistory } from "./history.ts";
import { MUTATIONS, type Mutation } from "./mutations.ts";
import { INVARIANTS, STEPS, WITNESSES } from "./plan.ts";
import { type Explored, explore } from "./quint.ts";

/** A run of the simulator that takes some ten seconds. */
const HISTORIES = 150;
/** Enough to reach the rarest state of interest: one in about sixty histories does. */
const MIN_RUNS = 6;
/** Runs in which a mutation must be caught. */
const MAX_RUNS = 8;

const {
  options: { minutes, seed, mutations },
} = readOptions(z.object({ minutes: positive, seed: seedNumber, mutations: z.boolean() }), {
  minutes: { type: "string", default: "2" },
  seed: { type: "string", default: String(randomInt(1_000_000_000)) },
  mutations: { type: "boolean", default: false },
});

const say = (text: string) => process.stderr.write(`${text}\n`);

function tell({ trace, replay }: Explored): void {
  for (const line of readHistory(trace ?? '{"states":[]}')) console.log(`  ${line}`);
  console.log(`  replay: ${replay}`);
}

function keep(name: string, what: string, outcome: string): void {
  keepRun("model", name, { seed, what, outcome });
}

/** Does jobs, as many at once as there are processors. */
async function parallel(jobs: Iterator<() => Promise<void>>): Promise<void> {
  const one = async () => {
    for (let job = jobs.next(); job.done !== true; job = jobs.next()) await job.value();
  };
  await Promise.all(Array.from({ length: availableParallelism() }, one));
}

/** Explores until the time is over, or something does not hold. Of four runs one is calm at its end. */
async function check(): Promise<boolean> {
  const until = Date.now() + minutes * 60_000;
  const met = new Map<string, number>(WITNESSES.map((name) => [name, 0]));
  let histories = 0;
  let violation: Explored | undefined;
  function* runs() {
    for (let run = 0; violation === undefined && (run < MIN_RUNS || Date.now() < until); run++)
      yield async () => {
        const step = run % 4 === 1 ? "stepThenCalm" : "step";
        const asked = { step, invariants: INVARIANTS, witnesses: WITNESSES } as const;
        const explored = await explore({
          ...asked,
          histories: HISTORIES,
          steps: STEPS[step],
          seed: seed + run,
        });
        histories += HISTORIES;
        for (const [name, count] of explored.witnessed) met.set(name, (met.get(name) ?? 0) + count);
        if (explored.broken.length > 0) violation ??= explored;
        say(
          `${histories} histories, ${explored.broken.length === 0 ? "all invariants hold" : "a violation"}`,
        );
      };
  }
  await parallel(runs());
  console.log(`seed ${seed}, ${histories} histories`);
  for (const [name, count] of met) console.log(`  ${name.padEnd(26)} reached in ${count}`);
  if (violation !== undefined) {
    keep("invariants", `${histories} histories`, `broken: ${violation.broken.join(", ")}`);
    console.log(`broken: ${violation.broken.join(", ")}`);
    tell(violation);
    return false;
  }
  const missed = [...met].filter(([, count]) => count === 0).map(([name]) => name);
  keep(
    "invariants",
    `${histories} histories`,
    missed.length === 0 ? `hold: ${INVARIANTS.join(", ")}` : `never reached: ${missed.join(", ")}`,
  );
  console.log(missed.length === 0 ? `hold: ${INVARIANTS.join(", ")}` : `never reached: ${missed.join(", ")}`);
  return missed.length === 0;
}

/** Whether each mutation breaks its invariant. */
async function checkMutations(): Promise<boolean> {
  const missed: string[] = [];
  const jobs = MUTATIONS.map((mutation) => async () => {
    const caught = await hunt(mutation);
    if (caught === undefined) missed.push(mutation.name);
  });
  await parallel(jobs.values());
  const outcome = `${MUTATIONS.length - missed.length} of ${MUTATIONS.length} mutations are caught`;
  keep("mutations", "each mutation against its invariant", [outcome, ...missed].join("; not caught: "));
  console.log(`seed ${seed}: ${outcome}`);
  if (missed.length > 0) console.log(`not caught: ${missed.join(", ")}`);
  return missed.length === 0;
}

async function hunt({ name, breaks, what, calm }: Mutation): Promise<Explored | undefined> {
  const step = calm === true ? "stepThenCalm" : "step";
  const asked = {
    wrong: name,
    step,
    invariants: [breaks],
    histories: HISTORIES,
    steps: STEPS[step],
  } as const;
  for (let run = 0; run < MAX_RUNS; run++) {
    const explored = await explore({ ...asked, seed: seed + run });
    if (explored.broken.length === 0) continue;
    console.log(`${name} (${what}) breaks ${breaks}`);
    tell(explored);
    return explored;
  }
  console.log(`${name} (${what}) is NOT caught by ${breaks} in ${MAX_RUNS * HISTORIES} histories`);
  return undefined;
}

process.exitCode = (await (mutations ? checkMutations() : check())) ? 0 : 1;
