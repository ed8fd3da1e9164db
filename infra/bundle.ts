import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import type { Plugin } from "esbuild";
import type { DeploymentConfig } from "../shared/config/deployment.ts";
import { keptOr, type Made } from "./bundle-cache.ts";
import { buildFunction } from "./function-build.ts";

/** The functions of the stack; each is `functions/<name>/handler.ts` exporting `handler`. */
export const FUNCTION_NAMES = ["bridge", "admit", "control", "events", "work", "sweep", "cards"] as const;
export type FunctionName = (typeof FUNCTION_NAMES)[number];

/** The repository's root. */
export const ROOT = resolve(import.meta.dirname, "..");

/** Where bundles without agents are kept, of what runs on this machine. */
export const KEPT_BUNDLES = join(ROOT, ".cache", "bundles");

/** Where the modules live that exist in bundles only (shared/config/virtual.d.ts). */
const NAMESPACE = "sluice-modules";

export interface BundleOptions {
  /** What `sluice:deployment` is. */
  readonly deployment: DeploymentConfig;
  /** The files whose default exports `sluice:agents` loads. */
  readonly agentFiles: readonly string[];
  /** Agents whose work function is their own, by id; the others' does not carry them. */
  readonly ownFunctions?: Iterable<string>;
  /** Where each bundle gets its folder with `index.mjs`, its parts and their source maps. */
  readonly outDir: string;
  /** The repository's root, below which `functions/` lies. */
  readonly root?: string;
  /** Where bundles without agents are kept for the next time. Without it all are made. */
  readonly keepIn?: string | undefined;
}

export interface Bundles {
  /** The folder of each function. */
  readonly folders: Readonly<Record<FunctionName, string>>;
  /** Those of the work functions that agents have of their own, by the agent's id. */
  readonly workFolders: ReadonlyMap<string, string>;
  /** That of the bridge as a service, with its Dockerfile. */
  readonly serviceFolder: string;
  /** Every file that went in as absolute paths, except for what is installed in the repository, of which npm's notes are. */
  readonly inputs: readonly string[];
}

/**
 * Bundles every function into a folder of its own. The same sources give the same bytes wherever the result is written,
 * so that a deployment replaces only functions that changed.
 *
 * @throws esbuild's BuildFailure when a source is missing or does not parse
 */
export async function bundleFunctions(options: BundleOptions): Promise<Bundles> {
  const { outDir, agentFiles, root = ROOT } = options;
  const own = new Set(options.ownFunctions);
  const worked = (by: (id: string) => boolean): Worked => ({
    agentFiles: agentFiles.filter((file) => by(agentOf(file))),
    fronts: options.deployment.agents.flatMap(({ id, remote }) =>
      remote !== undefined && by(id) ? [id] : [],
    ),
  });
  const nobody = worked(() => false);
  const bundles = [
    ...FUNCTION_NAMES.map((name) => ({
      name,
      entry: `${name}/handler.ts`,
      ...(name === "work" ? worked((id) => !own.has(id)) : nobody),
    })),
    ...Array.from(own, (id) => ({
      name: `work-${id}`,
      entry: "work/handler.ts",
      ...worked((of) => of === id),
    })),
    { name: "bridge-service", entry: "bridge/service.ts", ...nobody },
  ];
  const service = join(outDir, "bridge-service");
  const inputs = await Promise.all(bundles.map((of) => writeBundle({ ...options, ...of })));
  const dockerfile = join(root, "functions", "bridge", "Dockerfile");
  await copyFile(dockerfile, join(service, "Dockerfile"));
  return {
    folders: {
      bridge: join(outDir, "bridge"),
      admit: join(outDir, "admit"),
      control: join(outDir, "control"),
      events: join(outDir, "events"),
      work: join(outDir, "work"),
      sweep: join(outDir, "sweep"),
      cards: join(outDir, "cards"),
    },
    workFolders: new Map(Array.from(own, (id) => [id, join(outDir, `work-${id}`)])),
    serviceFolder: service,
    inputs: [...new Set([...inputs.flat(), dockerfile])],
  };
}

/** The id of the agent in a file: its name (shared/config/load-agents.ts). */
function agentOf(file: string): string {
  return basename(file, ".ts");
}

/** For whom a bundle works. */
interface Worked {
  readonly agentFiles: readonly string[];
  /** The ids of agents that are remote ones, and have no file. */
  readonly fronts: readonly string[];
}

interface Bundle extends Worked {
  /** Of its folder. */
  readonly name: string;
  /** Below `functions/`. */
  readonly entry: string;
}

/** Writes `index.mjs`, and beside it what is imported only when it is needed: a start does not wait for that. */
async function writeBundle(options: BundleOptions & Bundle): Promise<readonly string[]> {
  const { name, outDir, agentFiles, fronts, keepIn, root = ROOT } = options;
  const make = () => makeBundle(options);
  const isKept = keepIn !== undefined && agentFiles.length + fronts.length === 0;
  const { inputs, files } = isKept ? await keptOr(join(keepIn, `${name}.json`), root, make) : await make();
  for (const [path, text] of Object.entries(files)) {
    const file = join(outDir, name, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, withDeployment(path, text, options.deployment));
  }
  return inputs;
}

/** The call that `sluice:deployment` is, of a function that {@link withDeployment} adds. */
const DEPLOYMENT_CALL = "sluiceDeployment()";

