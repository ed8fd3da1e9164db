import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { ROOT } from "../../../infra/bundle.ts";
import { buildFunction } from "../../../infra/function-build.ts";
import { ownParts } from "../../infra/support/own-code.ts";

const IMPORT = /import \{([^}]*)\} from "(@(?:aws-sdk|nats-io)\/[^"]+)"/g;

/**
 * Writes the bundle of a function that does nothing: it only imports from the clients of AWS and NATS what the function's
 * own code does, some of it later as there. It is built as functions are, so that what differs is what is in it.
 *
 * @param entry the function's, below `functions/`
 * @param outDir where `index.mjs` and its parts go
 */
export async function writeClients(entry: string, outDir: string): Promise<void> {
  const parts = await ownParts(entry);
  const later = reexports(parts.later);
  const { files } = await buildFunction({
    absWorkingDir: ROOT,
    stdin: {
      contents: `${reexports(parts.atStart)}\n${later && LATER}`,
      resolveDir: ROOT,
      sourcefile: "index.js",
    },
    entryNames: "index",
    outdir: outDir,
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
  });
  await mkdir(outDir, { recursive: true });
  for (const { path, contents } of files) await writeFile(join(outDir, basename(path)), contents);
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
