import { distance } from "fastest-levenshtein";

/** How many names are offered for one that is not known. */
const MAX_NEAREST = 3;
/** How much of a name is compared, in characters. */
const MAX_COMPARED = 128;

/**
 * The names that come nearest to one that nobody has, whatever their case: at most three, the nearest first. Of a long
 * name a third of the letters may differ, of a short one two, but never half of those that the name has.
 */
export function nearest(name: string, names: Iterable<string>): string[] {
  const of = name.slice(0, MAX_COMPARED).toLowerCase();
  const bound = Math.max(2, Math.floor(of.length / 3));
  return [...new Set(names)]
    .map((known) => ({ known, apart: distance(of, known.slice(0, MAX_COMPARED).toLowerCase()) }))
    .filter(({ known, apart }) => apart <= bound && apart < Math.max(1, known.length) / 2)
    .sort((one, other) => one.apart - other.apart || (one.known < other.known ? -1 : 1))
    .slice(0, MAX_NEAREST)
    .map(({ known }) => known);
}
