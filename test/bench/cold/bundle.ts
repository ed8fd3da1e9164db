import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import * as z from "zod";
import { functionEnvironment } from "../../../infra/local/function-environment.ts";
import type { FunctionDeclaration } from "../../../infra/local/stack.ts";

const NOWHERE = "http://127.0.0.1:1/000000000000";

/** How large the files of a bundle are, in bytes, without source maps. */
export interface Sizes {
  readonly all: number;
  readonly zipped: number;
  /** Of what is imported before the first invocation. */
  readonly atStart: number;
}

export function sizesOf(codeDir: string): Sizes {
  const files = readdirSync(codeDir).filter((file) => file.endsWith(".mjs"));
  const read = (file: string) => readFileSync(join(codeDir, file));
  const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);
  return {
    all: sum(files.map((file) => read(file).byteLength)),
    zipped: sum(files.map((file) => gzipSync(read(file)).byteLength)),
    atStart: sum(startFiles(codeDir).map((file) => read(file).byteLength)),
  };
}

/** The files of a bundle that are imported before the first invocation. */
export function startFiles(codeDir: string): string[] {
  return importedBy("index.mjs", codeDir);
}

/** A file and what it imports at once, in turn. */
function importedBy(file: string, codeDir: string, known = new Set<string>()): string[] {
  if (known.has(file)) return [];
  known.add(file);
  const text = readFileSync(join(codeDir, file), "utf8");
  const parts = Array.from(text.matchAll(/(?:from|import)"\.\/([^"]+\.mjs)"/g), ([, part = ""]) => part);
  for (const part of parts) importedBy(part, codeDir, known);
  return [...known];
}

const IMPORT = `
const [began, used] = [performance.now(), process.cpuUsage()];
await import(process.argv[1]);
const ms = performance.now() - began;
const { user, system } = process.cpuUsage(used);
process.stdout.write(JSON.stringify({ ms, cpuMs: (user + system) / 1_000 }), () => process.exit(0));
`;
const imported = z.object({ ms: z.number(), cpuMs: z.number() });

/** How long an import took, and how long the process computed for it, in milliseconds. */
export type Imported = z.infer<typeof imported>;

/**
 * Imports a bundle in a new process, in the environment of a function.
 *
 * @param codeDir the bundle's folder. Default: the function's own
 * @throws Error when it cannot be imported
 */
export function importTime(declaration: FunctionDeclaration, codeDir = declaration.codeDir): Imported {
  const nowhere = { dynamodb: NOWHERE, sqs: NOWHERE, s3: NOWHERE, nats: "nats://127.0.0.1:1" };
  const env = functionEnvironment(declaration, nowhere, { credentials: "none", ca: undefined }, 1);
  const args = ["--input-type=module", "-e", IMPORT, pathToFileURL(join(codeDir, "index.mjs")).href];
  const { stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: "utf8" });
  if (stdout === "") throw new Error(`${declaration.name}: its bundle could not be imported: ${stderr}`);
  return imported.parse(JSON.parse(stdout));
}
