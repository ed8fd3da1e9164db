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

/** How many letters must be changed, added or removed (Levenshtein). */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...one].entries()) {
    const next = [index + 1];
    for (let column = 1; column <= other.length; column++) {
      const changed = (row[column - 1] ?? 0) + (letter === other[column - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
