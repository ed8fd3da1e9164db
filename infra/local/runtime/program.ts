import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../../bundle.ts";

const SOURCE = join(import.meta.dirname, "bootstrap.ts");
const FOLDER = join(ROOT, ".cache", "runtime");

let made: Promise<string> | undefined;

/**
 * The file of the program that runs in a sandbox (bootstrap.ts), without its types: each start of a sandbox would strip
 * them anew, which took a fifth of it. It is kept for as long as the program is the same.
 */
export function sandboxProgram(): Promise<string> {
  made ??= make();
  return made;
}

async function make(): Promise<string> {
  const source = await readFile(SOURCE, "utf8");
  const file = join(
    FOLDER,
    `bootstrap-${createHash("sha256").update(source).digest("hex").slice(0, 16)}.mjs`,
  );
  if (existsSync(file)) return file;
  const { transform } = await import("esbuild");
  const { code } = await transform(source, { loader: "ts", format: "esm", target: "node24" });
  await mkdir(FOLDER, { recursive: true });
  // Another host that looks meanwhile finds no half of it.
  const fresh = `${file}.${randomUUID()}`;
  await writeFile(fresh, code);
  await rename(fresh, file);
  return file;
}
