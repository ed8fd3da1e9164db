import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import * as z from "zod";
import { type Patch, readPatches } from "../support/patches.ts";

/** A fault that was mended: its patch brings it back. */
export interface Regression extends Patch {
  /** The file of the test that fails then. */
  readonly file: string;
  /** The test's name, without those of the suites around it. */
  readonly title: string;
  /** The commit of the mend. */
  readonly commit: string;
  readonly foundBy: string;
  /** A part of the error with which the test fails where it is no assertion's, and not that of a time that is over. */
  readonly error?: string | undefined;
}

const TEST = /^(\S+\.test\.ts) "(.+)"$/;

const fields = z.strictObject({
  Test: z
    .string()
    .regex(TEST, 'expected FILE "NAME"')
    .transform((text) => TEST.exec(text)?.slice(1) ?? [])
    .pipe(z.tuple([z.string(), z.string()])),
  Commit: z.string().regex(/^[0-9a-f]{7,40}$/, "expected the hash of a commit"),
  "Found by": z.enum(["simulation", "fault run", "breaker", "user", "model"]),
  Error: z.string().optional(),
});

/** @throws Error when there is no patch of a name, or one does not say what it should */
export function readRegressions(names: readonly string[] = []): Regression[] {
  return readPatches(import.meta.dirname, names).map((patch) => {
    const read = fields.safeParse(patch.fields);
    if (!read.success) throw new Error(`${patch.path}: ${z.prettifyError(read.error)}`);
    const { Test, Commit: commit, "Found by": foundBy, Error: error } = read.data;
    const [file, title] = Test;
    return { ...patch, file, title, commit, foundBy, error };
  });
}

/** What tells a patch from what it was when its test was last run. */
export function digestOf({ path }: Pick<Patch, "path">): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}
