import { distance } from "fastest-levenshtein";

/** How many letters may be wrong, added or left out. */
const MAX_WRONG = 2;

/** The name that was probably meant by a mistyped one; nothing when none is near. */
export function nearest(typed: string, names: readonly string[]): string | undefined {
  const [best] = names
    .map((name) => ({ name, wrong: distance(typed, name) }))
    // Of a short name two wrong letters leave nothing.
    .filter(({ name, wrong }) => wrong <= MAX_WRONG && wrong < name.length / 2)
    .sort((one, other) => one.wrong - other.wrong);
  return best?.name;
}
