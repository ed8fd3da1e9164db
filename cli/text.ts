import { stripVTControlCharacters } from "node:util";
import pc from "picocolors";

/**
 * What may be printed of a text that a peer wrote: without escape sequences and control characters, which could
 * rewrite the screen or the clipboard, and without the marks that reverse the reading direction (Unicode TR 36).
 * Line ends and tabs stay.
 */
export function clean(text: string): string {
  return stripVTControlCharacters(text.replaceAll("\r\n", "\n")).replaceAll(
    /(?![\n\t])\p{Cc}|[\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu,
    "",
  );
}

/** The same on one line, cut to `max` characters. */
export function cleanLine(text: string, max = 200): string {
  const line = clean(text).replaceAll(/\s+/g, " ").trim();
  const characters = [...line];
  return characters.length <= max ? line : `${characters.slice(0, max - 1).join("")}…`;
}

/** JSON on one line in which control characters that JSON would let through are escaped, so a terminal is safe. */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Whether to use colours: on a terminal, unless NO_COLOR is set (no-color.org) or the terminal is dumb. */
export function wantsColour(isTerminal: boolean, env: NodeJS.ProcessEnv): boolean {
  return isTerminal && !env.NO_COLOR && env.TERM !== "dumb";
}

export type Colours = ReturnType<typeof pc.createColors>;

export function colours(enabled: boolean): Colours {
  return pc.createColors(enabled);
}

/** A size in bytes for people: `12 bytes`, `3.4 kB`, `5.0 MB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} ${bytes === 1 ? "byte" : "bytes"}`;
  const [divisor, unit] = bytes < 1_000_000 ? [1_000, "kB"] : bytes < 1e9 ? [1_000_000, "MB"] : [1e9, "GB"];
  return `${(bytes / divisor).toFixed(1)} ${unit}`;
}

/** `1 message`, `2 messages`. */
export function countText(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** A length of time for people: `12 ms`, `3.4 s`, `5 min 3 s`, `2 d 4 h`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const index = UNITS.findIndex(([, size]) => ms >= size);
  const [unit, size] = UNITS[index] ?? UNITS[0];
  const [finer, finerSize] = UNITS[index + 1] ?? UNITS[3];
  const rest = Math.floor((ms % size) / finerSize);
  return `${Math.floor(ms / size)} ${unit}${rest === 0 ? "" : ` ${rest} ${finer}`}`;
}

/** `2026-08-01 12:00:09`, in the time zone of whoever looks. */
export function localTime(at: Date): string {
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19).replace("T", " ");
}
