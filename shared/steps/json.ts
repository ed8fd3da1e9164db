import { NotJsonError } from "./errors.ts";

/**
 * A value as JSON text; the empty text stands for `undefined`.
 *
 * @param what how the value is called in an error
 * @throws NotJsonError naming the property that JSON cannot hold: a BigInt, a function, a symbol, NaN, a cycle
 */
export function toJson(value: unknown, what: string): string {
  if (value === undefined) return "";
  const strict = (key: string, held: unknown) => {
    const unfit =
      typeof held === "number" ? !Number.isFinite(held) : /bigint|function|symbol/.test(typeof held);
    if (!unfit) return held;
    const is = typeof held === "number" ? String(held) : `a ${typeof held}`;
    throw new NotJsonError(
      `${what}: expected what JSON can hold, got ${is}${key === "" ? "" : ` under ${JSON.stringify(key)}`}`,
    );
  };
  try {
    const text = JSON.stringify(value, strict);
    if (text !== undefined) return text;
  } catch (error) {
    if (error instanceof NotJsonError) throw error;
    // A cycle, or a toJSON of the author's own that throws.
    const reason = error instanceof Error ? error.message : String(error);
    throw new NotJsonError(`${what}: expected what JSON can hold: ${reason}`, { cause: error });
  }
  throw new NotJsonError(`${what}: expected what JSON can hold, got a ${typeof value}`);
}

/** The value of what {@link toJson} made. */
export function fromJson(text: string): unknown {
  return text === "" ? undefined : JSON.parse(text);
}
