import { readdirSync, readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Tells which places of sources were not reached in this process. */
export interface Reached extends Disposable {
  /** Where in the sources the pattern's matches have never run, as `file:line: text`. */
  unreached(folder: string, pattern: RegExp): Promise<string[]>;
}

/**
 * Counts from now on what runs, block by block (Chrome DevTools Protocol, Profiler.takePreciseCoverage). Node takes
 * types out of a source by writing blanks over them, so places in the file are those in the script.
 */
export async function watchReached(): Promise<Reached> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  return {
    async unreached(folder, pattern) {
      const { result } = await session.post("Profiler.takePreciseCoverage");
      return readdirSync(folder)
        .filter((file) => file.endsWith(".ts"))
        .flatMap((file) => {
          const path = join(folder, file);
          const text = readFileSync(path, "utf8");
          const url = pathToFileURL(path).href;
          const ranges = result
            .filter((script) => script.url === url)
            .flatMap(({ functions }) => functions.flatMap((of) => of.ranges));
          return [...text.matchAll(pattern)].flatMap(({ index }) => {
            // The smallest block around a place counts for it.
            const around = ranges
              .filter(({ startOffset, endOffset }) => startOffset <= index && index < endOffset)
              .sort((a, b) => a.endOffset - a.startOffset - (b.endOffset - b.startOffset));
            if ((around[0]?.count ?? 0) > 0) return [];
            const [rest] = text.slice(index).split("\n", 1);
            return [`${file}:${text.slice(0, index).split("\n").length}: ${rest}`];
          });
        });
    },
    [Symbol.dispose]: () => session.disconnect(),
  };
}
