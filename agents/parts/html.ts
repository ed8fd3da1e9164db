/** What nobody sees of a page. */
const HIDDEN: ReadonlySet<string> = new Set(["script", "style", "template", "noscript"]);
/** Elements that stand for themselves; all others are part of a line. */
const BLOCKS: ReadonlySet<string> = new Set(
  `address article aside blockquote body dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 head header hr li main nav
  ol p pre section table title tr ul`.split(/\s+/),
);
const TAG = /^\/?([a-z][a-z0-9]*)[^>]*>/i;
const ENTITY = /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/gi;
const NAMED: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
};

/**
 * The text of a page, a paragraph for each block: enough to search in, and no rendering. It goes through the page once:
 * whatever a page holds, the time does not grow faster than its length.
 */
export function textOfHtml(html: string): string {
  const [before = "", ...pieces] = html.split("<");
  const texts = [before];
  let hiddenUntil: RegExp | undefined;
  for (const piece of pieces) {
    if (hiddenUntil === undefined && piece.startsWith("!--")) hiddenUntil = /-->/;
    if (hiddenUntil !== undefined) {
      const end = hiddenUntil.exec(piece);
      if (end === null) continue;
      hiddenUntil = undefined;
      texts.push(piece.slice(end.index + end[0].length));
      continue;
    }
    const tag = TAG.exec(piece);
    const name = tag?.[1]?.toLowerCase() ?? "";
    if (HIDDEN.has(name) && !piece.startsWith("/")) hiddenUntil = new RegExp(`^/${name}\\b[^>]*>`, "i");
    else texts.push(gap(name), tag === null ? unknown(piece) : piece.slice(tag[0].length));
  }
  return texts
    .map((text) => (text.startsWith(BREAK) ? text : text.replace(/\s+/g, " ")))
    .join("")
    .split(BREAK)
    .map((line) => line.replace(/ {2,}/g, " ").trim())
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim()
    .replace(ENTITY, decoded);
}

/** Stands for a line's end until white space is made one blank: no HTML may hold it (HTML Standard, §13.2.3.5). */
const BREAK = "\0";

function gap(name: string): string {
  if (name === "br") return BREAK;
  return BLOCKS.has(name) ? BREAK + BREAK : "";
}

/** A doctype and the like are not shown; any other `<` is one. */
const unknown = (piece: string) => (/^[!?/]/.test(piece) ? piece.slice(piece.indexOf(">") + 1) : `<${piece}`);

function decoded(entity: string, decimal?: string, hex?: string, name?: string): string {
  if (name !== undefined) return NAMED[name.toLowerCase()] ?? entity;
  const code = decimal !== undefined ? Number(decimal) : Number.parseInt(hex ?? "", 16);
  return code <= 0x10ffff && code > 0 ? String.fromCodePoint(code) : entity;
}
