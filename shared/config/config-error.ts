import type * as z from "zod";

/** Something in a file that the operator or an author wrote is not as expected. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** A place where a value was not as expected. */
export interface Finding {
  readonly path: readonly PropertyKey[];
  /** "expected …, got …" */
  readonly message: string;
}

/** What is said of a field that nobody reads. */
export const UNKNOWN = "unknown field";

/** What zod found, one finding a field, in words that name the expectation and the value's shape, never the value. */
export function findingsOf(error: z.ZodError, root: unknown): Finding[] {
  return error.issues.flatMap((issue) => findingsOfIssue(issue, root));
}

function findingsOfIssue(issue: z.core.$ZodIssue, root: unknown): Finding[] {
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => ({ path: [...issue.path, key], message: unknownField(issue.message) }));
  const meant = issue.code === "invalid_union" ? meantForm(issue) : undefined;
  if (meant !== undefined)
    return meant.flatMap((of) => findingsOfIssue({ ...of, path: [...issue.path, ...of.path] }, root));
  // The key is what is wrong, not what stands under it.
  if (issue.code === "invalid_key")
    return [{ path: issue.path, message: issue.issues.map(expectation).join("; ") }];
  const got = valueAt(root, issue.path);
  return [{ path: issue.path, message: `${expectation(issue)}, got ${shapeOf(got)}` }];
}

/** @param told zod's own words, or which fields there are (known-fields.ts) */
function unknownField(told: string): string {
  return told.startsWith("expected one of ") ? `${UNKNOWN}; ${told}` : UNKNOWN;
}

/**
 * What is wrong with a value that may have several forms, as far as it shows which one is meant: the only one that is of
 * the value's own kind.
 */
function meantForm({ errors }: z.core.$ZodIssueInvalidUnion): z.core.$ZodIssue[] | undefined {
  const [meant, ...others] = errors.filter((issues) => !issues.some(isOfAnotherKind));
  return others.length === 0 ? meant : undefined;
}

function isOfAnotherKind({ code, path }: z.core.$ZodIssue): boolean {
  return (code === "invalid_type" || code === "invalid_value") && path.length === 0;
}

/** What zod expected, in our words. */
export function expectation(issue: z.core.$ZodIssue): string {
  if (issue.message.startsWith("expected")) return issue.message;
  switch (issue.code) {
    case "invalid_type":
      return `expected ${TYPE_NAMES[issue.expected] ?? issue.expected}`;
    case "too_small":
      return `expected ${issue.inclusive === false ? "more than" : "at least"} ${issue.minimum}${unit(issue.origin)}`;
    case "too_big":
      return `expected ${issue.inclusive === false ? "less than" : "at most"} ${issue.maximum}${unit(issue.origin)}`;
    case "invalid_value":
      return `expected ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
    case "invalid_union":
      return expectedForms(issue) ?? issue.message;
    default:
      return issue.message;
  }
}

/** The forms that a value might have, where it has the kind of none. */
function expectedForms({ errors }: z.core.$ZodIssueInvalidUnion): string | undefined {
  const kinds = errors.flatMap((issues) => issues.filter(isOfAnotherKind));
  const forms = new Set(kinds.map((of) => expectation(of).replace(/^expected /, "")));
  return forms.size === 0 ? undefined : `expected ${[...forms].join(" or ")}`;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a map",
  record: "a map",
};

function unit(origin: string): string {
  if (origin === "string") return " characters";
  return origin === "array" || origin === "set" ? " entries" : "";
}

/** A value's shape in words. Texts are not shown: one of them may be a secret in the wrong place. */
export function shapeOf(value: unknown): string {
  if (value === undefined || value === null) return "nothing";
  if (typeof value === "string") return `a text of ${value.length} characters`;
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object") return "a map";
  if (typeof value === "function") return "a function";
  return String(value);
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root;
  for (const key of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
}

/** The finding as it is called from further out. */
export function below(path: readonly PropertyKey[], finding: Finding): Finding {
  return { ...finding, path: [...path, ...finding.path] };
}

/** A path as one writes it: `agents.support.acceptSkills[0]`. */
export function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((key, i) => (typeof key === "number" ? `[${key}]` : `${i === 0 ? "" : "."}${keyText(String(key))}`))
    .join("");
}

/** The longest key that is shown whole. */
const MAX_KEY = 64;

/** A key is shown on a terminal: on one line, without control characters, and not without bound. */
function keyText(key: string): string {
  const cut = key.length > MAX_KEY ? `${key.slice(0, MAX_KEY)}…` : key;
  return /\p{Cc}/u.test(cut) ? JSON.stringify(cut).replaceAll(/[\u007F-\u009F]/g, "") : cut;
}
