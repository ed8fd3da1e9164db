/**
 * Measures the product on this machine: `npm run bench` runs all programs, `npm run bench -- steps` one of them. They
 * print tables and judge nothing (docs/benchmarks.md).
 */
import * as z from "zod";
import { findNatsServer } from "../../infra/local/nats-server.ts";
import { count, positive, readOptions, refuse } from "../support/options.ts";
import { benchCold } from "./cold.ts";
import { benchEngines } from "./engines.ts";
import { benchFloor } from "./floor.ts";
import { benchGrowth } from "./growth.ts";
import { benchLatency } from "./latency.ts";
import { say } from "./print.ts";
import { benchProfile } from "./profile.ts";
import { benchSteps } from "./steps.ts";
import { benchTasks } from "./tasks.ts";

const schema = z.object({
  tasks: count,
  "in-flight": count,
  steps: count,
  rounds: count.optional(),
  seconds: count,
  share: positive,
});
const { options, names: asked } = readOptions(
  schema,
  {
    tasks: { type: "string", default: "200" },
    "in-flight": { type: "string", default: "64" },
    steps: { type: "string", default: "3000" },
    rounds: { type: "string" },
    seconds: { type: "string", default: "12" },
    share: { type: "string", default: "1" },
  },
  true,
);
const { tasks, "in-flight": inFlight, steps, rounds, seconds, share: of } = options;

const programs: Readonly<Record<string, () => Promise<void>>> = {
  tasks: () => benchTasks({ tasks, inFlight }),
  steps: () => benchSteps({ steps, rounds: rounds ?? 5 }),
  latency: () => benchLatency({ seconds, share: of }),
  cold: () => benchCold({ rounds: rounds ?? 15 }),
  growth: () => benchGrowth({ rounds: rounds ?? 8, share: of }),
  engines: () => benchEngines({ steps, parallel: 200, stored: steps }),
  profile: () => benchProfile({ share: of }),
  floor: () => benchFloor({ rounds: rounds ?? 3, share: of }),
};

const names = asked.length > 0 ? asked : Object.keys(programs);
for (const name of names)
  if (!Object.hasOwn(programs, name)) refuse(`${name}: expected one of ${Object.keys(programs).join(", ")}`);
process.env.NATS_SERVER_BIN ??= await findNatsServer(say);
for (const name of names) {
  console.log(`\n# ${name}\n`);
  await programs[name]?.();
}
