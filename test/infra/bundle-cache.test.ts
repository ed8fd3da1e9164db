import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { keptOr } from "../../infra/bundle-cache.ts";

const scratch = mkdtempSync(join(tmpdir(), "sluice-kept-"));
after(() => rmSync(scratch, { recursive: true }));

const sources = ["a.ts", "b.ts"].map((name) => join(scratch, name));
const [first = "", second = ""] = sources;
const folder = join(scratch, "kept");
const file = join(folder, "admit.json");

let made = 0;
const make = async () => ({ inputs: sources, files: { "index.mjs": `bundle ${++made}` } });
const current = async () => (await keptOr(file, make)).files["index.mjs"];

test("a bundle is made again when something that went in is another, or gone, or was not there, and only then", async () => {
  writeFileSync(first, "a");
  writeFileSync(second, "b");
  assert.equal(await current(), "bundle 1");
  assert.equal(await current(), "bundle 1");
  assert.deepEqual((await keptOr(file, make)).inputs, sources);
  writeFileSync(second, "other");
  assert.equal(await current(), "bundle 2");
  assert.equal(await current(), "bundle 2");
  rmSync(first);
  assert.equal(await current(), "bundle 3");
  writeFileSync(first, "a");
  assert.equal(await current(), "bundle 4");
});

test("what is no bundle is made anew; nothing but the bundle is left", async () => {
  for (const text of ["", "{", "[]", '{"inputs":{}}', '{"inputs":{},"files":{"index.mjs":1}}']) {
    writeFileSync(file, text);
    const before = made;
    assert.equal(await current(), `bundle ${before + 1}`);
  }
  assert.deepEqual(readdirSync(folder), ["admit.json"]);
});

test("a bundle that cannot be made leaves the former one", async () => {
  const before = await current();
  writeFileSync(second, "broken");
  const failing = keptOr(file, () => Promise.reject(new Error("does not parse")));
  await assert.rejects(failing, /does not parse/);
  writeFileSync(second, "other");
  assert.equal(await current(), before);
});