/**
 * A file of a bundle with the deployment in it, if it asks for that. It is added at the end, where it moves nothing that
 * the source map tells of: so a bundle is the same for every deployment up to here, and need not be made for each.
 */
function withDeployment(path: string, text: string, deployment: DeploymentConfig): string {
  if (!path.endsWith(".mjs") || !text.includes(DEPLOYMENT_CALL)) return text;
  const json = inAscii(JSON.stringify(JSON.stringify(deployment)));
  const end = text.lastIndexOf("//# sourceMappingURL=");
  return `${text.slice(0, end)}function ${DEPLOYMENT_CALL}{return JSON.parse(${json})}\n${text.slice(end)}`;
}

/** A string literal in ASCII alone: one character beyond Latin-1, and V8 keeps all of a file in two bytes each. */
function inAscii(literal: string): string {
  return literal.replaceAll(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * Stands for any tsconfig.json that lies around sources: one beside agents may be for editors, with paths, and Node.js does
 * not read it when it loads them either. Imports are kept as written, as type stripping does (Node.js: TypeScript).
 */
const TSCONFIG = { compilerOptions: { verbatimModuleSyntax: true } };

/** What else every bundle is made by, below the root: esbuild reads the first two, npm writes the last when it installs. */
const OF_ALL = ["tsconfig.json", "package.json", "node_modules/.package-lock.json"];

async function makeBundle(options: BundleOptions & Bundle): Promise<Made> {
  const { name, entry, root = ROOT } = options;
  // Source maps hold paths relative to the output: a fixed one keeps the bytes free of the real place.
  const nominal = join(root, ".cache", "functions", name);
  const { files, inputs } = await buildFunction({
    absWorkingDir: root,
    entryPoints: [{ in: join(root, "functions", entry), out: "index" }],
    outdir: nominal,
    // Agents may lie outside the repository and use what is installed in it.
    nodePaths: [join(root, "node_modules")],
    tsconfigRaw: TSCONFIG,
    plugins: [sluiceModules(options, root), zodOfStarts(root)],
  });
  const packages = join(root, "node_modules", "/");
  const ownInputs = Object.keys(inputs)
    .filter((path) => !path.startsWith(NAMESPACE))
    .map((path) => resolve(root, path))
    .filter((path) => !path.startsWith(packages));
  const makers = ["bundle.ts", "function-build.ts"].map((file) => join(import.meta.dirname, file));
  return {
    files: Object.fromEntries(files.map(({ path, text }) => [relative(nominal, path), text])),
    inputs: [...ownInputs, ...makers, ...OF_ALL.map((file) => join(root, file))],
  };
}

/** Resolves what exists in bundles only, and the package's own name wherever an agent lies. */
function sluiceModules(options: BundleOptions & Bundle, root: string): Plugin {
  return {
    name: NAMESPACE,
    setup(of) {
      of.onResolve({ filter: /^sluice$/ }, () => ({ path: join(root, "shared", "agents", "index.ts") }));
      of.onResolve({ filter: /^sluice:/ }, ({ path }) => ({ path, namespace: NAMESPACE }));
      of.onLoad({ filter: /^sluice:deployment$/, namespace: NAMESPACE }, () => ({
        contents: `export default ${DEPLOYMENT_CALL};`,
        loader: "js",
      }));
      of.onLoad({ filter: /^sluice:agents$/, namespace: NAMESPACE }, () => ({
        contents: agentsModule(options, root),
        loader: "js",
        resolveDir: root,
      }));
    },
  };
}

/**
 * The zod of our own code (shared/zod.ts) is a copy beside that of agents: esbuild puts a file that both import into one
 * part, with all that either uses of it, and a start would load every language's texts because an agent might.
 */
function zodOfStarts(root: string): Plugin {
  const namespace = `${NAMESPACE}-zod`;
  const folder = join(root, "node_modules", "zod");
  const copy = (file: string) => ({ path: relative(folder, file), namespace, sideEffects: false });
  return {
    name: namespace,
    setup(of) {
      of.onResolve({ filter: /^zod\// }, async ({ path, importer, kind, resolveDir }) => {
        if (importer !== join(root, "shared", "zod.ts")) return undefined;
        return copy((await of.resolve(path, { kind, resolveDir })).path);
      });
      of.onResolve({ filter: /^\./, namespace }, ({ path, importer }) =>
        copy(join(folder, dirname(importer), path)),
      );
      of.onLoad({ filter: /./, namespace }, async ({ path }) => ({
        contents: await readFile(join(folder, path), "utf8"),
      }));
    },
  };
}

/**
 * A start waits for no agent: one is loaded when a task for it comes. What remote agents take is in a bundle that works for
 * one alone.
 */
function agentsModule({ agentFiles, fronts }: Worked, root: string): string {
  const files = agentFiles.map((file) => {
    const load = `async () => (await import(${JSON.stringify(file)})).default`;
    return `{ id: ${JSON.stringify(agentOf(file))}, load: ${load} }`;
  });
  const remotes = fronts.map(
    (id) => `{ id: ${JSON.stringify(id)}, load: async (head, work) => (await front()).frontFor(work, head) }`,
  );
  const module = join(root, "shared", "remotes", "front", "index.ts");
  const front = fronts.length > 0 ? `() => import(${JSON.stringify(module)})` : "undefined";
  return `export const front = ${front};\nexport const agents = [${[...files, ...remotes].join(", ")}];`;
}
