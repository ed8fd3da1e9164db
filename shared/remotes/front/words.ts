/**
 * What somebody else says, for a person to read: without what a terminal would obey, and never more than so many characters.
 */
export function words(text: string, most: number): string {
  const plain = text
    .toWellFormed()
    .replace(/\r\n?/g, "\n")
    .replace(/[^\P{C}\n\t]/gu, "")
    .trim();
  return plain.length > most ? `${plain.slice(0, most).toWellFormed()}…` : plain;
}
