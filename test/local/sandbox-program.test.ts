import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { sandboxProgram } from "../../infra/local/runtime/program.ts";

const scratch = mkdtempSync(join(tmpdir(), "sluice-program-"));
after(() => rmSync(scratch, { recursive: true }));
const folder = join(scratch, "runtime");

test("a sandbox's program is kept without its types; one that was cut is made anew", async () => {
  const file = await sandboxProgram(folder);
  const text = readFileSync(file, "utf8");
  assert.doesNotMatch(text, /interface Answer/);
  for (const bytes of [0, 10, text.length - 1]) {
    truncateSync(file, bytes);
    assert.equal(await sandboxProgram(folder), file);
    assert.equal(readFileSync(file, "utf8"), text);
  }
  assert.deepEqual(readdirSync(folder), [basename(file)]);
});

test("where it cannot be kept it is the source: a host needs no repository that it may write to", async () => {
  const noFolder = join(scratch, "file");
  writeFileSync(noFolder, "");
  assert.equal(basename(await sandboxProgram(join(noFolder, "runtime"))), "bootstrap.ts");
});
