/**
 * Shows that the simulation finds faults: `npm run mutations -- [NAME …] [--seed S] [--seconds N]` applies each patch of
 * `mutations/` to a copy of the project, one at a time, and simulates there until an invariant breaks; see
 * docs/simulation.md.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import * as z from "zod";
import { keepRun } from "../support/kept-run.ts";
import { orRefuse, positive, readOptions, seedNumber } from "../support/options.ts";
import { inCopy, type Patch, readPatches } from "../support/patches.ts";
import { INVARIANTS } from "./invariants.ts";

const PATCHES = join(import.meta.dirname, "mutations");
const SECONDS = 60;
const SEED = 1;

/** A fault, and the invariants of which it breaks one. */
export interface Mutation extends Patch {
  readonly breaks: readonly string[];
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
  return readPatches(PATCHES, names).map((patch) => {
    const breaks = patch.fields.Breaks?.split(", ") ?? [];
    const unknown = breaks.find((name) => !(name in INVARIANTS));
    if (breaks.length === 0 || unknown !== undefined)
      throw new Error(`${patch.path}: expected a line "Breaks:" with an invariant, got ${unknown ?? "none"}`);
    return { ...patch, breaks };
  });
}

const summary = z.object({ invariant: z.string().optional(), histories: z.int(), seconds: z.number() });

/**
 * Simulates a copy of the project with the fault in it.
 *
 * @throws Error when the patch does not apply any more, or the copy cannot be simulated
 */
export function search(
  mutation: Mutation,
  { seed, seconds }: { seed: number; seconds: number },
): Promise<Caught> {
  return inCopy(mutation, async (copy) => {
    const args = ["test/simulation/main.ts", "--brief"];
    args.push("--seed", String(seed), "--minutes", String(seconds / 60));
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
    if (!read.success) throw new Error(`${mutation.name}: the simulation has failed: ${said}${complained}`);
    return { ...read.data, invariant: read.data.invariant };
  });
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
  const schema = z.object({ seed: seedNumber.default(SEED), seconds: positive.default(SECONDS) });
  const { options, names } = readOptions(schema, { seed: text, seconds: text }, true);
  const mutations = orRefuse("NAME", () => readMutations(names));
  let missed = 0;
  for (const mutation of mutations) {
    const caught = await search(mutation, options);
    if (caught.invariant === undefined || !mutation.breaks.includes(caught.invariant)) missed++;
    process.stdout.write(`${row(mutation, caught)}\n`);
    keepRun("mutations", mutation.name, { name: mutation.name, ...caught });
  }
  process.stdout.write(
    `${mutations.length - missed} of ${mutations.length} mutations caught as expected (seed ${options.seed})\n`,
  );
  if (missed > 0) process.exitCode = 1;
}
