import jsep from "jsep";
import * as z from "zod";

// What metric math calls by words, as weak as `||` and `&&` (CloudWatch User Guide, "Metric math syntax and functions").
jsep.addBinaryOp("OR", 1);
jsep.addBinaryOp("AND", 2);

/** A value of a period; none where nothing was measured. */
export type Value = number | undefined;
/** Gives an expression's value for a period from those of the metrics that it names. */
export type Compiled = (values: ReadonlyMap<string, Value>) => Value;

const literal = z.object({ type: z.literal("Literal"), value: z.number() });
const identifier = z.object({ type: z.literal("Identifier"), name: z.string() });
const unary = z.object({
  type: z.literal("UnaryExpression"),
  operator: z.literal("-"),
  argument: z.unknown(),
});
const binary = z.object({
  type: z.literal("BinaryExpression"),
  operator: z.string(),
  left: z.unknown(),
  right: z.unknown(),
});
const call = z.object({
  type: z.literal("CallExpression"),
  callee: identifier,
  arguments: z.array(z.unknown()),
});
const node = z.discriminatedUnion("type", [literal, identifier, unary, binary, call]);

/** An expression that this machine does not know, or that names nothing that there is. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
}

const truth = (holds: boolean): number => (holds ? 1 : 0);

const OPERATORS: Readonly<Record<string, (left: number, right: number) => number>> = {
  "+": (left, right) => left + right,
  "-": (left, right) => left - right,
  "*": (left, right) => left * right,
  "/": (left, right) => left / right,
  ">": (left, right) => truth(left > right),
  "<": (left, right) => truth(left < right),
  ">=": (left, right) => truth(left >= right),
  "<=": (left, right) => truth(left <= right),
  "==": (left, right) => truth(left === right),
  "!=": (left, right) => truth(left !== right),
  AND: (left, right) => truth(left !== 0 && right !== 0),
  "&&": (left, right) => truth(left !== 0 && right !== 0),
  OR: (left, right) => truth(left !== 0 || right !== 0),
  "||": (left, right) => truth(left !== 0 || right !== 0),
};

/**
 * Reads metric math, as far as alarms of ours use it: numbers, metrics, arithmetic, comparisons, `AND`, `OR`, `IF` and
 * `FILL` with a number. A period in which a part has no value has none in the whole; nor has a division by zero.
 *
 * @param ids what may be named
 * @throws ExpressionError
 */
export function compile(text: string, ids: ReadonlySet<string>): Compiled {
  let parsed: unknown;
  try {
    parsed = jsep(text);
  } catch (error) {
    throw new ExpressionError(`${text}: ${error instanceof Error ? error.message : "it cannot be read"}`);
  }
  return build(parsed, { text, ids });
}

interface Context {
  readonly text: string;
  readonly ids: ReadonlySet<string>;
}

function build(raw: unknown, context: Context): Compiled {
  const { text, ids } = context;
  const read = node.safeParse(raw);
  if (!read.success) throw new ExpressionError(`${text}: expected numbers, metrics, operators, IF and FILL`);
  const of = read.data;
  switch (of.type) {
    case "Literal":
      return () => of.value;
    case "Identifier": {
      if (!ids.has(of.name)) throw new ExpressionError(`${text}: there is no metric ${of.name}`);
      return (values) => values.get(of.name);
    }
    case "UnaryExpression": {
      const inner = build(of.argument, context);
      return (values) => finite(inner(values), 0, (value) => -value);
    }
    case "BinaryExpression": {
      const operator = OPERATORS[of.operator];
      if (operator === undefined)
        throw new ExpressionError(`${text}: the operator ${of.operator} is not known`);
      const [left, right] = [build(of.left, context), build(of.right, context)];
      return (values) => finite(left(values), right(values), operator);
    }
    case "CallExpression":
      return called(
        of.callee.name,
        of.arguments.map((argument) => build(argument, context)),
        context,
      );
  }
}

function finite(left: Value, right: Value, operator: (left: number, right: number) => number): Value {
  if (left === undefined || right === undefined) return undefined;
  const result = operator(left, right);
  return Number.isFinite(result) ? result : undefined;
}

function called(name: string, [first, second, third]: readonly Compiled[], { text }: Context): Compiled {
  if (name === "FILL" && first !== undefined && second !== undefined && third === undefined)
    return (values) => first(values) ?? second(values);
  if (name === "IF" && first !== undefined && second !== undefined && third !== undefined)
    return (values) => {
      const condition = first(values);
      if (condition === undefined) return undefined;
      return condition === 0 ? third(values) : second(values);
    };
  throw new ExpressionError(
    `${text}: expected IF(condition, then, else) or FILL(metric, number), got ${name}`,
  );
}
