/** An expression that is none, in words for whoever wrote it. */
export class CalculatorError extends Error {
  override readonly name = "CalculatorError";
}

/** The longest expression, in characters; it also bounds how deep parentheses go. */
export const MAX_EXPRESSION = 500;

const CONSTANTS: Readonly<Record<string, number>> = { pi: Math.PI, e: Math.E };
const FUNCTIONS: Readonly<Record<string, (value: number) => number>> = {
  abs: Math.abs,
  ceil: Math.ceil,
  cos: Math.cos,
  exp: Math.exp,
  floor: Math.floor,
  ln: Math.log,
  log: Math.log10,
  round: Math.round,
  sin: Math.sin,
  sqrt: Math.sqrt,
  tan: Math.tan,
};
/** What an expression may call or name, for whoever writes one. */
export const WORDS: readonly string[] = [...Object.keys(FUNCTIONS), ...Object.keys(CONSTANTS)];

const TOKEN = /\s*(?:((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|([a-z]+)|(\*\*|[-+*/%^()]))/iy;

/**
 * What an expression comes to: numbers, `+ - * / %`, powers as `^` or `**`, parentheses, and {@link WORDS}. It is read,
 * never evaluated as a program.
 *
 * @throws CalculatorError
 */
export function calculate(expression: string): number {
  if (expression.length > MAX_EXPRESSION)
    throw new CalculatorError(`expected at most ${MAX_EXPRESSION} characters, got ${expression.length}`);
  const reader = new Reader(tokensOf(expression));
  const value = reader.sum();
  reader.end();
  if (!Number.isFinite(value)) throw new CalculatorError(`the result is no finite number (${value})`);
  return value;
}

function tokensOf(expression: string): string[] {
  const tokens: string[] = [];
  const trimmed = expression.trimEnd();
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < trimmed.length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(trimmed);
    if (match === null)
      throw new CalculatorError(`expected a number, a word or an operator at character ${at + 1}`);
    tokens.push((match[1] ?? match[2] ?? match[3] ?? "").toLowerCase());
  }
  return tokens;
}

/** Reads by descending from what binds least to what binds most; a power binds more than a sign before it. */
class Reader {
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  sum(): number {
    let value = this.#product();
    for (;;) {
      if (this.#take("+")) value += this.#product();
      else if (this.#take("-")) value -= this.#product();
      else return value;
    }
  }

  end(): void {
    if (this.#at < this.#tokens.length) throw this.#unexpected("an operator");
  }

  #product(): number {
    let value = this.#signed();
    for (;;) {
      if (this.#take("*")) value *= this.#signed();
      else if (this.#take("/")) value /= this.#signed();
      else if (this.#take("%")) value %= this.#signed();
      else return value;
    }
  }

  #signed(): number {
    if (this.#take("-")) return -this.#signed();
    if (this.#take("+")) return this.#signed();
    return this.#power();
  }

  #power(): number {
    const base = this.#atom();
    return this.#take("^") || this.#take("**") ? base ** this.#signed() : base;
  }

  #atom(): number {
    const token = this.#tokens[this.#at];
    if (this.#take("(")) return this.#closed();
    if (token === undefined || !/^[\d.a-z]/.test(token)) throw this.#unexpected("a number");
    this.#at++;
    if (/^[\d.]/.test(token)) return Number(token);
    if (Object.hasOwn(CONSTANTS, token)) return CONSTANTS[token] ?? Number.NaN;
    const call = Object.hasOwn(FUNCTIONS, token) ? FUNCTIONS[token] : undefined;
    if (call === undefined) throw new CalculatorError(`${token} is not known; known: ${WORDS.join(", ")}`);
    if (!this.#take("(")) throw this.#unexpected(`“(” after ${token}`);
    return call(this.#closed());
  }

  #closed(): number {
    const value = this.sum();
    if (!this.#take(")")) throw this.#unexpected("“)”");
    return value;
  }

  #take(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false;
    this.#at++;
    return true;
  }

  #unexpected(expected: string): CalculatorError {
    const got = this.#tokens[this.#at];
    return new CalculatorError(`expected ${expected}, got ${got === undefined ? "the end" : `“${got}”`}`);
  }
}
