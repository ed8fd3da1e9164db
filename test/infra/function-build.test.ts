import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { buildFunction } from "../../infra/function-build.ts";
import { startFiles } from "../bench/cold/bundle.ts";

const scratch = mkdtempSync(join(tmpdir(), "sluice-function-"));
after(() => rmSync(scratch, { recursive: true }));

/** A function whose start and whose later parts share modules, one of them CommonJS that requires one of Node's own. */
const SOURCES = {
  "index.ts": `
    import { counted } from "./counted.ts";
    import { shared } from "./shared.ts";
    export const handler = async () => {
      const [later, again, other] = await Promise.all([import("./later.ts"), import("./counted.ts"), import("./other.ts")]);
      return JSON.stringify({
        loads: globalThis.loads, same: again.counted === counted, seen: later.seen(), shared: shared === other.shared,
        named: later.named, place: later.place, common: await later.common(), failed: later.failed(), stack: later.stack(),
      });
    };`,
  "counted.ts": `globalThis.loads = (globalThis.loads ?? 0) + 1; export let counted = { n: 0 }; export const raise = () => counted.n++;`,
  "shared.ts": `import { basename, place } from "./common.cjs"; export const shared = { basename, place };`,
  "common.cjs": `exports.basename = require("node:path").basename; exports.place = [__dirname, __filename, typeof __dirname];`,
  "alone.cjs": `module.exports = () => "called"; module.exports.sum = (a, b) => a + b;`,
  "nothing.cjs": `module.exports = null;`,
  "later.ts": `
    import { counted, raise } from "./counted.ts";
    import { shared } from "./shared.ts";
    class OutOfPaper extends Error { constructor() { super(); this.name = new.target.name; } }
    export const named = shared.basename("/a/b");
    export const place = shared.place;
    export const common = async () => {
      const [{ basename, default: all }, { sum, default: alone }] = await Promise.all([import("./common.cjs"), import("./alone.cjs")]);
      return [basename("/a/b"), all.basename === basename, sum(1, 2), alone(), Object.keys(await import("./nothing.cjs"))];
    };
    export const seen = () => { raise(); return counted.n; };
    export const failed = () => new OutOfPaper().name;
    export const stack = () => new Error("here").stack;`,
  "other.ts": `export { shared } from "./shared.ts";`,
};

const outdir = join(scratch, "out");
let said: Readonly<Record<string, unknown>>;

before(async () => {
  for (const [name, text] of Object.entries(SOURCES)) writeFileSync(join(scratch, name), text);
  const { files, inputs } = await buildFunction({
    absWorkingDir: scratch,
    entryPoints: [{ in: join(scratch, "index.ts"), out: "index" }],
    outdir,
  });
  assert.deepEqual(Object.keys(inputs).toSorted(), Object.keys(SOURCES).toSorted());
  mkdirSync(outdir);
  for (const { path, contents } of files) writeFileSync(path, contents);
  const script = `const { handler } = await import(${JSON.stringify(pathToFileURL(join(outdir, "index.mjs")).href)}); console.log(await handler());`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--enable-source-maps",
    "--input-type=module",
    "--eval",
    script,
  ]);
  said = JSON.parse(stdout);
});

test("a start that waits for something at its top is refused, for what is loaded later would wait for it", async () => {
  const file = join(scratch, "waits.ts");
  writeFileSync(file, `await import("./later.ts"); export const handler = () => {};`);
  const entryPoints = [{ in: file, out: "index" }];
  await assert.rejects(
    buildFunction({ absWorkingDir: scratch, entryPoints, outdir: join(scratch, "waits") }),
    /Top-level await is not available/,
  );
});

test("a start is one file", () => assert.deepEqual(startFiles(outdir), ["index.mjs"]));

test("what a start has loaded is the same when it is imported later, and is not run again", () => {
  const { loads, same, seen, shared } = said;
  assert.deepEqual({ loads, same, seen, shared }, { loads: 1, same: true, seen: 1, shared: true });
});

test("CommonJS finds Node's own modules", () => assert.equal(said.named, "b"));

test("CommonJS that is imported when it is needed gives its exports by their names, as under Node.js", () =>
  assert.deepEqual(said.common, ["b", true, 3, "called", ["default"]]));

test("CommonJS that asks where it is learns where the bundle is", () =>
  assert.deepEqual(said.place, [outdir, join(outdir, "index.mjs"), "string"]));

test("what is loaded later, such as agents, keeps the names of its classes", () =>
  assert.equal(said.failed, "OutOfPaper"));

test("a stack leads to the source", () => assert.match(String(said.stack), /later\.ts:13:/));
