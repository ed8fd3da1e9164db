import { parentPort, workerData } from "node:worker_threads";
import * as z from "zod";
import { Choices } from "./choices.ts";
import type { Report } from "./explore.ts";
import { playHistory } from "./history.ts";

const REPORT_MS = 500;

const { seed, first, stride, count, forMs } = z
  .object({ seed: z.int(), first: z.int(), stride: z.int(), count: z.int(), forMs: z.number() })
  .parse(workerData);
const say = (report: Report) => parentPort?.postMessage(report);

// Nobody reads the stacks of errors that belong to a history, and they are dear.
Error.stackTraceLimit = 0;
const end = performance.now() + forMs;
let [histories, steps, next] = [0, 0, performance.now() + REPORT_MS];
let found: Report["found"];
while (histories < count && performance.now() < end && found === undefined) {
  const history = first + histories * stride;
  const played = await playHistory(Choices.random(seed, history));
  histories++;
  steps += played.steps;
  if (played.violation !== undefined)
    found = { history, violation: played.violation, choices: [...played.choices] };
  if (performance.now() < next) continue;
  next = performance.now() + REPORT_MS;
  say({ histories, steps, found, done: false });
}
say({ histories, steps, found, done: true });
