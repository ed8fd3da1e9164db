/** How many passages of a source are kept, how long one is, and how many other words are counted beside them. */
export const MAX_PASSAGES = 20;
export const MAX_PASSAGE = 600;
const MAX_BESIDE = 30;
const MIN_BESIDE_LENGTH = 5;
const WORD = /[\p{L}\p{N}]+/gu;

/** Words that tell nothing about a topic. */
const COMMON: ReadonlySet<string> = new Set(
  `a about after all also an and any are as at be because been before being between but by can could did do does
  each for from had has have how if in into is it its may more most must no not of on one only or other our out over
  same shall should so some such than that the their them then there these they this those through to too under until
  up was were what when where which while who whose why will with without would you your`.split(/\s+/),
);

/** A paragraph that bears on a topic: where it starts, from line 1, and how much it has of the topic. */
export interface Passage {
  readonly line: number;
  readonly text: string;
  readonly score: number;
}

export interface Findings {
  /** How many passages there are; the best {@link MAX_PASSAGES} of them are kept, in the order of the text. */
  readonly total: number;
  readonly passages: readonly Passage[];
  /** Other words, and in how many of the passages each stands. */
  readonly beside: Readonly<Record<string, number>>;
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(WORD) ?? [];

/** What a topic is looked for by: its words without the common ones, or all if it has no others; none in the plural. */
export function termsOf(topic: string): string[] {
  const words = wordsOf(topic);
  const telling = words.filter((word) => !COMMON.has(word));
  return [...new Set((telling.length > 0 ? telling : words).map(singular))];
}

/** An English word without the ending of its plural: what is left is the beginning of both. */
function singular(word: string): string {
  if (word.length <= 4 || /(?:ss|us|is)$/.test(word)) return word;
  return word.replace(/(?:ies|(?<=x|ch|sh|ss)es|s)$/, "");
}

/** A term stands for the words that begin with it: `lease` for `leases`. One of up to three letters for itself only. */
const standsFor = (term: string, word: string) => (term.length > 3 ? word.startsWith(term) : word === term);

/** How many words of a text the terms stand for; each different term counts for ten. */
export function scoreOf(text: string, terms: readonly string[]): number {
  const words = wordsOf(text);
  const counts = terms.map((term) => words.filter((word) => standsFor(term, word)).length);
  return counts.reduce((sum, count) => sum + count, 0) + 10 * counts.filter((count) => count > 0).length;
}

/** Finds the paragraphs of a text that bear on the terms, and the words that stand beside them. */
export function search(text: string, terms: readonly string[]): Findings {
  const found = paragraphsOf(text)
    .map(({ line, text }) => ({ line, text, score: scoreOf(text, terms) }))
    .filter(({ score }) => score > 0);
  const counts = new Map<string, number>();
  for (const { text } of found)
    for (const word of new Set(wordsOf(text)))
      if (isTelling(word, terms)) counts.set(word, (counts.get(word) ?? 0) + 1);
  const best = found.toSorted((a, b) => b.score - a.score || a.line - b.line).slice(0, MAX_PASSAGES);
  return {
    total: found.length,
    passages: best
      .sort((a, b) => a.line - b.line)
      .map((passage) => ({ ...passage, text: shortened(passage.text) })),
    beside: Object.fromEntries(mostFrequent(counts).slice(0, MAX_BESIDE)),
  };
}

/** The words that stand beside the topic in most passages of all sources; ties in alphabetical order. */
export function mostFrequentOf(findings: readonly Findings[], limit: number): [string, number][] {
  const counts = new Map<string, number>();
  for (const { beside } of findings)
    for (const [word, count] of Object.entries(beside)) counts.set(word, (counts.get(word) ?? 0) + count);
  return mostFrequent(counts).slice(0, limit);
}

const mostFrequent = (counts: ReadonlyMap<string, number>) =>
  [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));

function isTelling(word: string, terms: readonly string[]): boolean {
  if (word.length < MIN_BESIDE_LENGTH || word.length > 40 || COMMON.has(word)) return false;
  return !/^\p{N}/u.test(word) && !terms.some((term) => standsFor(term, word));
}

function shortened(text: string): string {
  if (text.length <= MAX_PASSAGE) return text;
  // No half of a surrogate pair is left at the end.
  return `${text.slice(0, MAX_PASSAGE - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

function paragraphsOf(text: string): { line: number; text: string }[] {
  const paragraphs: { line: number; lines: string[] }[] = [];
  let isOpen = false;
  for (const [index, line] of text.split(/\r\n|\n|\r/).entries()) {
    const last = isOpen ? paragraphs.at(-1) : undefined;
    isOpen = line.trim() !== "";
    if (last !== undefined && isOpen) last.lines.push(line);
    else if (isOpen) paragraphs.push({ line: index + 1, lines: [line] });
  }
  return paragraphs.map(({ line, lines }) => ({ line, text: lines.join("\n") }));
}
