import canonicalize from "canonicalize";

/** How deep a value may be nested: no card needs more, and what walks through it calls itself. */
export const MAX_CANONICAL_DEPTH = 64;

/** A value has no canonical form. The message names the place and quotes no value. */
export class CanonicalError extends Error {
  override readonly name = "CanonicalError";
}

/**
 * A value as canonical JSON (RFC 8785): one text for one value, whatever the order of its members and however it was
 * spaced.
 *
 * @param value JSON as `JSON.parse` gives it
 * @throws CanonicalError for what JSON or RFC 8785 cannot hold: numbers that are not finite, texts with half of a
 *   surrogate pair, anything that is not JSON; and what is nested deeper than {@link MAX_CANONICAL_DEPTH}
 */
export function canonicalJson(value: unknown): string {
  const wrong = flawOf(value, "the value", 1);
  if (wrong !== undefined) throw new CanonicalError(`canonical JSON: ${wrong}`);
  const text = canonicalize(value);
  // The library's word for what is not JSON; that was refused above.
  if (text === undefined) throw new CanonicalError("canonical JSON: expected JSON, got nothing");
  return text;
}

/** What keeps a value from having a canonical form, in words; the library would leave some of it out in silence. */
function flawOf(value: unknown, place: string, depth: number): string | undefined {
  const expected = (what: string, got: string) => `${place}: expected ${what}, got ${got}`;
  if (depth > MAX_CANONICAL_DEPTH) return expected(`at most ${MAX_CANONICAL_DEPTH} levels`, "more");
  switch (typeof value) {
    case "boolean":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : expected("a finite number", "another");
    case "string":
      return value.isWellFormed() ? undefined : expected("a text", "one with half of a surrogate pair");
    case "object":
      break;
    default:
      return expected("JSON", `a ${typeof value}`);
  }
  if (value === null) return undefined;
  if (Array.isArray(value))
    return firstOf(value.entries(), ([i, of]) => flawOf(of, `${place}[${i}]`, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return expected("JSON", "an object of a class");
  return firstOf(Object.entries(value).values(), ([key, of]) =>
    key.isWellFormed()
      ? flawOf(of, `${place}.${nameable(key)}`, depth + 1)
      : expected("names of members that are texts", "one with half of a surrogate pair"),
  );
}

function firstOf<T>(items: Iterable<T>, flaw: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = flaw(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A member's name where it may be shown; whoever wrote the value chose it. */
function nameable(key: string): string {
  return /^[\w-]{1,64}$/.test(key) ? key : "(a member)";
}
