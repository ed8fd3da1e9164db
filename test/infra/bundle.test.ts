import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import {
  type Bundles,
  bundleFunctions,
  FUNCTION_NAMES,
  type FunctionName,
  KEPT_BUNDLES,
  ROOT,
} from "../../infra/bundle.ts";
import { letEsbuildGrow } from "../../infra/esbuild-memory.ts";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { agentFiles, loadAgents } from "../../shared/config/load-agents.ts";
import { sizesOf, startFiles } from "../bench/cold/bundle.ts";
import { writeClients } from "../bench/cold/clients.ts";
import { ownParts } from "./support/own-code.ts";

letEsbuildGrow();
const scratch = mkdtempSync(join(tmpdir(), "sluice-bundle-"));
after(() => rmSync(scratch, { recursive: true }));

const agentsDir = join(ROOT, "agents");
const { deployment } = readAgentsYaml(join(ROOT, "agents.yaml"), await loadAgents(agentsDir));
const bundle = (folder: string, files = agentFiles(agentsDir), keepIn?: string) =>
  bundleFunctions({ deployment, agentFiles: files, outDir: join(scratch, folder), keepIn });

const bundles = await bundle("first");

/** The others than the one that carries agents. */
const AGENTLESS = FUNCTION_NAMES.filter((name) => name !== "work");

/** What the stack declares; the names need not exist to be imported. */
const ENVIRONMENT = {
  TABLE_NAME: "table",
  BUCKET_NAME: "bucket",
  TASKS_QUEUE_URL: "http://127.0.0.1:1/0/tasks",
  CONTROLS_QUEUE_URL: "http://127.0.0.1:1/0/controls",
  EVENTS_QUEUE_URL: "http://127.0.0.1:1/0/events",
  WORK_QUEUE_URL: "http://127.0.0.1:1/0/work",
  INSTANCE_ID: "instance",
  POWERTOOLS_SERVICE_NAME: "test",
  POWERTOOLS_METRICS_NAMESPACE: "Sluice",
  AWS_REGION: "us-east-1",
};

for (const name of FUNCTION_NAMES)
  test(`the bundle of ${name} stands alone: plain Node imports it, finds its handler, and loads no worker threads`, async () => {
    const file = join(bundles.folders[name], "index.mjs");
    // An import of node:util would load them (shared/wire/artifacts.ts).
    const script = `
      const { handler } = await import(${JSON.stringify(pathToFileURL(file).href)});
      console.log(typeof handler, process.moduleLoadList.includes("NativeModule worker_threads"));
      process.exit(0);`;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--enable-source-maps", "--input-type=module", "--eval", script],
      { cwd: scratch, env: ENVIRONMENT },
    );
    assert.equal(stdout.trim(), "function false");
  });

test("bundles are minified and have source maps that lead to our files and hold no copy of them", () => {
  for (const name of FUNCTION_NAMES) {
    const code = readFileSync(join(bundles.folders[name], "index.mjs"), "utf8");
    assert.match(code, /\/\/# sourceMappingURL=index\.mjs\.map\s*$/);
    assert.doesNotMatch(code, /[^\0-\xff]/, "V8 keeps a text with any such character in two bytes each");
    const map: unknown = JSON.parse(readFileSync(join(bundles.folders[name], "index.mjs.map"), "utf8"));
    assert.ok(typeof map === "object" && map !== null && "sources" in map && Array.isArray(map.sources));
    assert.ok(map.sources.some((path) => path.endsWith(`functions/${name}/handler.ts`)));
    assert.equal("sourcesContent" in map, false);
  }
});

test("the same sources give the same bytes, wherever they are written, made anew or kept", async () => {
  const kept = join(scratch, "kept");
  const same = (again: Bundles, names: readonly FunctionName[]) => {
    for (const name of names) {
      const files = readdirSync(bundles.folders[name]).sort();
      assert.deepEqual(readdirSync(again.folders[name]).sort(), files);
      for (const file of files)
        assert.ok(
          readFileSync(join(bundles.folders[name], file)).equals(
            readFileSync(join(again.folders[name], file)),
          ),
          `${name}/${file}`,
        );
    }
  };
  same(await bundle("second", agentFiles(agentsDir), kept), FUNCTION_NAMES);
  const names = [...AGENTLESS, "bridge-service"];
  assert.deepEqual(readdirSync(kept).sort(), names.map((name) => `${name}.json`).sort());
  same(await bundle("third", [], kept), AGENTLESS);
});

test("a bundle holds the deployment once, and but for that is the same for another", async () => {
  const other = { ...deployment, deployment: "another-one" };
  const outDir = join(scratch, "other");
  const { folders } = await bundleFunctions({
    deployment: other,
    agentFiles: [],
    outDir,
    keepIn: join(scratch, "kept"),
  });
  const textsOf = (folder: string) =>
    readdirSync(folder)
      .sort()
      .map((file) => readFileSync(join(folder, file), "utf8"));
  /** The deployment as a text holds it. */
  const held = /(?<=\{return JSON\.parse\()"(?:[^"\\]|\\.)*"(?=\)\}\n\/\/# sourceMappingURL)/g;
  const read = (texts: readonly string[]) =>
    texts.flatMap((text) => Array.from(text.matchAll(held), ([literal]) => JSON.parse(JSON.parse(literal))));
  for (const name of AGENTLESS) {
    const [texts, before] = [textsOf(folders[name]), textsOf(bundles.folders[name])];
    assert.deepEqual(read(texts), [JSON.parse(JSON.stringify(other))], name);
    assert.deepEqual(read(before), [JSON.parse(JSON.stringify(deployment))], name);
    const without = (text: string) => text.replaceAll(held, "");
    assert.deepEqual(texts.map(without), before.map(without));
  }
});

test("only the function that runs agents carries them", () => {
  const carries = (name: (typeof FUNCTION_NAMES)[number]) =>
    readdirSync(bundles.folders[name]).some(
      (file) =>
        file.endsWith(".map") &&
        readFileSync(join(bundles.folders[name], file), "utf8").includes("agents/digest.ts"),
    );
  assert.deepEqual(FUNCTION_NAMES.filter(carries), ["work"]);
});

test("what an agent imports when it needs it is in the bundle, and a start does not load it", async () => {
  const folder = bundles.folders.work;
  const script = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
    await import(${JSON.stringify(pathToFileURL(join(folder, "index.mjs")).href)});
    process.stdout.write(JSON.stringify(loaded), () => process.exit(0));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: scratch,
    env: ENVIRONMENT,
  });
  const withSdk = readdirSync(folder)
    .filter((file) => file.endsWith(".mjs"))
    .filter((file) => readFileSync(join(folder, `${file}.map`), "utf8").includes("node_modules/ai/"));
  assert.ok(withSdk.length > 0);
  assert.match(stdout, /\/index\.mjs"/);
  assert.deepEqual(
    withSdk.filter((file) => stdout.includes(file)),
    [],
  );
});

