import { basename, join } from "node:path";
import { type BuildOptions, build, type Metafile, type OutputFile, type Plugin } from "esbuild";

/** Some dependencies are CommonJS and require Node's own modules, which an ES module cannot do by itself. */
export const MODULE_BANNER = `import{createRequire as sluiceRequire}from"node:module";const require=sluiceRequire(import.meta.url);`;

/** And ask where they are, if only to say so: an ES module knows it by other names. Files beside them are not in a bundle. */
const COMMON_JS = { __dirname: "import.meta.dirname", __filename: "import.meta.filename" };

/** The first of a function's files, which Lambda imports. */
const INDEX = "index.mjs";

const OUTPUT = {
  outExtension: { ".js": ".mjs" },
  write: false,
  bundle: true,
  platform: "node",
  target: "node24",
  format: "esm",
  sourcesContent: false,
  legalComments: "none",
  logLevel: "silent",
} as const satisfies BuildOptions;

/** What of the options is a function's own; its entry is to come out as `index`. */
export type FunctionBuild = Pick<
  BuildOptions,
  "absWorkingDir" | "entryPoints" | "stdin" | "entryNames" | "nodePaths" | "plugins" | "tsconfigRaw"
> & { readonly outdir: string };

/**
 * Builds a function: `index.mjs` with all that its start needs, and beside it what is imported only when it is needed.
 *
 * esbuild makes a file of what each set of dynamic imports shares, so that a start would read twenty files instead of one;
 * a second pass joins those of the start (docs/benchmarks.md, cold starts).
 *
 * @returns the files with their source maps, and what went in
 * @throws esbuild's BuildFailure when a source is missing or does not parse
 */
export async function buildFunction(
  options: FunctionBuild,
): Promise<{ readonly files: readonly OutputFile[]; readonly inputs: Metafile["inputs"] }> {
  const { outputFiles, metafile } = await build({
    ...OUTPUT,
    // ES modules first: only they can be shaken down to what a function uses.
    mainFields: ["module", "main"],
    define: COMMON_JS,
    splitting: true,
    metafile: true,
    sourcemap: "inline",
    ...options,
  });
  const named = withNamesOf(commonJsIn(metafile));
  const parts = new Map(outputFiles.map(({ path, text }) => [basename(path), named(text)]));
  const start = exportsAtStart(metafile);
  const asked = importedLater(metafile);
  const others = [...parts.keys()].filter((name) => name !== INDEX && (asked.has(name) || !start.has(name)));
  const write = async (names: readonly string[], own: BuildOptions) => {
    const { outputFiles } = await build({
      ...OUTPUT,
      entryPoints: names.map((name) => ({ in: name, out: basename(name, ".mjs") })),
      outdir: options.outdir,
      minify: true,
      sourcemap: "linked",
      banner: { js: MODULE_BANNER },
      plugins: [joined(parts, start, options.outdir)],
      ...own,
      write: false,
    });
    return outputFiles;
  };
  // What is loaded later imports the start, which must not wait for it in turn, as a top-level await would.
  const atStart = await write([INDEX], { supported: { "top-level-await": false } });
  // To give each function its name back takes a start a tenth of its time, and nothing in it asks for one; agents might.
  // Of those that have the same name in one file all but one get it with a number.
  const later = await write(others, { keepNames: true });
  return { files: [...atStart, ...later], inputs: metafile.inputs };
}

/** What the files of a start export: `index.mjs`, and what it imports at once, in turn. */
function exportsAtStart({ outputs }: Metafile): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  const add = (path: string): void => {
    const output = outputs[path];
    if (output === undefined || found.has(basename(path))) return;
    found.set(basename(path), output.exports);
    for (const { kind, path: next } of output.imports) if (kind === "import-statement") add(next);
  };
  for (const path of Object.keys(outputs)) if (basename(path) === INDEX) add(path);
  return found;
}

/** The files that are imported only when they are needed; also one of the start may be. */
function importedLater({ outputs }: Metafile): Set<string> {
  return new Set(
    Object.values(outputs).flatMap(({ imports }) =>
      imports.flatMap(({ kind, path }) => (kind === "dynamic-import" ? [basename(path)] : [])),
    ),
  );
}

/** The files that are CommonJS and imported later: of what those export esbuild exports the whole alone, as `default`. */
function commonJsIn({ inputs, outputs }: Metafile): string[] {
  return Object.entries(outputs).flatMap(([path, { entryPoint = "" }]) =>
    inputs[entryPoint]?.format === "cjs" ? [basename(path)] : [],
  );
}

/** What an import of CommonJS gives under Node.js: beside the whole, each thing by its name (Node.js: ECMAScript modules, CommonJS namespaces). */
const NAMED = `(({default:all})=>{const of={__proto__:null,default:all};if(typeof all==="object"||typeof all==="function")for(const name of Object.keys(all??{}))if(name!=="default")Object.defineProperty(of,name,{enumerable:true,get:()=>all[name]});return of})`;

/** Has imports of these files give what Node.js would. */
function withNamesOf(files: readonly string[]): (text: string) => string {
  return (text) =>
    files.reduce(
      (of, file) => of.replaceAll(`import("./${file}")`, `import("./${file}").then(${NAMED})`),
      text,
    );
}

/**
 * Joins the files of a start in `index.mjs`, which exports what each of them did, under short names of its own; the other files
 * stay as they are, and take from it what they took from those.
 */
function joined(
  parts: ReadonlyMap<string, string>,
  start: ReadonlyMap<string, readonly string[]>,
  outdir: string,
): Plugin {
  const order = [...start.keys()];
  const numbered = [...start].flatMap(([file, names]) => names.map((name) => `${file} ${name}`));
  const inAll = (file: string, name: string) =>
    file === INDEX ? name : `s${numbered.indexOf(`${file} ${name}`).toString(36)}`;
  const reexport = (file: string, of: string, names: (name: string) => string) =>
    `export { ${(start.get(of) ?? []).map(names).join(", ")} } from "./${file}";`;
  return {
    name: "sluice-joined",
    setup(of) {
      of.onResolve({ filter: /^(\.\/)?[^/]+\.mjs$/ }, ({ path, importer, namespace, kind }) => {
        const name = basename(path);
        const file = { path: join(outdir, name) };
        if (kind === "entry-point" && name === INDEX) return { path: name, namespace: "all" };
        if (namespace === "taken" || kind === "dynamic-import") return { path, external: true };
        if (namespace === "all" || start.has(basename(importer))) return file;
        if (start.has(name)) return { path: name, namespace: "taken" };
        return kind === "entry-point" ? file : { path, external: true };
      });
      of.onLoad({ filter: /./, namespace: "all" }, () => ({
        contents: order
          .map((part) => reexport(part, part, (name) => `${name} as ${inAll(part, name)}`))
          .join("\n"),
        resolveDir: outdir,
      }));
      of.onLoad({ filter: /./, namespace: "taken" }, ({ path: part }) => ({
        contents: reexport(INDEX, part, (name) => `${inAll(part, name)} as ${name}`),
        resolveDir: outdir,
      }));
      of.onLoad({ filter: /./, namespace: "file" }, ({ path }) => ({
        contents: parts.get(basename(path)),
      }));
    },
  };
}
