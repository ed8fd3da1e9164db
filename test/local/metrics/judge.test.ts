import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { Value } from "../../../infra/local/metrics/expression.ts";
import {
  type AlarmState,
  EXTRA_PERIODS,
  judge,
  type MissingData,
  STATES,
} from "../../../infra/local/metrics/judge.ts";

const BREACHING = 9;
const GOOD = 1;

function rule(datapointsToAlarm: number, evaluationPeriods: number, missing: MissingData) {
  return { isBreaching: (value: number) => value > 5, evaluationPeriods, datapointsToAlarm, missing };
}

/** As the guide writes them: `0` is good, `X` breaching, `-` missing. */
function pointsOf(text: string): Value[] {
  return text.split(" ").map((point) => (point === "X" ? BREACHING : point === "0" ? GOOD : undefined));
}

/** CloudWatch User Guide, "Configuring how CloudWatch alarms treat missing data": both tables of examples. */
const GUIDE: [string, number, string, string, string, string][] = [
  ["0 - X - X", 3, "OK", "OK", "OK", "OK"],
  ["0 - - - -", 3, "OK", "OK", "OK", "OK"],
  ["- - - - -", 3, "INSUFFICIENT_DATA", "retain", "ALARM", "OK"],
  ["0 X X - X", 3, "ALARM", "ALARM", "ALARM", "ALARM"],
  ["- - - - X", 3, "INSUFFICIENT_DATA", "retain", "ALARM", "OK"],
  ["X - - - -", 3, "ALARM", "retain", "ALARM", "OK"],
  ["0 - X - X", 2, "ALARM", "ALARM", "ALARM", "ALARM"],
  ["0 0 X 0 X", 2, "ALARM", "ALARM", "ALARM", "ALARM"],
  ["0 - X - -", 2, "OK", "OK", "ALARM", "OK"],
  ["- - - - 0", 2, "OK", "OK", "ALARM", "OK"],
  ["- - - - X", 2, "INSUFFICIENT_DATA", "retain", "ALARM", "OK"],
];
const MISSING = ["missing", "ignore", "breaching", "notBreaching"] as const;

test("missing data is treated as in the examples of CloudWatch's guide", () => {
  for (const [text, datapoints, ...expected] of GUIDE)
    for (const [i, missing] of MISSING.entries())
      for (const current of STATES) {
        const state = judge(pointsOf(text), rule(datapoints, 3, missing), current);
        assert.equal(
          state,
          expected[i] === "retain" ? current : expected[i],
          `${text} ${datapoints} ${missing}`,
        );
      }
});

const point = fc.constantFrom<Value>(BREACHING, GOOD, undefined);
const situation = fc.integer({ min: 1, max: 6 }).chain((periods) =>
  fc.record({
    values: fc.array(point, { minLength: periods + EXTRA_PERIODS, maxLength: periods + EXTRA_PERIODS }),
    datapoints: fc.integer({ min: 1, max: periods }),
    periods: fc.constant(periods),
    missing: fc.constantFrom<MissingData>(...MISSING),
    current: fc.constantFrom<AlarmState>(...STATES),
  }),
);

test("with no value missing only the newest count, whatever was said of missing ones", () => {
  fc.assert(
    fc.property(situation, ({ values, datapoints, periods, missing, current }) => {
      const full = values.map((value) => value ?? GOOD);
      const breaching = full.slice(-periods).filter((value) => value === BREACHING).length;
      const expected = breaching >= datapoints ? "ALARM" : "OK";
      assert.equal(judge(full, rule(datapoints, periods, missing), current), expected);
    }),
  );
});

test("a value that gets worse never ends an alarm, and one that gets better never raises one", () => {
  const rank = { OK: 0, INSUFFICIENT_DATA: 1, ALARM: 2 };
  fc.assert(
    fc.property(situation, fc.nat(), ({ values, datapoints, periods, missing, current }, at) => {
      const real = values.flatMap((value, i) => (value === undefined ? [] : [i]));
      const index = real[at % Math.max(1, real.length)];
      if (index === undefined) return;
      const of = (value: number) =>
        rank[judge(values.with(index, value), rule(datapoints, periods, missing), current)];
      assert.ok(of(GOOD) <= of(BREACHING));
    }),
  );
});

test("what is missing counts as said, and only where there are too few values", () => {
  fc.assert(
    fc.property(situation, ({ values, datapoints, periods, current }) => {
      const [worst, best] = (["breaching", "notBreaching"] as const).map((missing) =>
        judge(values, rule(datapoints, periods, missing), current),
      );
      const real = values.filter((value) => value !== undefined);
      if (real.length >= periods) assert.equal(worst, best);
      const bad = real.slice(-periods).filter((value) => value === BREACHING).length;
      assert.equal(best, bad >= datapoints ? "ALARM" : "OK");
      const lacking = Math.max(0, periods - real.length);
      assert.equal(worst, bad + lacking >= datapoints ? "ALARM" : "OK");
    }),
  );
});
