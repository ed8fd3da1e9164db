/**
 * The fault runs: `npm run faults -- --minutes 6 --seed 1`, or `--replay FILE` with the report of an earlier run, whose
 * plan is then played again (docs/faults.md).
 */
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import * as z from "zod";
import { findNatsServer } from "../../../infra/local/nats-server.ts";
import { orRefuse, positive, readOptions, seedNumber } from "../../support/options.ts";
import { action, describe } from "./plan.ts";
import { complaints, keep, summary } from "./report.ts";
import { type FaultRunOptions, faultRun } from "./run.ts";

const SETTLE_MS = 300_000;

const say = (line: string) => void process.stderr.write(`${line}\n`);

const { options } = readOptions(
  z.object({
    minutes: positive,
    seed: seedNumber,
    rate: positive,
    scale: positive,
    replay: z.string().optional(),
  }),
  {
    minutes: { type: "string", default: "6" },
    seed: { type: "string", default: String(randomInt(1_000_000)) },
    rate: { type: "string", default: "3.5" },
    scale: { type: "string", default: "20" },
    replay: { type: "string" },
  },
);

/** What a kept run was made of. */
const kept = z.object({
  seed: z.int(),
  lengthMs: z.number(),
  rate: z.number(),
  timeScale: z.number(),
  plan: z.array(action),
});

function asked(): Omit<FaultRunOptions, "say" | "settleMs"> {
  const { seed, minutes, rate, scale: timeScale, replay } = options;
  if (replay === undefined) return { seed, lengthMs: minutes * 60_000, rate, timeScale };
  return orRefuse("--replay", () => kept.parse(JSON.parse(readFileSync(replay, "utf8"))));
}

process.env.NATS_SERVER_BIN = await findNatsServer(say);
const run = asked();
say(
  `seed ${run.seed}: ${run.lengthMs / 60_000} minutes, ${run.rate} tasks a second, ${run.timeScale} times faster`,
);
const outcome = await faultRun({ ...run, settleMs: SETTLE_MS, say });
// What is played again does not take the place of what it plays.
const file = keep(outcome, options.replay === undefined ? `seed-${run.seed}` : "replayed");
for (const line of outcome.plan.map(describe)) console.log(line);
for (const line of ["", ...summary(outcome), ""]) console.log(line);
for (const line of outcome.troubled) console.log(`the adversary failed: ${line}`);
if (outcome.troubled.length > 0) process.exitCode = 1;
if (outcome.violations.length > 0) {
  for (const line of complaints(outcome)) console.log(line);
  console.log(`\neverything lies in ${outcome.folder}; again: npm run faults -- --replay ${file}`);
  process.exitCode = 1;
} else console.log(`ok (${file})`);
