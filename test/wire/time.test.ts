import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { NS_PER_MS, parseTime } from "../../shared/wire/time.ts";

test("times as ISO strings are read to the millisecond", () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date(0), max: new Date("9999-12-31T23:59:59Z"), noInvalidDate: true }),
      (date) => {
        assert.equal(parseTime(date.toISOString()), BigInt(date.getTime()) * NS_PER_MS);
      },
    ),
  );
});

test("fractions up to nanoseconds and offsets", () => {
  const noon = parseTime("2026-08-01T12:00:00Z") ?? 0n;
  assert.equal(parseTime("2026-08-01T12:00:00.000000001Z"), noon + 1n);
  assert.equal(parseTime("2026-08-01T12:00:00.1Z"), noon + 100_000_000n);
  assert.equal(parseTime("2026-08-01T14:30:00+02:30"), noon);
  assert.equal(parseTime("2026-08-01T04:00:00-08:00"), noon);
  assert.notEqual(parseTime("2024-02-29T00:00:00Z"), null);
});

test("what is no RFC 3339 time is none", () => {
  for (const text of [
    "",
    "yesterday",
    "2026-08-01",
    "2026-08-01T12:00:00",
    "2026-08-01 12:00:00Z",
    "2026-08-01T12:00Z",
    "2026-08-01t12:00:00z",
    "2026-08-01T24:00:00Z",
    "2026-08-01T12:60:00Z",
    "2026-13-01T12:00:00Z",
    "2026-02-30T12:00:00Z",
    "2025-02-29T12:00:00Z",
    "2026-08-01T12:00:00.Z",
    "2026-08-01T12:00:00.1234567890Z",
    "2026-08-01T12:00:00+24:00",
    "+02026-08-01T12:00:00Z",
    "2026-08-01T12:00:00Z\n",
  ])
    assert.equal(parseTime(text), null, JSON.stringify(text));
});
