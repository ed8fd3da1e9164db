import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
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
/** Writes a source, a second ago: what was written while a bundle was made is another test. */
const write = (path: string, text: string) => {
  writeFileSync(path, text);
  const at = Date.now() / 1_000 - 1;
  utimesSync(path, at, at);
};
const current = async () => (await keptOr(file, scratch, make)).files["index.mjs"];

test("a bundle is made again when something that went in is another, or gone, or was not there, and only then", async () => {
  write(first, "a");
  write(second, "b");
  assert.equal(await current(), "bundle 1");
  assert.equal(await current(), "bundle 1");
  assert.deepEqual((await keptOr(file, scratch, make)).inputs, sources);
  write(second, "other");
  assert.equal(await current(), "bundle 2");
  assert.equal(await current(), "bundle 2");
  rmSync(first);
  assert.equal(await current(), "bundle 3");
  write(first, "a");
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
  write(second, "broken");
  const failing = keptOr(file, scratch, () => Promise.reject(new Error("does not parse")));
  await assert.rejects(failing, /does not parse/);
  write(second, "other");
  assert.equal(await current(), before);
});

test("of a source that is changed while its bundle is made nothing is kept", async () => {
  const before = await current();
  write(second, "changed");
  const meanwhile = async () => {
    const bundle = await make();
    writeFileSync(second, "changed again");
    return bundle;
  };
  assert.notEqual((await keptOr(file, scratch, meanwhile)).files["index.mjs"], before);
  write(second, "changed again");
  assert.equal(await current(), `bundle ${made}`);
  assert.equal(made, Number(before?.slice("bundle ".length)) + 2);
});

test("what another checkout has kept is none of this one's", async () => {
  const before = made;
  assert.deepEqual((await keptOr(file, "/elsewhere", make)).files, { "index.mjs": `bundle ${before + 1}` });
});

test("a bundle that cannot be kept is there all the same, and that is told once", async ({ mock }) => {
  const said = mock.method(console, "error", () => {});
  const within = join(file, "below-a-file");
  for (const name of ["admit", "work"]) {
    const before = made;
    const { files } = await keptOr(join(within, `${name}.json`), scratch, make);
    assert.deepEqual(files, { "index.mjs": `bundle ${before + 1}` });
  }
  assert.deepEqual(
    said.mock.calls.map(({ arguments: [line] }) => line),
    [
      `bundles cannot be kept in ${within}: ENOTDIR: not a directory; they take longer, for they are made anew`,
    ],
  );
});
