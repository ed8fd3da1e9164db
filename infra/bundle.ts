import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { build, type Plugin } from "esbuild";
import type { DeploymentConfig } from "../shared/config/deployment.ts";

/** The functions of the stack; each is `functions/<name>/handler.ts` exporting `handler`. */
export const FUNCTION_NAMES = ["bridge", "admit", "control", "events", "work", "sweep"] as const;
export type FunctionName = (typeof FUNCTION_NAMES)[number];

/** The repository's root. */
export const ROOT = resolve(import.meta.dirname, "..");

/** Where the modules live that exist in bundles only (shared/config/virtual.d.ts). */
const NAMESPACE = "sluice-modules";
/** Some dependencies are CommonJS and require Node's own modules, which an ES module cannot do by itself. */
export const MODULE_BANNER = `import{createRequire as sluiceRequire}from"node:module";const require=sluiceRequire(import.meta.url);`;

export interface BundleOptions {
  /** What `sluice:deployment` is. */
  readonly deployment: DeploymentConfig;
  /** The files whose default exports `sluice:agents` lists. */
  readonly agentFiles: readonly string[];
  /** Where each function gets its folder with `index.mjs`, its parts and their source maps. */
  readonly outDir: string;
  /** The repository's root, below which `functions/` lies. */
  readonly root?: string;
}

export interface Bundles {
  /** The folder of each function. */
  readonly folders: Readonly<Record<FunctionName, string>>;
  /** Every file that went in, dependencies excluded, as absolute paths. */
  readonly inputs: readonly string[];
}

/**
 * Bundles every function into a folder of its own. The same sources give the same bytes wherever the result is written,
 * so that a deployment replaces only functions that changed.
 *
 * @throws esbuild's BuildFailure when a source is missing or does not parse
 */
export async function bundleFunctions(options: BundleOptions): Promise<Bundles> {
  const inputs = await Promise.all(FUNCTION_NAMES.map((name) => bundleFunction(name, options)));
  return {
    folders: {
      bridge: join(options.outDir, "bridge"),
      admit: join(options.outDir, "admit"),
      control: join(options.outDir, "control"),
      events: join(options.outDir, "events"),
      work: join(options.outDir, "work"),
      sweep: join(options.outDir, "sweep"),
    },
    inputs: [...new Set(inputs.flat())],
  };
}

/** Writes `index.mjs`, and beside it what is imported only when it is needed: a start does not wait for that. */
async function bundleFunction(name: FunctionName, options: BundleOptions): Promise<string[]> {
  const root = options.root ?? ROOT;
  // Source maps hold paths relative to the output: a fixed one keeps the bytes free of the real place.
  const nominal = join(root, ".cache", "functions", name);
  const result = await build({
    absWorkingDir: root,
    entryPoints: [{ in: join(root, "functions", name, "handler.ts"), out: "index" }],
    outdir: nominal,
    outExtension: { ".js": ".mjs" },
    write: false,
    metafile: true,
    bundle: true,
    splitting: true,
    platform: "node",
    target: "node24",
    format: "esm",
    // ES modules first: only they can be shaken down to what a function uses.
    mainFields: ["module", "main"],
    // Agents may lie outside the repository and use what is installed in it.
    nodePaths: [join(root, "node_modules")],
    minify: true,
    keepNames: true,
    sourcemap: "linked",
    sourcesContent: false,
    legalComments: "none",
    banner: { js: MODULE_BANNER },
    plugins: [sluiceModules(options, root)],
    logLevel: "silent",
  });
  for (const { path, contents } of result.outputFiles) {
    const file = join(options.outDir, name, relative(nominal, path));
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, contents);
  }
  return Object.keys(result.metafile.inputs)
    .filter((path) => !path.startsWith(`${NAMESPACE}:`) && !path.includes("node_modules/"))
    .map((path) => resolve(root, path));
}

/** Resolves what exists in bundles only, and the package's own name wherever an agent lies. */
function sluiceModules(options: BundleOptions, root: string): Plugin {
  return {
    name: NAMESPACE,
    setup(of) {
      of.onResolve({ filter: /^sluice$/ }, () => ({ path: join(root, "shared", "agents", "index.ts") }));
      of.onResolve({ filter: /^sluice:/ }, ({ path }) => ({ path, namespace: NAMESPACE }));
      of.onLoad({ filter: /^sluice:deployment$/, namespace: NAMESPACE }, () => ({
        contents: JSON.stringify(options.deployment),
        loader: "json",
      }));
      of.onLoad({ filter: /^sluice:agents$/, namespace: NAMESPACE }, () => ({
        contents: agentsModule(options.agentFiles),
        loader: "js",
        resolveDir: root,
      }));
    },
  };
}

function agentsModule(files: readonly string[]): string {
  const imports = files.map((file, i) => `import agent${i} from ${JSON.stringify(file)};`);
  return `${imports.join("\n")}\nexport const agents = [${files.map((_, i) => `agent${i}`).join(", ")}];`;
}
