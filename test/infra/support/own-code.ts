import { join } from "node:path";
import { build } from "esbuild";
import { ROOT } from "../../../infra/bundle.ts";

/**
 * What of our own code ends up in a function's bundle, as one ES module: shaken as the bundle is (infra/bundle.ts), but
 * readable, with what it takes from packages as imports, and without the agents that an operator adds.
 *
 * @param entry below `functions/`, such as `admit/handler.ts`
 */
export async function ownCode(entry: string): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: [join("functions", entry)],
    bundle: true,
    write: false,
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
  });
  return outputFiles[0]?.text ?? "";
}
