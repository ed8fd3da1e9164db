import { failed, type Reading } from "./reading.ts";

/** Deeper than any message means to be, and well under what JSON.stringify can write again. */
export const MAX_JSON_DEPTH = 1_000;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A JSON text and its value. */
export interface Json {
  readonly text: string;
  readonly value: unknown;
}

/**
 * Reads bytes as JSON. Invalid UTF-8, a byte order mark and nesting deeper than {@link MAX_JSON_DEPTH} are no JSON; an
 * escaped surrogate without its other half is read as U+FFFD, for no UTF-8 could say it (docs/wire.md §5).
 */
export function readJson(bytes: Uint8Array): Reading<Json> {
  let text: string;
  try {
    text = wellFormed(utf8.decode(bytes));
  } catch {
    return failed("body: expected UTF-8");
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return failed("body: expected JSON");
  }
  if (jsonDepth(text) > MAX_JSON_DEPTH)
    return failed(`body: expected JSON nested at most ${MAX_JSON_DEPTH} deep`);
  return { ok: true, value: { text, value } };
}

/**
 * The size in bytes of a member's value as it was sent, spaces around it aside; 0 when there is none. Of several
 * members with one name the last counts, as for JSON.parse.
 *
 * @param text a JSON object
 */
export function memberSize(text: string, name: string): number {
  let size = 0;
  let depth = 0;
  let key: string | undefined;
  let valueStart = 0;
  for (const { mark, start, end } of marks(text)) {
    if (mark === "{" || mark === "[") depth++;
    else if (mark === '"' && depth === 1 && key === undefined) key = JSON.parse(text.slice(start, end));
    else if (mark === ":" && depth === 1) valueStart = end;
    else if ((mark === "," || mark === "}") && depth === 1) {
      if (key === name) size = Buffer.byteLength(text.slice(valueStart, start).trim());
      key = undefined;
    }
    if (mark === "}" || mark === "]") depth--;
  }
  return size;
}

/** How deep a JSON text is nested: 0 for what is neither object nor array. */
export function jsonDepth(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const { mark } of marks(text)) {
    if (mark === "{" || mark === "[") deepest = Math.max(deepest, ++depth);
    else if (mark === "}" || mark === "]") depth--;
  }
  return deepest;
}

/** The strings of a JSON text (marked by their quote) and the signs that structure it, in order. */
function* marks(text: string): Generator<{ mark: string; start: number; end: number }> {
  const next = /["{}[\],:]/g;
  for (let match = next.exec(text); match !== null; match = next.exec(text)) {
    const start = match.index;
    if (match[0] === '"') next.lastIndex = stringEnd(text, start);
    yield { mark: match[0], start, end: next.lastIndex };
  }
}

/** Where the string that starts here is over. A loop, for a regular expression would need a stack as long. */
function stringEnd(text: string, start: number): number {
  let index = start + 1;
  while (text[index] !== '"') index += text[index] === "\\" ? 2 : 1;
  return index + 1;
}

/** Each escape in turn, so that an escaped backslash before a `u` is not taken for one. */
function wellFormed(text: string): string {
  if (!/\\ud/i.test(text)) return text;
  return text.replace(/\\u(d[89ab]..\\ud[c-f]..|d[89a-f]..)|\\./gis, (whole, surrogate?: string) =>
    surrogate?.length === 4 ? "\\ufffd" : whole,
  );
}
