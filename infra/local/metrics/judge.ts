import type { Value } from "./expression.ts";

export const STATES = ["OK", "ALARM", "INSUFFICIENT_DATA"] as const;
export type AlarmState = (typeof STATES)[number];

/** What an alarm makes of a period without a value. */
export type MissingData = "breaching" | "notBreaching" | "ignore" | "missing";

/** When an alarm is one. */
export interface Rule {
  readonly isBreaching: (value: number) => boolean;
  /** How many periods are looked at, */
  readonly evaluationPeriods: number;
  /** and in how many of them it must be breaching. */
  readonly datapointsToAlarm: number;
  readonly missing: MissingData;
}

/** How many more periods than are evaluated are looked at, for values that are missing (see the tables in the guide). */
export const EXTRA_PERIODS = 2;

/**
 * The state of an alarm (CloudWatch User Guide, "Configuring how CloudWatch alarms treat missing data").
 *
 * @param values of the last `evaluationPeriods` + {@link EXTRA_PERIODS} periods, the oldest first
 * @param current the state until now
 */
export function judge(values: readonly Value[], rule: Rule, current: AlarmState): AlarmState {
  const { evaluationPeriods, datapointsToAlarm, missing } = rule;
  const real = values.filter((value) => value !== undefined);
  const lacking = Math.max(0, evaluationPeriods - real.length);
  // The newest that there are, from farther back if need be.
  const breaching = real.slice(-evaluationPeriods).filter(rule.isBreaching).length;
  if (lacking === 0 || missing === "notBreaching") return breaching >= datapointsToAlarm ? "ALARM" : "OK";
  if (missing === "breaching") return breaching + lacking >= datapointsToAlarm ? "ALARM" : "OK";
  if (breaching >= datapointsToAlarm) return "ALARM";
  if (breaching < real.length) return "OK";
  if (missing === "ignore") return current;
  // Not one value is good: when the first of them is old enough, nothing is waited for.
  const since = values.findIndex((value) => value !== undefined);
  return since >= 0 && values.length - since >= datapointsToAlarm ? "ALARM" : "INSUFFICIENT_DATA";
}
