import { type AlarmDefinition, lookBackMs, valuesOf } from "./definitions.ts";
import { type AlarmState, EXTRA_PERIODS, judge } from "./judge.ts";
import type { MetricStore } from "./store.ts";

/** How an alarm stands. */
export interface AlarmStatus {
  readonly name: string;
  readonly description: string;
  readonly state: AlarmState;
  /** When it came to that, in milliseconds of the metrics' clock. */
  readonly since: number;
}

/** An alarm that has come to another state. */
export interface AlarmChange {
  readonly name: string;
  readonly description: string;
  readonly from: AlarmState;
  readonly to: AlarmState;
}

/** The alarms of a stack, and how each stands. */
export class Alarms {
  readonly #alarms: { readonly definition: AlarmDefinition; state: AlarmState; since: number }[];
  readonly #store: MetricStore;
  readonly #startedAt: number;

  /** @param startedAt since when there are metrics, in milliseconds of their clock */
  constructor(definitions: readonly AlarmDefinition[], store: MetricStore, startedAt: number) {
    this.#alarms = definitions.map((definition) => ({
      definition,
      state: "INSUFFICIENT_DATA",
      since: startedAt,
    }));
    this.#store = store;
    this.#startedAt = startedAt;
  }

  /**
   * Judges each alarm by the minutes that are over. One that looks back to before there was anything to measure waits:
   * what has just been started has missed nothing.
   *
   * @param end the end of the last of these minutes
   */
  evaluate(end: number): AlarmChange[] {
    const changes: AlarmChange[] = [];
    for (const alarm of this.#alarms) {
      const { definition, state: from } = alarm;
      if (end - lookBackMs(definition) < this.#startedAt) continue;
      const periods = definition.rule.evaluationPeriods + EXTRA_PERIODS;
      const to = judge(valuesOf(definition, this.#store, end, periods), definition.rule, from);
      if (to === from) continue;
      alarm.state = to;
      alarm.since = end;
      changes.push({ name: definition.name, description: definition.description, from, to });
    }
    return changes;
  }

  status(): AlarmStatus[] {
    return this.#alarms.map(({ definition: { name, description }, state, since }) => ({
      name,
      description,
      state,
      since,
    }));
  }
}
