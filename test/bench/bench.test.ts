import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { PROGRAM } from "./floor/crew.ts";
import { arrivals } from "./latency.ts";
import { percentile } from "./print.ts";
import { whereIn } from "./profile/where.ts";
import { recorded } from "./recording.ts";

const MAIN = resolve(import.meta.dirname, "main.ts");

test("percentiles are those of the nearest rank", () => {
  const values = [5, 1, 4, 2, 3];
  assert.deepEqual(
    [0.01, 0.5, 0.8, 0.81, 1].map((share) => percentile(values, share)),
    [1, 3, 4, 5, 5],
  );
  assert.ok(Number.isNaN(percentile([], 0.5)));
});

test("a schedule is the same each time, in order, within its time, and of its rate", () => {
  const at = arrivals(50, 20);
  assert.deepEqual(at, arrivals(50, 20));
  assert.deepEqual(
    at,
    at.toSorted((a, b) => a - b),
  );
  assert.ok(at.every((ms) => ms >= 0 && ms < 20_000));
  assert.ok(at.length > 800 && at.length < 1_200, `${at.length} of about 1,000`);
  assert.deepEqual(arrivals(0.001, 1), [0], "at least one");
});

test("a profile's time is told by package, by Node.js's module and by our folder; idle time is none", () => {
  const frame = (url: string, functionName = "f") => ({ functionName, url, lineNumber: 0, columnNumber: 0 });
  const nodes = [
    frame("", "(idle)"),
    frame("file:///r/node_modules/@smithy/core/dist/x.js"),
    frame("node:internal/fs/utils"),
    frame("file:///r/shared/steps/engine.ts"),
  ].map((callFrame, id) => ({ id, callFrame }));
  const where = whereIn(
    JSON.stringify({ nodes, samples: [0, 1, 2, 3, 3], timeDeltas: [9_000, 1_000, 2_000, 500, 500] }),
  );
  assert.deepEqual(Object.fromEntries(where), {
    "@smithy/core": 1,
    "Node.js fs": 2,
    "sluice shared/steps": 1,
  });
});

test("the floor still makes the calls that the product makes", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  try {
    const { status, stderr } = spawnSync(
      process.execPath,
      [MAIN, "floor", "--share", "0.01", "--rounds", "1"],
      { encoding: "utf8", env: { ...process.env, BENCH_RESULTS: folder } },
    );
    assert.equal(status, 0, stderr);
    const { tables, figures } = recorded.parse(JSON.parse(readFileSync(join(folder, "floor.json"), "utf8")));
    assert.equal(tables.length, 7);
    assert.ok((figures["throughput 256 product/bare"] ?? 0) > 0);
    // What its dozens of processes load is their clients: with the CDK each once took 0.4 GB, and the machine ran out.
    assert.ok(statSync(PROGRAM).size < 2_000_000, `${statSync(PROGRAM).size} bytes`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
