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
export function remember(
  program: Command,
  verb: { optsWithGlobals(): Readonly<Record<string, unknown>> },
): void {
  const given = verb.optsWithGlobals();
  const options = Object.entries(NAMING).flatMap(([long, key]) => {
    const value = given[key];
    return typeof value === "string" ? [{ long, value }] : [];
  });
  remembered = { program, options };
}

const COMMAND = /\.\/sluice ((?:(?:dead|keys|peers|policy) )?[a-z-]+)/g;

/**
 * Repeats in advice of ours the options by which this command was told its deployment: `see ./sluice dead list` becomes
 * `see ./sluice dead list --stack sluice-acme`. Where a command ends in a text is not known, so they come after its verb.
 * A verb that has no such option stays as it is, and so does advice that has them already ({@link withPlace}).
 */
export function repeatPlace(advice: string): string {
  const isThere = remembered?.options.some((option) => advice.includes(` ${written(option)}`)) ?? false;
  if (isThere) return advice;
  return advice.replace(COMMAND, (command: string, verb: string) => [command, ...placeOf(verb)].join(" "));
}

/**
 * Repeats them at the end of a whole command: `./sluice resume exec` becomes `./sluice resume exec --stack sluice-acme`.
 */
export function withPlace(command: string): string {
  const [, verb = ""] = new RegExp(COMMAND.source).exec(command) ?? [];
  return [command, ...placeOf(verb)].join(" ");
}

/** The options that a verb is to be given, as they are written. */
function placeOf(verb: string): string[] {
  if (remembered === undefined) return [];
  const { program, options } = remembered;
  const known = longOptionsOf(program, verb.split(" "));
  return options.filter(({ long }) => known.has(long)).map(written);
}

function written({ long, value }: Remembered): string {
  return `${long} ${shellQuoted(value)}`;
}

function longOptionsOf(program: Command, path: readonly string[]): ReadonlySet<string | undefined> {
  let at: Command | undefined = program;
  for (const name of path) at = at?.commands.find((of) => of.name() === name);
  return new Set(at?.options.map(({ long }) => long));
}

/** As a POSIX shell reads it back (POSIX.1-2024, Shell Command Language, 2.2.2 Single-Quotes). */
export function shellQuoted(value: string): string {
  return /^[\w./:@%+-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}
