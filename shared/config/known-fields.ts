import * as z from "zod";

/**
 * Has zod say of a field that nobody reads which there are at its place: whoever has misspelt one sees how it is written.
 * To be given to `safeParse` as its `error`.
 */
export const namingFields = {
  error: (issue: z.core.$ZodRawIssue): string | undefined =>
    issue.code === "unrecognized_keys" && issue.inst instanceof z.ZodObject
      ? `expected one of ${Object.keys(issue.inst.shape).join(", ")}`
      : undefined,
};
