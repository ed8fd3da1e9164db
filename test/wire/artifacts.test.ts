import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { artifactRef, safeName } from "../../shared/wire/index.ts";

const REPORT = {
  id: "report",
  name: "report.txt",
  mediaType: "text/plain; charset=utf-8",
  digest: `sha256:${"0".repeat(64)}`,
  sizeBytes: 0,
};

test("a reference", () => {
  assert.deepEqual(artifactRef("task_1", REPORT), {
    ...REPORT,
    uri: "nats-object://a2a-artifacts/tasks/task_1/report/report.txt",
    bucket: "a2a-artifacts",
    key: "tasks/task_1/report/report.txt",
  });
});

test("a later version has a place of its own", () => {
  const { key, uri, name } = artifactRef("task_1", { ...REPORT, version: 2 });
  assert.deepEqual([key, name], ["tasks/task_1/report/2/report.txt", "report.txt"]);
  assert.equal(uri, `nats-object://a2a-artifacts/${key}`);
  assert.equal(artifactRef("task_1", { ...REPORT, version: 1 }).key, artifactRef("task_1", REPORT).key);
});

test("what peers would not accept is refused, by name", () => {
  for (const [field, value] of [
    ["id", "report.txt"],
    ["id", "r".repeat(129)],
    ["mediaType", "text"],
    ["mediaType", ""],
    ["digest", `sha256:${"A".repeat(64)}`],
    ["digest", "0".repeat(64)],
    ["sizeBytes", -1],
    ["sizeBytes", 1.5],
    ["version", 0],
    ["version", 1.5],
  ] as const)
    assert.throws(() => artifactRef("task_1", { ...REPORT, [field]: value }), new RegExp(field));
  assert.throws(() => artifactRef("../task_1", REPORT));
});

test("names become safe", () => {
  for (const [name, safe] of [
    ["report.txt", "report.txt"],
    ["/etc/passwd", "passwd"],
    ["../..", "artifact"],
    ["a/../b", "b"],
    ["..hidden", "hidden"],
    ["my report (1).txt", "my-report--1-.txt"],
    ["日本👍.md", "md"],
    ["a..b", "a.b"],
    ["dir/", "artifact"],
    ["", "artifact"],
    ["n".repeat(128), "n".repeat(128)],
    ["n".repeat(129), "n".repeat(128)],
  ] as const)
    assert.equal(safeName(name), safe, name);
});

test("any name is safe as the last part of a key", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (name) => {
      assert.match(safeName(name), /^(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/);
      assert.equal(safeName(safeName(name)), safeName(name));
    }),
  );
});
