import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { checkSections } from "./checks.ts";
import { markdownTable } from "./markdown.ts";
import { plot } from "./plot.ts";
import { regressionSection } from "./regressions.ts";

test("a table in Markdown has numbers to the right, and no bar or line of a cell breaks it", () => {
  assert.deepEqual(
    markdownTable(
      ["A|B", "N"],
      [
        ["x|y\nz", 1.25],
        ["", null],
      ],
    ),
    ["| A\\|B | N |", "| --- | ---: |", "| x\\|y<br>z | 1.25 |", "|  |  |"],
  );
});

test("checks that have left no file are said to be missing; of others each file is a row", () => {
  const cache = mkdtempSync(join(tmpdir(), "sluice-report-"));
  try {
    mkdirSync(join(cache, "faults"));
    const run = {
      ...{ at: "2026-08-01T12:00:00.000Z", seed: 7, lengthMs: 360_000, tookMs: 380_400 },
      ...{ tasks: 20, kills: 3, late: [], dead: [{}], violations: [] },
      toll: { "kill -9 work": 3, "nats drop": 4, "left out: nobody there": 9 },
    };
    const keep = (name: string, of: object) =>
      writeFileSync(join(cache, `faults/${name}.json`), JSON.stringify(of));
    keep("seed-7", run);
    keep("seed-10", { ...run, seed: 10 });
    keep("short", { ...run, lengthMs: 12_000 });
    const lines = checkSections(cache);
    const row = (first: string) => lines.filter((line) => line.startsWith(`| ${first}`));
    assert.deepEqual(row("2026-08-01T12:00"), [
      "| 2026-08-01T12:00 | 7 | 6 | 20 | 3 | 4 | 0 | 1 | 0 | 380 |",
      "| 2026-08-01T12:00 | 10 | 6 | 20 | 3 | 4 | 0 | 1 | 0 | 380 |",
    ]);
    assert.deepEqual(row("all"), ["| all |  |  | 40 | 6 | 8 |  |  | 0 |  |"]);
    assert.equal(lines.join("\n").split("Not run on this machine").length - 1, 3);
  } finally {
    rmSync(cache, { recursive: true });
  }
});

test("a fault stands in the report with when its test was seen to fail, or that it was not", () => {
  const fault = {
    path: "",
    fields: {},
    foundBy: "user",
    file: "a.test.ts",
    title: "works",
    commit: "1234567",
  };
  const of = (name: string) => ({ ...fault, name, story: "It is | lost." });
  const run = { at: "2026-08-01T12:00:00.000Z", digest: "", why: "", seconds: 1 };
  const text = regressionSection(["new", "good", "bad"].map(of), ({ name }) =>
    name === "new" ? undefined : { ...run, name, verdict: name === "good" ? "fails" : "PASSES" },
  ).join("\n");
  const row = (name: string, seen: string) =>
    `| ${name}: It is \\| lost. | user | a.test.ts: works | 1234567 | ${seen} |`;
  assert.ok(text.includes(row("new", "not run on this machine")), text);
  assert.ok(text.includes(row("good", "2026-08-01T12:00")), text);
  assert.ok(text.includes(row("bad", "NO: PASSES, 2026-08-01T12:00")), text);
});

test("a plot is well-formed, escapes its texts, and draws what was measured only", () => {
  const svg = plot([
    {
      title: "a < b & c",
      x: { label: "n", log: true },
      y: { label: "ms" },
      bound: 2,
      lines: [
        {
          name: "one",
          points: [
            { x: 1, y: 1 },
            { x: 100, y: null },
            { x: 1_000, y: 1.5 },
          ],
        },
      ],
    },
  ]);
  assert.match(svg, /a &lt; b &amp; c/);
  assert.equal(svg.match(/<circle/g)?.length, 2);
  assert.doesNotMatch(svg, /NaN|Infinity|undefined/);
  assert.equal(svg.match(/<g /g)?.length, svg.match(/<\/g>/g)?.length);
});
