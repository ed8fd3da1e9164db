import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { openDataFolder } from "../../infra/local/data-folder.ts";
import { lockFolder } from "../../infra/local/folder-lock.ts";
import { temporaryFolder } from "./support/assembly.ts";

test("a data folder is made, with the folders around it", () => {
  const path = join(temporaryFolder("data"), "a", "b");
  assert.equal(openDataFolder(path), path);
  assert.equal(openDataFolder(path), path);
  assert.ok(existsSync(path));
});

test("what cannot be a data folder is named, with what to do", { timeout: 10_000 }, () => {
  const file = join(temporaryFolder("data"), "file");
  writeFileSync(file, "");
  const cases: [path: string, why: string][] = [
    ["/proc/x", "ENOENT"],
    ["/proc/x/y", "ENOENT"],
    [file, "it is a file"],
    [join(file, "below"), "ENOTDIR"],
  ];
  // Even for root there is nothing to be written there.
  if (readFileSync("/proc/mounts", "utf8").match(/ \/sys sysfs ro/)) cases.push(["/sys", "EROFS"]);
  for (const [path, why] of cases)
    assert.throws(() => openDataFolder(path), {
      code: "data_folder_unusable",
      message: new RegExp(`^${path}: cannot be used: ${why}.*; choose another folder with --data$`),
    });
});

test("a folder is in use only if another host holds its lock", () => {
  const folder = temporaryFolder("lock");
  const lock = lockFolder(folder);
  assert.throws(() => lockFolder(folder), {
    code: "data_folder_in_use",
    message: new RegExp(`in use by another host \\(process ${process.pid}\\)`),
  });
  lock.release();
  lockFolder(folder).release();

  const garbage = temporaryFolder("lock");
  writeFileSync(join(garbage, "host.lock"), "no database ".repeat(100));
  assert.throws(() => lockFolder(garbage), {
    code: "data_folder_unusable",
    message: /host\.lock: cannot be used: .*not a database; remove this file, or choose another folder/,
  });
  const noFile = temporaryFolder("lock");
  mkdirSync(join(noFile, "host.lock"));
  assert.throws(() => lockFolder(noFile), {
    code: "data_folder_unusable",
    message: /host\.lock: cannot be used: .*unable to open database file; remove this file/,
  });
});
