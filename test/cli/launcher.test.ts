import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

const launcher = new URL("../../sluice", import.meta.url).pathname;
let dir: string;

before(() => {
  dir = mkdtempSync(join(tmpdir(), "sluice-launcher-"));
});
after(() => rmSync(dir, { recursive: true, force: true }));

function copyLauncher(): void {
  mkdirSync(join(dir, "infra/local"), { recursive: true });
  copyFileSync(launcher, join(dir, "sluice"));
  copyFileSync(
    new URL("../../infra/local/with-node.sh", import.meta.url),
    join(dir, "infra/local/with-node.sh"),
  );
}

function launch(
  path: string,
  env: Record<string, string> = {},
): Promise<{ code: unknown; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(
      path,
      ["--help"],
      { cwd: "/", env: { PATH: process.env.PATH, ...env } },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    );
  });
}

test("runs from anywhere, also through symbolic links", async () => {
  mkdirSync(join(dir, "bin"));
  symlinkSync(launcher, join(dir, "direct"));
  symlinkSync("../direct", join(dir, "bin/sluice"));
  for (const path of [launcher, join(dir, "bin/sluice")]) {
    const { code, stdout, stderr } = await launch(path);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /^Usage: sluice/);
  }
});

test("asks for npm ci where the packages are missing", async () => {
  copyLauncher();
  const { code, stderr } = await launch(join(dir, "sluice"));
  assert.equal(code, 2);
  assert.equal(stderr, `sluice: its packages are missing; run \`npm ci\` in ${dir} first\n`);
});

test("asks for Node 24 where there is an older one, or none", async () => {
  copyLauncher();
  mkdirSync(join(dir, "node_modules/commander"), { recursive: true });
  mkdirSync(join(dir, "old"));
  writeFileSync(join(dir, "old/node"), "#!/bin/sh\necho v23.11.1\n");
  chmodSync(join(dir, "old/node"), 0o755);
  const old = await launch(join(dir, "sluice"), { PATH: `${join(dir, "old")}:/usr/bin:/bin` });
  assert.equal(old.code, 2);
  assert.match(old.stderr, /^sluice: needs Node 24 or newer, found v23\.11\.1; install one/);
  mkdirSync(join(dir, "tools"));
  for (const tool of ["readlink", "dirname"]) symlinkSync(`/usr/bin/${tool}`, join(dir, "tools", tool));
  symlinkSync("/bin/sh", join(dir, "tools/sh"));
  const none = await launch(join(dir, "sluice"), { PATH: join(dir, "tools") });
  assert.equal(none.code, 2);
  assert.match(none.stderr, /found none; install one/);
});
