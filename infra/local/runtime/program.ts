import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../../bundle.ts";
import { writeWhole } from "../../bundle-cache.ts";

const SOURCE = join(import.meta.dirname, "bootstrap.ts");
const FOLDER = join(ROOT, ".cache", "runtime");
const OPTIONS = { loader: "ts", format: "esm", target: "node24" } as const;

/**
 * The file of the program that runs in a sandbox (bootstrap.ts), without its types: each start of a sandbox would strip
 * them anew, which took a fifth of it. It is kept for as long as the program is the same. Where it cannot be, as in a
 * checkout that is somebody else's or on a full disk, Node.js strips them.
 *
 * @param folder where it is kept
 */
export async function sandboxProgram(folder = FOLDER): Promise<string> {
  try {
    return await kept(folder);
  } catch {
    return SOURCE;
  }
}

async function kept(folder: string): Promise<string> {
  const source = await readFile(SOURCE, "utf8");
  const digest = createHash("sha256")
    .update(JSON.stringify([source, OPTIONS]))
    .digest("hex");
  const file = join(folder, `bootstrap-${digest.slice(0, 16)}.mjs`);
  // Without its last line it was cut, as by a machine that lost its power.
  const end = `// ${digest}\n`;
  if ((await readIfThere(file)).endsWith(end)) return file;
  const { transform } = await import("esbuild");
  const { code } = await transform(source, OPTIONS);
  await writeWhole(file, code + end);
  return file;
}

async function readIfThere(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}
