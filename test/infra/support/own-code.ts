import { basename, join } from "node:path";
import { type BuildOptions, build, type OutputFile } from "esbuild";
import { ROOT } from "../../../infra/bundle.ts";

/**
 * What of our own code ends up in a function's bundle, as one ES module: shaken as the bundle is (infra/bundle.ts), but
 * readable, with what it takes from packages as imports, and without the agents that an operator adds.
 *
 * @param entry below `functions/`, such as `admit/handler.ts`
 */
export async function ownCode(entry: string): Promise<string> {
  const [file] = await buildOwn(entry, {});
  return file?.text ?? "";
}

/** The same in parts: those that a start loads, and those that are loaded later. */
export async function ownParts(
  entry: string,
): Promise<{ readonly atStart: readonly string[]; readonly later: readonly string[] }> {
  const files = await buildOwn(entry, { splitting: true });
  const parts = new Map(files.map(({ path, text }) => [basename(path), text]));
  const first = reachable("index.js", parts);
  const texts = (atStart: boolean) =>
    Array.from(parts).flatMap(([name, text]) => (first.has(name) === atStart ? [text] : []));
  return { atStart: texts(true), later: texts(false) };
}

const CHUNK = /(?:from|import) "\.\/([^"]+)"/g;

/** A part, and those that it imports at once, in turn. */
function reachable(name: string, parts: ReadonlyMap<string, string>, known = new Set<string>()): Set<string> {
  if (known.has(name)) return known;
  known.add(name);
  for (const [, next = ""] of parts.get(name)?.matchAll(CHUNK) ?? []) reachable(next, parts, known);
  return known;
}

async function buildOwn(entry: string, options: BuildOptions): Promise<OutputFile[]> {
  const { outputFiles = [] } = await build({
    absWorkingDir: ROOT,
    entryPoints: [{ in: join("functions", entry), out: "index" }],
    outdir: ".",
    bundle: true,
    platform: "node",
    target: "node24",
    format: "esm",
    packages: "external",
    plugins: [
      {
        name: "sluice-modules",
        setup(of) {
          of.onResolve({ filter: /^sluice:/ }, ({ path }) => ({ path, external: true }));
        },
      },
    ],
    logLevel: "silent",
    ...options,
    write: false,
  });
  return outputFiles;
}
