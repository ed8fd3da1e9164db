import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { CalculatorError, calculate, MAX_EXPRESSION } from "../../../agents/parts/calculator.ts";

test("operators bind as in mathematics", () => {
  for (const [expression, value] of [
    ["1 + 2 * 3", 7],
    ["(1 + 2) * 3", 9],
    ["2 - 3 - 4", -5],
    ["100 / 10 / 5", 2],
    ["17 % 5 * 2", 4],
    ["2 ^ 3 ^ 2", 512],
    ["2 ** 10", 1024],
    ["-2 ^ 2", -4],
    ["2 ^ -1", 0.5],
    ["--3", 3],
    ["+4 - -4", 8],
    ["1.5e3 + .5", 1500.5],
    ["sqrt(16) + ABS(-2)", 6],
    ["cos(pi) + ln(e)", 0],
    [" ( 7 ) ", 7],
  ] as const)
    assert.equal(calculate(expression), value, expression);
});

test("what is no expression is refused in words", () => {
  for (const [expression, message] of [
    ["", /expected a number, got the end/],
    ["1 +", /expected a number, got the end/],
    ["(1", /expected “\)”, got the end/],
    ["1)", /expected an operator, got “\)”/],
    ["2 3", /expected an operator, got “3”/],
    ["2e", /expected an operator, got “e”/],
    ["1 + $", /at character 4/],
    ["process.exit(1)", /at character 8/],
    ["constructor(1)", /constructor is not known; known: abs, /],
    ["sqrt 4", /expected “\(” after sqrt, got “4”/],
    ["1 / 0", /no finite number \(Infinity\)/],
    ["sqrt(-1)", /no finite number \(NaN\)/],
  ] as const)
    assert.throws(() => calculate(expression), { name: "CalculatorError", message }, expression);
});

test("as long as may be, and one longer", () => {
  const deep = `${"(".repeat(MAX_EXPRESSION / 2 - 1)}1${")".repeat(MAX_EXPRESSION / 2 - 1)}+`;
  assert.equal(calculate(`${deep.slice(0, -1)} `), 1);
  assert.equal(calculate("1".padEnd(MAX_EXPRESSION)), 1);
  assert.throws(() => calculate("1".padEnd(MAX_EXPRESSION + 1)), /at most 500 characters, got 501/);
});

const expression = fc.letrec<{ sum: string }>((tie) => ({
  sum: fc.oneof(
    { maxDepth: 5 },
    fc.nat({ max: 99 }).map(String),
    fc.tuple(tie("sum"), fc.constantFrom("+", "-", "*", "/", "%"), tie("sum")).map((of) => of.join(" ")),
    tie("sum").map((of) => `(${of})`),
    tie("sum").map((of) => `-(${of})`),
  ),
})).sum;

test("it agrees with JavaScript, and whatever it is given it gives a finite number or says what is wrong", () => {
  fc.assert(
    fc.property(expression, (text) => {
      fc.pre(text.length <= MAX_EXPRESSION);
      const expected: unknown = new Function(`return ${text}`)();
      if (typeof expected === "number" && Number.isFinite(expected)) assert.equal(calculate(text), expected);
      else assert.throws(() => calculate(text), CalculatorError);
    }),
  );
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[-+*/%^().e\d a-z]{0,30}$/)), (text) => {
      try {
        assert.ok(Number.isFinite(calculate(text)));
      } catch (error) {
        assert.ok(error instanceof CalculatorError, String(error));
      }
    }),
  );
});
