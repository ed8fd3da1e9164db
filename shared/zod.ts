import * as z from "zod/mini";
import en from "zod/v4/locales/en.js";

/**
 * zod as functions use it: the same schemas as functions instead of methods, so that a bundle carries only what it uses,
 * and starts sooner (docs/benchmarks.md). Agents, the command and the stack use `zod` itself. Says in English what was
 * expected, which `zod/mini` does not by itself.
 */
z.config(en());

export * from "zod/mini";
export { $ZodError, $ZodType } from "zod/v4/core";

/**
 * A schema, or what one has read, that is made when it is first asked for: a start makes none that its function does not
 * need. What fails is not tried again: nothing that it is made of changes.
 *
 * @returns what gives it, or throws why there is none, the same each time
 */
// @__NO_SIDE_EFFECTS__
export function whenUsed<T extends object>(build: () => T): () => T {
  let give = (): T => {
    try {
      const built = build();
      give = () => built;
    } catch (error) {
      give = () => {
        throw error;
      };
    }
    return give();
  };
  return () => give();
}

/**
 * A member of which another value is taken when it is missing or not as expected. Of zod's own `catch` a bundle would carry
 * all of zod's helpers, of which functions use few.
 */
export function orElse<T, E>(schema: z.ZodMiniType<T>, other: E) {
  return z.pipe(
    z.optional(z.unknown()),
    z.transform((value): T | E => {
      const parsed = z.safeParse(schema, value);
      return parsed.success ? parsed.data : other;
    }),
  );
}

/** What a schema gives that is built when it is used. */
export type Used<T extends () => z.ZodMiniType> = z.infer<ReturnType<T>>;
