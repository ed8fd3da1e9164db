import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import * as z from "zod";

/** As other programs end that cannot make sense of their command line. */
const USAGE = 2;

/**
 * Reads the options of a program of the project's own. Whoever writes one wrongly is told which, and what was expected;
 * the process then ends with 2.
 *
 * @param flags as `parseArgs` of `node:util` takes them
 * @returns the options, and the names that stand beside them
 */
export function readOptions<Schema extends z.ZodObject>(
  schema: Schema,
  flags: ParseArgsOptionsConfig,
  allowPositionals = false,
): { readonly options: z.infer<Schema>; readonly names: readonly string[] } {
  try {
    const { values, positionals } = parseArgs({ options: flags, allowPositionals });
    const read = schema.safeParse(values);
    if (read.success) return { options: read.data, names: positionals };
    return refuse(read.error.issues.map(({ path, message }) => `--${path.join(".")}: ${message}`).join("\n"));
  } catch (error) {
    // An option that there is not, or one without its value (Node.js: util.parseArgs).
    if (error instanceof TypeError && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS_"))
      return refuse(error.message);
    throw error;
  }
}

/** Reads what the command line names. What is wrong with it is said without a trace: it is not the program's fault. */
export function orRefuse<T>(option: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof z.ZodError) return refuse(`${option}: ${z.prettifyError(error)}`);
    return refuse(`${option}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Says what is wrong with the command line, and ends the process. */
export function refuse(words: string): never {
  process.stderr.write(`${words}\n`);
  process.exit(USAGE);
}

/** A number above 0, as text. */
export const positive = z.coerce.number("expected a number above 0").positive("expected a number above 0");
/** A whole number from 1, as text. */
export const count = z.coerce
  .number("expected a whole number from 1")
  .int("expected a whole number from 1")
  .min(1, "expected a whole number from 1");
/** A whole number from 0, as text; an empty text is none. */
export const seedNumber = z
  .string()
  .regex(/^\d{1,15}$/, "expected a whole number from 0")
  .transform(Number);
