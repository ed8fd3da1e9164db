import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, test } from "node:test";
import { problemOf } from "../support/patches.ts";
import { digestOf, readRegressions } from "./regressions.ts";
import { keep, lastSeen } from "./seen.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const LEAST = 15;

/** Whether the history is here as a whole: an archive has none, a shallow clone a part. */
const hasHistory =
  existsSync(join(ROOT, ".git")) && git("rev-parse", "--is-shallow-repository").stdout.trim() === "false";

function git(...args: readonly string[]) {
  return spawnSync("git", args, { cwd: ROOT, encoding: "utf8" });
}

describe("the faults that were found", () => {
  const regressions = readRegressions();

  test("can be brought back: each patch still applies", () => {
    assert.ok(regressions.length >= LEAST);
    for (const regression of regressions) assert.equal(problemOf(regression), undefined, regression.name);
  });

  test("are told in words, and have tests that are there", () => {
    for (const { name, story, file, title } of regressions) {
      assert.match(story, /^[A-Za-z].*\.$/, name);
      const text = readFileSync(join(ROOT, file), "utf8");
      assert.equal(text.split(`test(${JSON.stringify(title)},`).length, 2, `${name}: ${file} "${title}"`);
    }
  });

  test("have commits that are there", { skip: !hasHistory && "there is no whole history here" }, () => {
    for (const { name, commit } of regressions)
      assert.equal(git("cat-file", "-e", `${commit}^{commit}`).status, 0, `${name}: ${commit}`);
  });
});

test("a run counts for the patch that it was made with, and no other", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-seen-"));
  try {
    const fault = { name: "lost", path: join(folder, "lost.patch") };
    writeFileSync(fault.path, "one");
    assert.equal(lastSeen(fault, folder), undefined);
    const run = { name: "lost", at: new Date(0).toISOString(), digest: digestOf(fault), why: "", seconds: 1 };
    keep({ ...run, verdict: "fails" }, folder);
    assert.equal(lastSeen(fault, folder)?.verdict, "fails");
    writeFileSync(fault.path, "another");
    assert.equal(lastSeen(fault, folder), undefined);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
