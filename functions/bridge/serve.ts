import { setTimeout as sleep } from "node:timers/promises";
import { errorFields } from "../../shared/telemetry/index.ts";
import { type BridgeRun, runBridge } from "./bridge.ts";
import { type BridgeWiring, tellRun } from "./wiring.ts";

/** A run is as long as that of the function, and so its metrics come each minute. */
const RUN_MS = 70_000;
/** How long a run that is stopped may wait for its open pulls to end by themselves, in milliseconds. */
const PULLS_MS = 5_000;
/** The pause after a run that failed, in milliseconds: another would fail as well. */
const PAUSE_MS = 2_000;
/** Without a connection for longer than this it is better to start anew elsewhere, in milliseconds. */
const DEAF_MS = 120_000;

/** A bridge that runs. */
export interface Service {
  /** Whether it has been connected to NATS lately. Only asking keeps this up to date. */
  healthy(): boolean;
  /** Resolves when it was asked to stop, and has brought what was in hand into the queues or given it back. */
  readonly ended: Promise<void>;
}

/** Runs the bridge, run after run, until it is asked to stop. What goes wrong is told, and the next run tries again. */
export function serve(
  wiring: BridgeWiring,
  stop: AbortSignal,
  run: (deps: Parameters<typeof runBridge>[0]) => Promise<BridgeRun> = runBridge,
  now: () => number = Date.now,
): Service {
  let heard = now();
  return {
    healthy() {
      if (wiring.link.connected) heard = now();
      return now() - heard <= DEAF_MS / wiring.timing.scale;
    },
    ended: runs(wiring, stop, run, now),
  };
}

async function runs(
  wiring: BridgeWiring,
  stop: AbortSignal,
  run: (deps: Parameters<typeof runBridge>[0]) => Promise<BridgeRun>,
  now: () => number,
): Promise<void> {
  const { telemetry, timing } = wiring;
  let last = Number.POSITIVE_INFINITY;
  stop.addEventListener("abort", () => (last = now() + PULLS_MS + timing.marginMs));
  while (!stop.aborted) {
    const end = now() + RUN_MS / timing.scale;
    const remainingMs = () => Math.min(end, last) - now();
    try {
      tellRun(wiring, await run({ ...wiring, remainingMs, stop }));
    } catch (error) {
      telemetry.error("a run has failed", errorFields(error));
      telemetry.count("BridgeRunsFailed");
      await sleep(PAUSE_MS / timing.scale, undefined, { signal: stop }).catch(() => undefined);
    }
    telemetry.flush();
  }
}
