/** How a list of choices is written: base 36, joined by `.`; `_n` stands for n zeros. */
const RADIX = 36;

/**
 * Whatever a history leaves to chance is asked for here, so that the answers are the history: the same list gives the
 * same history again. 0 is always the calmest answer: the oldest comes first, and nothing goes wrong. A list that is
 * used up goes on with zeros, which makes every beginning of a list a history, and shrinking simple.
 */
export class Choices {
  /** What was answered so far. */
  readonly made: number[] = [];
  readonly #next: (below: number) => number;
  #calm = false;

  private constructor(next: (below: number) => number) {
    this.#next = next;
  }

  /** Choices of a generator, the same for the same seed and number. */
  static random(seed: number, history: number): Choices {
    const generate = generator(seed, history);
    return new Choices((below) => Math.floor(generate() * below));
  }

  /** Choices that were made before. */
  static replay(list: readonly number[]): Choices {
    let at = 0;
    return new Choices((below) => {
      const value = list[at++] ?? 0;
      return value < below ? value : value % below;
    });
  }

  /** From now on everything is answered with 0, and nothing is noted. */
  calm(): void {
    this.#calm = true;
  }

  get isCalm(): boolean {
    return this.#calm;
  }

  /** One of the whole numbers from 0 to `below`, that excluded. */
  below(below: number): number {
    if (this.#calm || below <= 1) return 0;
    const value = this.#next(below);
    this.made.push(value);
    return value;
  }

  /** True so many times in a thousand. */
  chance(perMille: number): boolean {
    if (this.#calm || perMille <= 0) return false;
    // The small values of the generator are the rare ones; a replayed 1 stands for yes.
    const value = this.#next(1_000);
    const yes = value > 0 && value <= perMille;
    this.made.push(yes ? 1 : 0);
    return yes;
  }

  /** One of these; the first is the calmest. */
  of<T>(first: T, ...others: readonly T[]): T {
    const at = this.below(others.length + 1);
    return at === 0 ? first : (others[at - 1] ?? first);
  }
}

/**
 * A generator of numbers from 0 to 1, 1 excluded: sfc32 (Chris Doty-Humphrey's small fast counter), which passes
 * PractRand, is quick, and begins anew for each history.
 */
function generator(seed: number, history: number): () => number {
  let [a, b, c, counter] = [seed >>> 0, Math.floor(seed / 2 ** 32) >>> 0, history >>> 0, 1];
  const next = () => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  };
  // The first numbers of seeds that are near each other are near each other.
  for (let i = 0; i < 15; i++) next();
  return next;
}

/** A list of choices as one word. */
export function writeChoices(list: readonly number[]): string {
  const words: string[] = [];
  for (let at = 0; at < list.length; ) {
    let zeros = 0;
    while (list[at + zeros] === 0) zeros++;
    words.push(zeros > 1 ? `_${zeros.toString(RADIX)}` : (list[at] ?? 0).toString(RADIX));
    at += Math.max(1, zeros);
  }
  return words.join(".");
}

/** @throws RangeError when the text is none that {@link writeChoices} has written */
export function readChoices(text: string): number[] {
  if (text === "") return [];
  return text.split(".").flatMap((word) => {
    const zeros = word.startsWith("_");
    const value = Number.parseInt(zeros ? word.slice(1) : word, RADIX);
    if (!(value >= 0 && value <= 1_000_000))
      throw new RangeError(`choices: expected numbers of base 36 joined by ".", got ${JSON.stringify(word)}`);
    return zeros ? new Array<number>(value).fill(0) : [value];
  });
}
