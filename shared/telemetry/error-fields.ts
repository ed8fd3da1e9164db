import { $ZodError, prettifyError } from "../zod.ts";

/** The fields that tell what an error was, on one line, without its stack's absolute paths. */
export function errorFields(error: unknown): { errorName: string; errorMessage: string } {
  try {
    if (error instanceof $ZodError) return { errorName: "ZodError", errorMessage: issuesOf(error) };
    // V8 quotes the text that is no JSON, which may be a payload.
    if (error instanceof SyntaxError && error.message.includes("JSON"))
      return { errorName: error.name, errorMessage: "not JSON" };
    return error instanceof Error
      ? { errorName: String(error.name), errorMessage: String(error.message) }
      : { errorName: typeof error, errorMessage: String(error) };
  } catch {
    // A proxy, or a getter that throws.
    return { errorName: typeof error, errorMessage: "an error that does not say what it is" };
  }
}

/** What was expected where, as `Invalid input: expected string at a.b; …`: zod's own message is JSON over many lines. */
function issuesOf(error: $ZodError): string {
  // Its arrows and crosses are not written as they are: they would double the text of every start in memory.
  return prettifyError(error)
    .replaceAll(/\n\s*\u2192 /g, " ")
    .replaceAll(/^\u2716 /gm, "")
    .replaceAll("\n", "; ");
}
