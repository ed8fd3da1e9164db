import assert from "node:assert/strict";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ROOT } from "../../infra/bundle.ts";
import { keptOr } from "../../infra/bundle-cache.ts";
import { currentRecord, RECORD_FILE, writeRecord } from "../../infra/synth-record.ts";

const scratch = mkdtempSync(join(tmpdir(), "sluice-kept-"));
after(() => rmSync(scratch, { recursive: true }));

const sources = ["a.ts", "b.ts"].map((name) => join(scratch, name));
const [first = "", second = ""] = sources;
const folder = join(scratch, "kept");
const file = join(folder, "admit.json");

let made = 0;
const make = async () => ({ inputs: sources, files: { "index.mjs": `bundle ${++made}` } });
/** Writes a source, and lets some time pass: what was written while a bundle was made is another test. */
const write = async (path: string, text: string) => {
  writeFileSync(path, text);
  await sleep(150);
};
const current = async () => (await keptOr(file, scratch, make)).files["index.mjs"];

test("a bundle is made again when something that went in is another, or gone, or was not there, and only then", async () => {
  await write(first, "a");
  await write(second, "b");
  assert.equal(await current(), "bundle 1");
  assert.equal(await current(), "bundle 1");
  assert.deepEqual((await keptOr(file, scratch, make)).inputs, sources);
  await write(second, "other");
  assert.equal(await current(), "bundle 2");
  assert.equal(await current(), "bundle 2");
  rmSync(first);
  assert.equal(await current(), "bundle 3");
  await write(first, "a");
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
  await write(second, "broken");
  const failing = keptOr(file, scratch, () => Promise.reject(new Error("does not parse")));
  await assert.rejects(failing, /does not parse/);
  await write(second, "other");
  assert.equal(await current(), before);
});

/** The bundle of sources of which one is changed while it is made. */
const changedMeanwhile = (change: () => void) =>
  keptOr(file, scratch, async () => {
    const bundle = await make();
    change();
    return bundle;
  });

test("of a source that is changed while its bundle is made nothing is kept", async () => {
  const before = await current();
  await write(second, "changed");
  const bundle = await changedMeanwhile(() => writeFileSync(second, "changed again"));
  assert.notEqual(bundle.files["index.mjs"], before);
  await write(second, "changed again");
  assert.equal(await current(), `bundle ${made}`);
  assert.equal(made, Number(before?.slice("bundle ".length)) + 2);
});

test("nor if it is an old file that is moved there, or copied with its times", async () => {
  await current();
  const old = join(scratch, "old.ts");
  await write(old, "older than the bundle");
  await write(second, "changed once more");
  const before = made;
  await changedMeanwhile(() => renameSync(old, second));
  await current();
  assert.equal(made, before + 2);
});

test("what another checkout has kept is none of this one's", async () => {
  const before = made;
  assert.deepEqual((await keptOr(file, "/elsewhere", make)).files, { "index.mjs": `bundle ${before + 1}` });
});

test("a bundle that cannot be kept is there all the same, and that is told once", async ({ mock }) => {
  await write(second, "older than the bundle that is not kept");
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

/** An assembly of the sources in an empty folder of agents, noted in a folder of its own. */
async function noted(name: string, since: number) {
  const [dir, agentsDir] = ["assembly", "agents"].map((of) => join(scratch, name, of));
  assert.ok(dir !== undefined && agentsDir !== undefined);
  for (const path of [dir, agentsDir]) mkdirSync(path, { recursive: true });
  const agentsYaml = join(scratch, name, "agents.yaml");
  const of = { agentsDir, agentsYaml, agentFiles: [], inputs: sources };
  await writeRecord(dir, { stackName: "sluice-acme", ...of }, since);
  return { file: join(dir, RECORD_FILE), current: () => currentRecord(dir, agentsDir, agentsYaml) };
}

test("of a source that is changed while the stack is made the stack is none of it", async () => {
  await write(first, "a");
  const { current } = await noted("in-time", Date.now());
  assert.equal((await current())?.stackName, "sluice-acme");
  writeFileSync(first, "b");
  assert.equal(await current(), undefined);
  assert.equal(await (await noted("changed", 0)).current(), undefined);
});

test("another checkout's stack is none of this one's, nor one of which what reads the operator's file has changed", async () => {
  const { file, current } = await noted("elsewhere", Date.now());
  const text = readFileSync(file, "utf8");
  const known = JSON.parse(text);
  assert.equal(known.root, ROOT);
  writeFileSync(file, JSON.stringify({ ...known, root: "/elsewhere" }));
  assert.equal(await current(), undefined);
  const reader = join(ROOT, "shared", "config", "agents-yaml.ts");
  writeFileSync(file, JSON.stringify({ ...known, inputs: { ...known.inputs, [reader]: "another" } }));
  assert.equal(await current(), undefined);
  assert.ok(reader in known.inputs);
});
