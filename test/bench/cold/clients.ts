import { basename, join } from "node:path";
import { build } from "esbuild";
import { ROOT } from "../../../infra/bundle.ts";
import { MODULE_BANNER } from "../../../infra/function-build.ts";
import { ownParts } from "../../infra/support/own-code.ts";

const IMPORT = /import \{([^}]*)\} from "(@(?:aws-sdk|nats-io)\/[^"]+)"/g;
const CHUNK = /(?:from|import) "\.\/([^"]+)"/g;

/**
 * Writes the bundle of a function that does nothing: it only imports from the clients of AWS and NATS what the function's
 * own code does, some of it later as there. It is what esbuild makes of them by itself, split and minified; the function's
 * own is joined besides (infra/function-build.ts).
 *
 * @param entry the function's, below `functions/`
 * @param outDir where `index.mjs` and its parts go
 */
export async function writeClients(entry: string, outDir: string): Promise<void> {
  const parts = new Map((await ownParts(entry)).map(({ path, text }) => [basename(path), text]));
  const first = reachable("index.js", parts);
  const texts = (atStart: boolean) =>
    Array.from(parts).flatMap(([name, text]) => (first.has(name) === atStart ? [text] : []));
  const later = reexports(texts(false));
  await build({
    absWorkingDir: ROOT,
    stdin: {
      contents: `${reexports(texts(true))}\n${later && LATER}`,
      resolveDir: ROOT,
      sourcefile: "index.js",
    },
    entryNames: "index",
    outdir: outDir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    platform: "node",
    target: "node24",
    format: "esm",
    mainFields: ["module", "main"],
    minify: true,
    sourcemap: "linked",
    sourcesContent: false,
    legalComments: "none",
    banner: { js: MODULE_BANNER },
    plugins: [
      {
        name: "later",
        setup(of) {
          of.onResolve({ filter: /^later$/ }, ({ path }) => ({ path, namespace: "later" }));
          of.onLoad({ filter: /./, namespace: "later" }, () => ({
            contents: later,
            resolveDir: join(ROOT, "functions"),
          }));
        },
      },
    ],
    logLevel: "silent",
  });
}

const LATER = `export const later = () => import("later");`;

/** What texts import from the clients, as exports: else it would be shaken off. */
function reexports(texts: readonly string[]): string {
  const taken = new Set<string>();
  for (const text of texts)
    for (const [, names = "", from] of text.matchAll(IMPORT))
      for (const name of names.split(",")) taken.add(`${name.trim().split(" ")[0]} from "${from}"`);
  return Array.from(taken, (of, i) => {
    const [name, ...from] = of.split(" ");
    return `export { ${name} as taken${i} } ${from.join(" ")};`;
  }).join("\n");
}

/** A part, and those that it imports at once, in turn. */
function reachable(name: string, parts: ReadonlyMap<string, string>, known = new Set<string>()): Set<string> {
  if (known.has(name)) return known;
  known.add(name);
  for (const [, next = ""] of parts.get(name)?.matchAll(CHUNK) ?? []) reachable(next, parts, known);
  return known;
}
