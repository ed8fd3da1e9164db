import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { checkSections } from "./checks.ts";
import { markdownTable } from "./markdown.ts";
import { plot } from "./plot.ts";

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
      seed: 7,
      violations: [],
      ends: { completed: 12, failed: 1 },
      plan: [{}, {}],
      deep: { a: { b: 1 } },
    };
    writeFileSync(join(cache, "faults/seed-7.json"), JSON.stringify(run));
    const text = checkSections(cache).join("\n");
    assert.match(text, /\| seed-7 \| [\d:T-]+ \| 7 \| 0 \| 12 completed, 1 failed \| 2 \|/);
    assert.equal(text.split("Not run on this machine").length - 1, 2);
  } finally {
    rmSync(cache, { recursive: true });
  }
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
