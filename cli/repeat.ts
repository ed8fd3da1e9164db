import type { Command } from "commander";

/** The options that name a deployment: a further command must repeat them, or it goes elsewhere. */
const NAMING = { "--stack": "stack", "--data-folder": "dataFolder" } as const;

interface Remembered {
  /** Such as `--stack`. */
  readonly long: string;
  readonly value: string;
}

/** What this process was called with. It runs one verb, so that what it advises needs no further argument. */
let remembered: { readonly program: Command; readonly options: readonly Remembered[] } | undefined;

/** Remembers which deployment the verb that runs was told to go to. */
export function remember(program: Command, verb: { opts(): Readonly<Record<string, unknown>> }): void {
  const given = verb.opts();
  const options = Object.entries(NAMING).flatMap(([long, key]) => {
    const value = given[key];
    return typeof value === "string" ? [{ long, value }] : [];
  });
  remembered = { program, options };
}

const COMMAND = /\.\/sluice ((?:dead |policy )?[a-z]+)(?! --(?:stack|data-folder) )/g;

/**
 * Repeats in advice of ours the options by which this command was told its deployment: `./sluice resume exec` becomes
 * `./sluice resume --stack sluice-acme exec`. A verb that has no such option stays as it is.
 */
export function repeatPlace(advice: string): string {
  if (remembered === undefined) return advice;
  const { program, options } = remembered;
  return advice.replace(COMMAND, (command: string, verb: string) => {
    const known = longOptionsOf(program, verb.split(" "));
    const repeated = options.filter(({ long }) => known.has(long));
    return [command, ...repeated.map(({ long, value }) => `${long} ${quoted(value)}`)].join(" ");
  });
}

function longOptionsOf(program: Command, path: readonly string[]): ReadonlySet<string | undefined> {
  let at: Command | undefined = program;
  for (const name of path) at = at?.commands.find((of) => of.name() === name);
  return new Set(at?.options.map(({ long }) => long));
}

/** As a POSIX shell reads it back (POSIX.1-2024, Shell Command Language, 2.2.2 Single-Quotes). */
function quoted(value: string): string {
  return /^[\w./:@%+-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}
