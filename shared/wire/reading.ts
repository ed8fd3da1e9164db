import * as z from "../zod.ts";

/** What came of reading something that a peer wrote: a value, or why there is none. Reasons never quote content. */
export type Reading<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string };

export function failed(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}

/** Parses with a schema; the reason names the first field that did not fit and what was expected. */
export function readWith<T>(schema: z.core.$ZodType<T>, value: unknown, root: string): Reading<T> {
  const parsed = z.safeParse(schema, value);
  if (parsed.success) return { ok: true, value: parsed.data };
  const [issue] = parsed.error.issues;
  const field = [root, ...(issue?.path ?? []).map(String)].join(".");
  return failed(`${field}: ${issue?.message.replace("Invalid input: ", "") ?? "does not fit"}`);
}

/** An optional field: `null` means absent (docs/wire.md §5). */
export function optional<T>(schema: z.core.$ZodType<T>): z.ZodMiniType<T | undefined> {
  return z.pipe(
    z.nullish(schema),
    z.transform((value) => value ?? undefined),
  );
}

/** An optional text: `null` and the empty string mean absent. */
export const optionalText = z.whenUsed(() =>
  z.pipe(
    z.nullish(z.string()),
    z.transform((text) => (text ? text : undefined)),
  ),
);

/** An object without the members that are undefined, as JSON would carry it. */
export function given<T extends object>(members: T): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}
