import { Load, type Seen } from "./load.ts";
import { percentile, say, short } from "./print.ts";
import { Recording } from "./recording.ts";

const AGENT = "counted";
const WARM_UP = 20;
const AT_IDLE = 100;
const IN_FLIGHT = 64;
/** Shares of the rate that the product keeps up with 64 tasks under way. */
const SHARES = [0.1, 0.25, 0.5, 0.75, 0.9];
const QUANTILES = [0.5, 0.95, 0.99];

export interface LatencyOptions {
  /** How long each load lasts, in seconds. */
  readonly seconds: number;
  /** Which part of the usual number of tasks is done. */
  readonly share: number;
}

/** How long a task's sender waits for `accepted`, the first progress and the result: at idle, and under loads. */
export async function benchLatency({ seconds, share }: LatencyOptions): Promise<void> {
  const load = await Load.start(AGENT);
  try {
    const out = new Recording("latency", load.sluice.peer.nc.info?.version);
    await load.run(WARM_UP, 1, { tells: true });
    const atIdle = Math.max(2, Math.round(AT_IDLE * share));
    say(`${atIdle} tasks, one after the other …`);
    const idle = await load.run(atIdle, 1, { tells: true });
    say(`what the product keeps up with ${IN_FLIGHT} under way …`);
    const many = Math.max(2, Math.round(IN_FLIGHT * 4 * share));
    await load.run(many, IN_FLIGHT, { tells: true });
    const began = performance.now();
    await load.run(many * 2, IN_FLIGHT, { tells: true });
    const capacity = (many * 2) / ((performance.now() - began) / 1_000);
    const loads: { readonly perSecond: number; readonly seen: Seen[] }[] = [];
    for (const part of SHARES) {
      const perSecond = capacity * part;
      say(`${short(perSecond)} tasks a second for ${seconds} s …`);
      loads.push({ perSecond, seen: await load.onSchedule(arrivals(perSecond, seconds), { tells: true }) });
    }
    show(out, idle, loads, capacity);
    out.save();
  } finally {
    await load.sluice.stop();
  }
}

/**
 * When tasks come that come independently of each other, in milliseconds from now on (a Poisson process). Every run
 * has the same ones.
 */
export function arrivals(perSecond: number, seconds: number): number[] {
  const at: number[] = [];
  let state = 20_261_130;
  for (let now = 0; ; ) {
    // A linear congruence (Park and Miller, "Random number generators: good ones are hard to find", 1988).
    state = (state * 48_271) % 2_147_483_647;
    now += (-Math.log(state / 2_147_483_647) * 1_000) / perSecond;
    if (now >= seconds * 1_000) return at.length > 0 ? at : [0];
    at.push(now);
  }
}

const SPANS: readonly (readonly [name: string, of: (seen: Seen) => number])[] = [
  ["accepted", ({ accepted }) => accepted],
  ["first status", ({ status }) => status],
  ["result", ({ result }) => result],
];

function show(
  out: Recording,
  idle: readonly Seen[],
  loads: readonly { readonly perSecond: number; readonly seen: readonly Seen[] }[],
  capacity: number,
): void {
  const rows = [{ perSecond: 0, seen: idle }, ...loads].flatMap(({ perSecond, seen }, at) =>
    SPANS.map(([name, of]) => {
      const values = seen.map(of);
      const when = at === 0 ? "one at a time" : `${short(perSecond)} a second, ${percent(SHARES[at - 1])}`;
      return [when, seen.length, name, ...QUANTILES.map((share) => percentile(values, share))];
    }),
  );
  out.table(["LOAD", "TASKS", "PUBLISHED →, MS", "P50", "P95", "P99"], rows);
  out.note(
    `With ${IN_FLIGHT} under way the product kept up ${short(capacity)} tasks a second; the loads are shares of that. ` +
      "Tasks are published by a schedule (a Poisson process) whether earlier ones are done or not, and their time " +
      "counts from when they were due.",
  );
  out.figure("capacity", capacity);
  for (const [name, of] of SPANS) out.figure(`idle ${name} p50`, percentile(idle.map(of), 0.5));
  for (const quantile of QUANTILES) {
    const points = loads.map(({ perSecond, seen }) => {
      const results = seen.map(({ result }) => result);
      return { x: perSecond, y: percentile(results, quantile) };
    });
    out.line("latency", `p${quantile * 100}`, points);
  }
}

function percent(share = 0): string {
  return `${Math.round(share * 100)} %`;
}
