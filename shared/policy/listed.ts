/** How many of a list are named. */
const MAX_LISTED = 10;

/** A list in words: the first ten, and how many more there are. */
export function listed(texts: readonly string[]): string {
  if (texts.length === 0) return "none";
  const more = texts.length - MAX_LISTED;
  return `${texts.slice(0, MAX_LISTED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
