import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../../bundle.ts";

const SOURCE = join(import.meta.dirname, "bootstrap.ts");
const FOLDER = join(ROOT, ".cache", "runtime");
const OPTIONS = { loader: "ts", format: "esm", target: "node24" } as const;

/**
 * The file of the program that runs in a sandbox (bootstrap.ts), without its types: each start of a sandbox would strip
 * them anew, which took a fifth of it. It is kept for as long as the program is the same.
 */
export async function sandboxProgram(): Promise<string> {
  const source = await readFile(SOURCE, "utf8");
  const digest = createHash("sha256")
    .update(JSON.stringify([source, OPTIONS]))
    .digest("hex");
  const file = join(FOLDER, `bootstrap-${digest.slice(0, 16)}.mjs`);
  if (existsSync(file)) return file;
  const { transform } = await import("esbuild");
  const { code } = await transform(source, OPTIONS);
  await mkdir(FOLDER, { recursive: true });
  // Another host that looks meanwhile finds no half of it.
  const fresh = `${file}.${randomUUID()}`;
  await writeFile(fresh, code);
  await rename(fresh, file);
  return file;
}