/** Of what a start loads: how much more it may be than the clients of AWS and NATS that it loads alone. */
const BESIDE_CLIENTS = 1.5;

for (const name of FUNCTION_NAMES)
  test(`what a start of ${name} loads is at most ${BESIDE_CLIENTS} times the clients in it, and no zod with methods`, async () => {
    const folder = bundles.folders[name];
    const clients = join(scratch, "clients", name);
    await writeClients(`${name}/handler.ts`, clients);
    assert.ok(sizesOf(folder).atStart <= BESIDE_CLIENTS * sizesOf(clients).atStart);
    assert.deepEqual(startFiles(folder), ["index.mjs"]);
    assert.equal(readFileSync(join(folder, "index.mjs.map"), "utf8").includes("zod/v4/classic/"), false);
  });

for (const name of FUNCTION_NAMES)
  test(`a start of ${name} makes no schema, and none of what V8 and zod have that is dear`, async () => {
    const { atStart } = await ownParts(`${name}/handler.ts`);
    const text = atStart.join("\n");
    assert.match(text, /^var \w+ = whenUsed\(.* zod_exports\./m);
    assert.doesNotMatch(text, /^var \w+ = zod_exports\./m);
    const code = readFileSync(join(bundles.folders[name], "index.mjs"), "utf8");
    assert.doesNotMatch(
      code,
      /[^\\]\\p\{/,
      "V8 checks a literal pattern at once, with its classes of Unicode",
    );
    assert.doesNotMatch(code, /\bBIGINT_FORMAT_RANGES\b/, "zod's helpers as a whole (shared/zod.ts, orElse)");
  });

test("the inputs are our own files, and what npm notes of the packages", () => {
  assert.ok(bundles.inputs.includes(join(agentsDir, "digest.ts")));
  assert.ok(bundles.inputs.includes(join(ROOT, "functions", "work", "handler.ts")));
  assert.equal(
    bundles.inputs.some((path) => /node_modules\/(?!\.package-lock\.json$)|sluice:/.test(path)),
    false,
  );
});

test("packages of agents elsewhere, of which the repository's npm notes nothing, are inputs, whatever an editor takes for them", async () => {
  const folder = join(scratch, "elsewhere");
  const word = join(folder, "node_modules", "word", "index.js");
  mkdirSync(dirname(word), { recursive: true });
  writeFileSync(word, "export default 'hello';");
  const file = join(folder, "greeter.ts");
  writeFileSync(file, 'import word from "word";\nexport default word;');
  writeFileSync(join(folder, "of-editor.ts"), "export default 1;");
  const paths = { word: ["./of-editor.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: { paths } }));
  const { inputs } = await bundle("own-packages", [file], KEPT_BUNDLES);
  assert.ok(inputs.includes(word));
});

test("an agent that does not parse is named", async () => {
  const file = join(scratch, "broken.ts");
  writeFileSync(file, "export default {");
  await assert.rejects(bundle("broken", [file]), /broken\.ts:1/);
});
