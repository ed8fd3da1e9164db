/** How many of a list are named. */
const MAX_LISTED = 10;

/** A list in words: the first ten, and how many more there are. */
export function listed(texts: readonly string[]): string {
  if (texts.length === 0) return "none";
  const more = texts.length - MAX_LISTED;
  return `${texts.slice(0, MAX_LISTED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** How much of a peer's text an error quotes, in characters. */
const MAX_QUOTED = 80;

/** A peer's text within a message: never longer than a line. */
export function quoted(text: string): string {
  return JSON.stringify(text.length <= MAX_QUOTED ? text : `${text.slice(0, MAX_QUOTED)}…`);
}
