import { join } from "node:path";
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

/** The same in the parts that a start loads, and the one of which it is the first; the others are loaded later. */
export async function ownParts(entry: string): Promise<readonly OutputFile[]> {
  return await buildOwn(entry, { splitting: true });
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
