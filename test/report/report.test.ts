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
