import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const CLI = fileURLToPath(import.meta.resolve("@informalsystems/quint/dist/src/cli.js"));
const SPECIFICATION = join(import.meta.dirname, "protocol.qnt");
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
/** Far more than any run takes. */
const MAX_RUN_MS = 20 * 60_000;

/** What is to be explored. */
export interface Exploration {
  /** What the model does wrong, if anything: see mutations.ts. */
  readonly wrong?: string;
  /** Trouble without an end, or trouble for a while and then none. */
  readonly step: "step" | "stepThenCalm";
  /** Names of docs/proof.md. */
  readonly invariants: readonly string[];
  /** Values of protocol.qnt that say that a state is of interest. */
  readonly witnesses?: readonly string[];
  /** How many histories, and of how many steps at most. */
  readonly histories: number;
  readonly steps: number;
  readonly seed: number;
}

/** What came of it. */
export interface Explored {
  /** The invariants that do not hold in the last state. */
  readonly broken: readonly string[];
  /** In how many histories each witness was met. */
  readonly witnessed: ReadonlyMap<string, number>;
  /** Of a violation: its states in the Informal Trace Format, and the command that replays it. */
  readonly trace?: string;
  readonly replay?: string;
}

/** Quint's names have no hyphen, and `fold` is one of its own. */
function definitionOf(invariant: string): string {
  return invariant === "fold" ? "folds" : invariant.replaceAll("-", "_");
}

/**
 * Explores the model at random with Quint's simulator.
 *
 * @throws when the simulator cannot be run, or the specification is wrong
 */
export async function explore(asked: Exploration): Promise<Explored> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-model-"));
  try {
    const traceFile = join(folder, "trace.itf.json");
    const output = await simulate([...argumentsOf(asked), "--out-itf", traceFile]);
    const witnessed = new Map<string, number>();
    for (const [, name = "", count] of output.matchAll(/^(\w+) was witnessed in (\d+) trace/gm))
      witnessed.set(name, Number(count));
    if (/^\[ok\]/m.test(output)) return { broken: [], witnessed };
    if (!/^\[violation\]/m.test(output) || !existsSync(traceFile))
      throw new Error(`quint has said neither ok nor violation:\n${output}`);
    return {
      broken: brokenOf(asked, output),
      witnessed,
      trace: await readFile(traceFile, "utf8"),
      replay: replayOf(asked),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Quint names what is broken only where there is a choice. */
function brokenOf({ invariants }: Exploration, output: string): string[] {
  const named = new Set([...output.matchAll(/❌ (\w+)/g)].map(([, name]) => name));
  const broken = invariants.filter((invariant) => named.has(definitionOf(invariant)));
  return broken.length > 0 ? broken : [...invariants];
}

/** The same histories again up to the one that breaks something, for a person to look at. */
function replayOf(asked: Exploration): string {
  const words = argumentsOf({ ...asked, witnesses: [] }, { file: "test/model/protocol.qnt", verbosity: 3 });
  return ["npx quint", ...words.map((word) => (/[("]/.test(word) ? `'${word}'` : word))].join(" ");
}

/** The other evaluator, in Rust and the default, would be fetched from the internet. */
function argumentsOf(
  { wrong, step, invariants, witnesses = [], histories, steps, seed }: Exploration,
  { file = SPECIFICATION, verbosity = 1 } = {},
): string[] {
  return [
    ...["run", file, "--backend", "typescript", "--verbosity", String(verbosity)],
    ...["--init", `initWith("${wrong ?? ""}")`, "--step", step],
    ...["--max-samples", String(histories), "--max-steps", String(steps), "--seed", String(seed)],
    ...["--invariants", ...invariants.map(definitionOf)],
    ...(witnesses.length === 0 ? [] : ["--witnesses", ...witnesses]),
  ];
}

/** What Quint prints. It exits with 1 on a violation as on an error of its own. */
function simulate(words: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [CLI, ...words],
      {
        maxBuffer: MAX_OUTPUT_BYTES,
        timeout: MAX_RUN_MS,
        // A seed means the same everywhere: how often the simulator tries again is part of it.
        env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0", QUINT_RETRY_NONDET_SMALLER_THAN: "100" },
      },
      (error, out, err) => {
        if (error === null || error.code === 1) resolve(`${out}\n${err}`);
        else reject(new Error(`quint has failed: ${error.message}\n${err}`));
      },
    );
  });
}
