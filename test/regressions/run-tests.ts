import { once } from "node:events";
import { join } from "node:path";
import { run } from "node:test";
import * as z from "zod";

/** Many times what the tests of a file take together; whatever keeps its process for so long shows nothing. */
const FILE_MS = 600_000;
/** As `test/support/until.ts` says it. */
const LATE = /: not within \d+ ms/;

/** How a test came out. */
export type Ended =
  | { readonly kind: "passed" }
  | {
      readonly kind: "failed";
      /** Whether an assertion did not hold, or something did not happen in time: what tests fail by. */
      readonly plainly: boolean;
      readonly why: string;
    }
  /** There is no such test, its file cannot be loaded, or has not come to it in time. */
  | { readonly kind: "missing" };

const failure = z.object({ failureType: z.string().optional(), cause: z.unknown() });

/**
 * Runs tests of a file in a process of their own.
 *
 * @param folder the project, or a copy of it
 * @param titles the tests' names, without those of the suites around them
 */
export async function runTests(
  folder: string,
  file: string,
  titles: readonly string[],
): Promise<Map<string, Ended>> {
  const ended = new Map<string, Ended>(titles.map((title) => [title, { kind: "missing" }]));
  const tests = run({
    cwd: folder,
    files: [join(folder, file)],
    testNamePatterns: titles.map(
      (title) => new RegExp(`${title.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`),
    ),
    timeout: FILE_MS,
    // A fault may leave something behind that keeps the file's process alive.
    execArgv: ["--test-force-exit"],
  });
  tests.on("test:pass", ({ name, skip }) => {
    if (ended.has(name) && !skip) ended.set(name, { kind: "passed" });
  });
  tests.on("test:fail", ({ name, details }) => {
    if (ended.has(name)) ended.set(name, failedBy(details.error));
  });
  tests.resume();
  await once(tests, "end");
  return ended;
}

function failedBy(error: unknown): Extract<Ended, { kind: "failed" }> {
  const { failureType, cause } = failure.parse(error);
  if (failureType === "testTimeoutFailure")
    return { kind: "failed", plainly: true, why: "its time was over" };
  const why = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
  const isAssertion = cause instanceof Error && cause.name === "AssertionError";
  return { kind: "failed", plainly: isAssertion || LATE.test(why), why };
}
