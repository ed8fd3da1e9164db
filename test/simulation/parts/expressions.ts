import { isDeepStrictEqual } from "node:util";

/** An item, as the document client hands it over. */
export type Item = Record<string, unknown>;

/** What an expression is evaluated against. */
export interface Context {
  /** The item that is there; nothing when there is none. */
  readonly item: Item | undefined;
  /** What stands for `#name`. */
  readonly names: Readonly<Record<string, string>>;
  /** What stands for `:value`. */
  readonly values: Readonly<Record<string, unknown>>;
}

type Evaluate<T> = (context: Context) => T;

const TOKEN = /\s*(:[A-Za-z0-9_]+|#?[A-Za-z_][A-Za-z0-9_]*|<>|<=|>=|[<>=(),+-])/y;

/** The words of an expression, read one after the other. */
class Words {
  readonly #words: string[] = [];
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    TOKEN.lastIndex = 0;
    const end = text.trimEnd().length;
    while (TOKEN.lastIndex < end) {
      const match = TOKEN.exec(text);
      if (match?.[1] === undefined) throw this.fault("a word that is not understood");
      this.#words.push(match[1]);
    }
  }

  get done(): boolean {
    return this.#at >= this.#words.length;
  }

  /** Whether the next word is this one, which is then read. Keywords are written in any case. */
  take(word: string): boolean {
    if (this.#words[this.#at]?.toUpperCase() !== word) return false;
    this.#at++;
    return true;
  }

  expect(word: string): void {
    if (!this.take(word)) throw this.fault(`expected ${word}`);
  }

  next(): string {
    const word = this.#words[this.#at++];
    if (word === undefined) throw this.fault("expected more");
    return word;
  }

  /** Whether one of these is next. */
  sees(...words: string[]): boolean {
    return words.includes(this.#words[this.#at]?.toUpperCase() ?? "");
  }

  fault(what: string): Error {
    return new Error(`the simulated table: ${what} at word ${this.#at} of ${JSON.stringify(this.#text)}`);
  }
}

function pathOf(word: string): Evaluate<string> {
  if (!word.startsWith("#")) return () => word;
  return ({ names }) => names[word] ?? missing(word);
}

function missing(word: string): never {
  throw new Error(`the simulated table: ${word} is not defined`);
}

function operand(words: Words): Evaluate<unknown> {
  const word = words.next();
  if (word.startsWith(":"))
    return ({ values }) => (values[word] === undefined ? missing(word) : values[word]);
  if (words.take("(")) return call(words, word);
  const path = pathOf(word);
  return (context) => context.item?.[path(context)];
}

function call(words: Words, name: string): Evaluate<unknown> {
  const path = pathOf(words.next());
  const at: Evaluate<unknown> = (context) => context.item?.[path(context)];
  const second = words.take(",") ? operand(words) : undefined;
  words.expect(")");
  const other: Evaluate<unknown> = (context) => second?.(context);
  switch (name.toLowerCase()) {
    case "attribute_exists":
      return (context) => at(context) !== undefined;
    case "attribute_not_exists":
      return (context) => at(context) === undefined;
    case "begins_with":
      return (context) => String(at(context) ?? "").startsWith(String(other(context)));
    case "contains":
      return (context) => contains(at(context), other(context));
    case "size":
      return (context) => sizeOf(at(context));
    case "if_not_exists":
      return (context) => at(context) ?? other(context);
    default:
      throw words.fault(`the function ${name} is not known`);
  }
}

function contains(where: unknown, what: unknown): boolean {
  if (where instanceof Set) return where.has(what);
  return typeof where === "string" && typeof what === "string" && where.includes(what);
}

/** The size of what is not there is nothing, and no comparison with it holds. */
function sizeOf(value: unknown): number | undefined {
  if (value instanceof Set) return value.size;
  return typeof value === "string" ? Buffer.byteLength(value) : undefined;
}

/** The order of two values of one type; nothing when they are of two, or one is not there. */
function order(a: unknown, b: unknown): number | undefined {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  return undefined;
}

function equal(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === "object" && isDeepStrictEqual(a, b));
}

function disjunction(words: Words): Evaluate<boolean> {
  let left = conjunction(words);
  while (words.take("OR")) {
    const [one, other] = [left, conjunction(words)];
    left = (context) => one(context) || other(context);
  }
  return left;
}

function conjunction(words: Words): Evaluate<boolean> {
  let left = negation(words);
  while (words.take("AND")) {
    const [one, other] = [left, negation(words)];
    left = (context) => one(context) && other(context);
  }
  return left;
}

function negation(words: Words): Evaluate<boolean> {
  if (words.take("NOT")) {
    const of = negation(words);
    return (context) => !of(context);
  }
  if (words.take("(")) {
    const of = disjunction(words);
    words.expect(")");
    return of;
  }
  return comparison(words);
}

const ORDERS: Readonly<Record<string, (order: number) => boolean>> = {
  "<": (order) => order < 0,
  "<=": (order) => order <= 0,
  ">": (order) => order > 0,
  ">=": (order) => order >= 0,
};

function comparison(words: Words): Evaluate<boolean> {
  const left = operand(words);
  if (words.take("BETWEEN")) {
    const low = operand(words);
    words.expect("AND");
    const high = operand(words);
    return (context) => {
      const value = left(context);
      return (order(value, low(context)) ?? -1) >= 0 && (order(value, high(context)) ?? 1) <= 0;
    };
  }
  if (words.take("IN")) {
    const among: Evaluate<unknown>[] = [];
    words.expect("(");
    do among.push(operand(words));
    while (words.take(","));
    words.expect(")");
    return (context) => {
      const value = left(context);
      return among.some((one) => equal(one(context), value));
    };
  }
  if (words.done || words.sees("AND", "OR", ")")) return (context) => left(context) === true;
  const operator = words.next();
  const right = operand(words);
  if (operator === "=")
    return (context) => {
      const value = left(context);
      return value !== undefined && equal(value, right(context));
    };
  if (operator === "<>") return (context) => !equal(left(context), right(context));
  const holds = ORDERS[operator];
  if (holds === undefined) throw words.fault(`the comparison ${operator} is not known`);
  return (context) => {
    const found = order(left(context), right(context));
    return found !== undefined && holds(found);
  };
}

/** One attribute's change: what is evaluated before any is changed, and how it is changed then. */
type Change = (context: Context) => (item: Item) => void;

function update(words: Words): Change[] {
  const changes: Change[] = [];
  while (!words.done) {
    const clause = words.next().toUpperCase();
    do changes.push(changeOf(words, clause));
    while (words.take(","));
  }
  return changes;
}

function changeOf(words: Words, clause: string): Change {
  const path = pathOf(words.next());
  if (clause === "REMOVE")
    return (context) => {
      const name = path(context);
      return (item) => {
        delete item[name];
      };
    };
  if (clause === "SET") words.expect("=");
  const value = clause === "SET" ? sum(words) : combined(words, clause, path);
  return (context) => {
    const [name, set] = [path(context), value(context)];
    return (item) => {
      if (set === undefined) delete item[name];
      else item[name] = set;
    };
  };
}

function sum(words: Words): Evaluate<unknown> {
  const left = operand(words);
  const sign = words.take("+") ? 1 : words.take("-") ? -1 : 0;
  if (sign === 0) return left;
  const right = operand(words);
  return (context) => number(left(context)) + sign * number(right(context));
}

/** What ADD and DELETE make of a number or a set. An empty set is no attribute any more. */
function combined(words: Words, clause: string, path: Evaluate<string>): Evaluate<unknown> {
  const right = operand(words);
  if (clause !== "ADD" && clause !== "DELETE") throw words.fault(`the clause ${clause} is not known`);
  return (context) => {
    const [there, given] = [context.item?.[path(context)], right(context)];
    if (!(given instanceof Set)) return number(there ?? 0) + number(given);
    const set = new Set<unknown>(there instanceof Set ? there : []);
    for (const one of given) {
      if (clause === "ADD") set.add(one);
      else set.delete(one);
    }
    return set.size === 0 ? undefined : set;
  };
}

function number(value: unknown): number {
  if (typeof value === "number") return value;
  throw new Error(`the simulated table: expected a number, got ${typeof value}`);
}

function cached<T>(compile: (words: Words) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const there = known.get(text);
    if (there !== undefined) return there;
    const words = new Words(text);
    const compiled = compile(words);
    if (!words.done) throw words.fault("more than was expected");
    known.set(text, compiled);
    return compiled;
  };
}

/** A condition, a key condition or a filter (DynamoDB Developer Guide, "Condition and filter expressions"). */
export const condition: (text: string) => Evaluate<boolean> = cached(disjunction);

/** An update (DynamoDB Developer Guide, "Update expressions"): gives the item as it is afterwards. */
export function updated(text: string, context: Context): Item {
  const changes = updateOf(text).map((change) => change(context));
  const item = { ...context.item };
  for (const change of changes) change(item);
  return item;
}

const updateOf = cached(update);
