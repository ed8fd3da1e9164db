import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { ROOT } from "../../infra/bundle.ts";

const page = readFileSync(join(ROOT, "docs", "testing.md"), "utf8");
/** The page's files, each under the name that its first line says. */
const files = [...page.matchAll(/```ts\n\/\/ (\S+)\n(.*?)```/gs)];

// Within the repository, where `sluice` is known.
mkdirSync(join(ROOT, ".cache"), { recursive: true });
const folder = mkdtempSync(join(ROOT, ".cache", "docs-testing-"));
after(() => rmSync(folder, { recursive: true }));

for (const [, name = "", text = ""] of files) {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
}

test("the page's examples are well typed", () => {
  const config = { extends: join(ROOT, "tsconfig.json"), include: ["."] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(ROOT, "node_modules", ".bin", "tsc");
  const ran = spawnSync(process.execPath, [tsc, "--noEmit", "-p", folder], { encoding: "utf8" });
  const complaints = ran.stdout.split("\n").filter((line) => /^(agents|test)\//.test(line));
  assert.deepEqual(complaints, []);
});

test("the page's examples are tests that pass", () => {
  const tests = files.map(([, name = ""]) => name).filter((name) => name.endsWith(".test.ts"));
  assert.equal(tests.length, 2);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const ran = spawnSync(process.execPath, ["--test", "--test-reporter=tap", ...tests], {
    cwd: folder,
    env,
    encoding: "utf8",
  });
  assert.equal(ran.status, 0, ran.stdout + ran.stderr);
  assert.match(ran.stdout, /^# pass 9$/m);
});
