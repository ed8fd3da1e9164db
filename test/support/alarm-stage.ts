import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";
import type { HostEvent } from "../../infra/local/host.ts";
import { type Stage, startStage } from "./stage.ts";
import { until } from "./until.ts";

/** Queues and schedules live so much faster; the alarms' clock is the test's own, so that a busy machine is no fault. */
const SCALE = 20;
/** What a function has at the least, in milliseconds: computing does not get faster. */
const SHORTEST_MS = 8_000;
/** The bridge uses its time up, however long it is, so it needs no more than the time scale gives it. */
const SHORTEST_BRIDGE_MS = 1_000;
const MINUTE_MS = 60_000;
/** More minutes than any alarm needs to rise. */
const PATIENCE_MINUTES = 60;
/** What was broken has so long in each minute to come right, in milliseconds. */
const SETTLE_MS = 100;
const NAMESPACE = "Sluice/sluice-acme";

/** Something that is broken, and what is to be seen of it. */
export interface Fault {
  /** Alarms that must rise. */
  readonly raises: readonly string[];
  /** Alarms that may rise as well, as their runbooks say. */
  readonly consequences?: readonly string[];
  /** Breaks something. */
  readonly begin?: () => Promise<unknown>;
  /** What happens in each minute until its alarms have risen. */
  readonly each?: (minute: number) => Promise<unknown>;
  readonly mend?: () => Promise<unknown>;
}

/** The name of an alarm within its stack. */
export const alarmName = (name: string) => name.replace(/^sluice-acme-/, "");

/** The whole product, and a clock for its alarms that the test moves on. */
export class AlarmStage {
  readonly stage: Stage;
  /** The alarms that have risen since they were last asked for. */
  readonly risen: Set<string>;
  /** Whether there is a bridge to be heard. */
  listening = true;
  readonly #clock: { now: number };
  readonly #errors: string[];

  static async start(): Promise<AlarmStage> {
    const risen = new Set<string>();
    const errors: string[] = [];
    // In the middle of a minute: what is measured meanwhile belongs to it.
    const clock = { now: MINUTE_MS / 2 };
    const log = (event: HostEvent) => {
      if (event.type === "alarm" && event.to === "ALARM") risen.add(alarmName(event.name));
      if (event.type === "line" && event.line.startsWith("ERROR"))
        errors.push(`${event.functionName}: ${event.line}`);
    };
    const stage = await startStage({
      timeScale: SCALE,
      shortestTimeoutMs: (name) => (name === "bridge" ? SHORTEST_BRIDGE_MS : SHORTEST_MS),
      log,
      metricsClock: () => clock.now,
    });
    return new AlarmStage(stage, risen, clock, errors);
  }

  private constructor(stage: Stage, risen: Set<string>, clock: { now: number }, errors: string[]) {
    this.stage = stage;
    this.risen = risen;
    this.#clock = clock;
    this.#errors = errors;
  }

  /** How often something was measured in the last minutes, the present one included. */
  samples(name: string, dimensions: Record<string, string>, namespace = NAMESPACE, minutes = 1): number {
    const { now } = this.#clock;
    const from = (Math.floor(now / MINUTE_MS) + 1 - minutes) * MINUTE_MS;
    const { store } = this.stage.sluice.host.metrics;
    return store.statistic({ namespace, name, dimensions }, "SampleCount", from, now + 1) ?? 0;
  }

  /** Waits until something is measured in the present minute. */
  async measured(name: string, dimensions: Record<string, string>, namespace = NAMESPACE): Promise<void> {
    const what = `${name} of ${Object.values(dimensions)} is measured`;
    await until(what, () => this.samples(name, dimensions, namespace) > 0, { seen: () => this.#errors });
  }

  /** A minute passes, in which the bridge and the cards are heard as often as they must be. */
  async minute(): Promise<void> {
    const { metrics } = this.stage.sluice.host;
    if (this.listening)
      await until(
        "the bridge tells something",
        () => this.samples("MessagesPending", { service: "bridge" }, NAMESPACE, 4) > 0,
      );
    if (this.listening)
      await until("the cards are put", () => this.samples("CardAge", { service: "cards" }, NAMESPACE, 9) > 0);
    metrics.look();
    this.#clock.now += MINUTE_MS;
    metrics.judge();
  }

  inAlarm(): string[] {
    const all = this.stage.sluice.host.metrics.status().filter(({ state }) => state === "ALARM");
    return all.map(({ name }) => alarmName(name));
  }

  /**
   * Breaks one thing after the other, waits until what must rise has risen, mends, and waits until all is over. Faults
   * that meet together must not raise each other's alarms.
   */
  async meets(...faults: readonly Fault[]): Promise<void> {
    assert.deepEqual(this.inAlarm(), []);
    this.risen.clear();
    this.#errors.length = 0;
    const known = new Set(faults.flatMap(({ raises, consequences = [] }) => [...raises, ...consequences]));
    try {
      for (const { begin } of faults) await begin?.();
      await this.#rise(faults);
    } finally {
      for (const { mend } of faults) await mend?.();
    }
    await until(
      "the alarms are over",
      async () => {
        await wait(SETTLE_MS);
        await this.minute();
        return this.inAlarm().length === 0;
      },
      { seen: () => this.inAlarm() },
    );
    const others = [...this.risen].filter((name) => !known.has(name));
    assert.deepEqual(others, [], `no other than ${[...known]}; functions failed: ${this.#errors.join("\n")}`);
  }

  async #rise(faults: readonly Fault[]): Promise<void> {
    const missing = (of: readonly string[]) => of.filter((name) => !this.risen.has(name));
    for (let passed = 0; ; passed++) {
      const open = faults.filter(({ raises }) => missing(raises).length > 0);
      if (open.length === 0) return;
      const said = open.flatMap(({ raises }) => missing(raises));
      assert.ok(passed < PATIENCE_MINUTES, `${said} have not risen, but ${[...this.risen]}`);
      await Promise.all(open.map(({ each }) => each?.(passed)));
      await this.minute();
    }
  }

  stop(): Promise<void> {
    return this.stage.stop();
  }
}
