import { distance } from "fastest-levenshtein";

/** How many names are offered for one that is not known. */
const MAX_NEAREST = 3;
/** How much of a name is compared, in characters. */
const MAX_COMPARED = 128;

/**
 * The names that come nearest to one that nobody has: at most three, the nearest first, none that differs in more than
 * a third of its letters.
 */
export function nearest(name: string, names: Iterable<string>): string[] {
  const of = name.slice(0, MAX_COMPARED).toLowerCase();
  const bound = Math.max(2, Math.floor(of.length / 3));
  return [...new Set(names)]
    .map((known) => ({ known, apart: distance(of, known.slice(0, MAX_COMPARED).toLowerCase()) }))
    .filter(({ apart }) => apart <= bound)
    .sort((one, other) => one.apart - other.apart || (one.known < other.known ? -1 : 1))
    .slice(0, MAX_NEAREST)
    .map(({ known }) => known);
}
