/**
 * Shows that the simulation finds faults: `npm run mutations -- [NAME …] [--seed S] [--seconds N]` applies each patch of
 * `mutations/` to a copy of the project, one at a time, and simulates there until an invariant breaks; see
 * docs/simulation.md.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import * as z from "zod";
import { INVARIANTS } from "./invariants.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const PATCHES = join(import.meta.dirname, "mutations");
/** What a copy needs to simulate. */
const COPIED = ["agents", "functions", "infra", "shared", "test/simulation", "test/support", "package.json"];
const SECONDS = 60;
const SEED = 1;

/** A fault, and the invariants of which it breaks one. */
export interface Mutation {
  readonly name: string;
  readonly breaks: readonly string[];
  readonly patch: string;
}

/** How the search for a mutation came out. */
export interface Caught {
  /** The invariant that was found broken; nothing when none was. */
  readonly invariant: string | undefined;
  readonly histories: number;
  readonly seconds: number;
}

/** @throws Error when a patch does not say what it breaks */
export function readMutations(names: readonly string[] = []): Mutation[] {
  const files = readdirSync(PATCHES)
    .filter((file) => file.endsWith(".patch"))
    .sort();
  const all = files.map((file): Mutation => {
    const patch = join(PATCHES, file);
    const breaks = /^Breaks: (.+)$/m.exec(readFileSync(patch, "utf8"))?.[1]?.split(", ") ?? [];
    const unknown = breaks.find((name) => !(name in INVARIANTS));
    if (breaks.length === 0 || unknown !== undefined)
      throw new Error(`${file}: expected a line "Breaks:" with an invariant, got ${unknown ?? "none"}`);
    return { name: file.replace(".patch", ""), breaks, patch };
  });
  const missing = names.find((name) => !all.some((mutation) => mutation.name === name));
  if (missing !== undefined) throw new Error(`no mutation ${missing} in ${PATCHES}`);
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}

const summary = z.object({ invariant: z.string().optional(), histories: z.int(), seconds: z.number() });

/**
 * Simulates a copy of the project with the fault in it.
 *
 * @throws Error when the patch does not apply any more, or the copy cannot be simulated
 */
export async function search(
  { name, patch }: Mutation,
  options: { seed: number; seconds: number },
): Promise<Caught> {
  const copy = mkdtempSync(join(tmpdir(), `sluice-${name}-`));
  try {
    for (const path of COPIED) cpSync(join(ROOT, path), join(copy, path), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
    const applied = spawnSync("git", ["apply", patch], { cwd: copy, encoding: "utf8" });
    if (applied.status !== 0)
      throw new Error(`${name}: the patch does not apply any more: ${applied.stderr}`);
    const args = ["test/simulation/main.ts", "--brief"];
    args.push("--seed", String(options.seed), "--minutes", String(options.seconds / 60));
    const child = spawn(process.execPath, args, { cwd: copy, stdio: ["ignore", "pipe", "pipe"] });
    let [said, complained] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complained += text;
    });
    await once(child, "close");
    const read = z.string().transform(parsed).pipe(summary).safeParse(said);
    if (!read.success) throw new Error(`${name}: the simulation has failed: ${said}${complained}`);
    return { ...read.data, invariant: read.data.invariant };
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** One mutation as a line of the table. */
export function row({ name, breaks }: Mutation, { invariant, histories, seconds }: Caught): string {
  const verdict =
    invariant === undefined ? "NOT CAUGHT" : breaks.includes(invariant) ? "caught" : "UNEXPECTED";
  return [
    verdict.padEnd(10),
    name.padEnd(44),
    (invariant ?? breaks.join(", ")).padEnd(16),
    `${histories} histories`.padStart(18),
    `${seconds.toFixed(1)} s`.padStart(8),
  ].join("  ");
}

if (import.meta.main) await main();

async function main(): Promise<void> {
  const text = { type: "string" } as const;
  const { values, positionals } = parseArgs({
    options: { seed: text, seconds: text },
    allowPositionals: true,
  });
  const seed = Number(values.seed ?? SEED);
  const seconds = Number(values.seconds ?? SECONDS);
  const mutations = readMutations(positionals);
  let missed = 0;
  for (const mutation of mutations) {
    const caught = await search(mutation, { seed, seconds });
    if (caught.invariant === undefined || !mutation.breaks.includes(caught.invariant)) missed++;
    process.stdout.write(`${row(mutation, caught)}\n`);
  }
  process.stdout.write(
    `${mutations.length - missed} of ${mutations.length} mutations caught as expected (seed ${seed})\n`,
  );
  if (missed > 0) process.exitCode = 1;
}
