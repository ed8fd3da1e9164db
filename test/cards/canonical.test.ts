import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CanonicalError, canonicalJson, MAX_CANONICAL_DEPTH } from "../../shared/cards/canonical.ts";

/** RFC 8785 §3.2.2. */
const SAMPLE = String.raw`{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`;

test("the sample of RFC 8785 has the form that it says", () => {
  assert.equal(
    canonicalJson(JSON.parse(SAMPLE)),
    String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
  );
});

test("members are sorted by UTF-16 code units, as RFC 8785 §3.2.3 has them", () => {
  const members = {
    "\u20ac": "Euro Sign",
    "\r": "Carriage Return",
    "\ufb33": "Hebrew Letter Dalet With Dagesh",
    "1": "One",
    "\ud83d\ude00": "Emoji: Grinning Face",
    "\u0080": "Control",
    "\u00f6": "Latin Small Letter O With Diaeresis",
  };
  assert.deepEqual(canonicalJson(members).match(/(?<=:")[^"]+/g), [
    "Carriage Return",
    "One",
    "Control",
    "Latin Small Letter O With Diaeresis",
    "Euro Sign",
    "Emoji: Grinning Face",
    "Hebrew Letter Dalet With Dagesh",
  ]);
});

/** RFC 8785 Appendix B: IEEE 754 bits, and the JSON. */
const NUMBERS = {
  "0000000000000000": "0",
  "8000000000000000": "0",
  "0000000000000001": "5e-324",
  "8000000000000001": "-5e-324",
  "7fefffffffffffff": "1.7976931348623157e+308",
  ffefffffffffffff: "-1.7976931348623157e+308",
  "4340000000000000": "9007199254740992",
  c340000000000000: "-9007199254740992",
  "4430000000000000": "295147905179352830000",
  "44b52d02c7e14af5": "9.999999999999997e+22",
  "44b52d02c7e14af6": "1e+23",
  "44b52d02c7e14af7": "1.0000000000000001e+23",
  "444b1ae4d6e2ef4e": "999999999999999700000",
  "444b1ae4d6e2ef4f": "999999999999999900000",
  "444b1ae4d6e2ef50": "1e+21",
  "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
  "3eb0c6f7a0b5ed8d": "0.000001",
  "41b3de4355555553": "333333333.3333332",
  "41b3de4355555554": "333333333.33333325",
  "41b3de4355555555": "333333333.3333333",
  "41b3de4355555556": "333333333.3333334",
  "41b3de4355555557": "333333333.33333343",
  becbf647612f3696: "-0.0000033333333333333333",
  "43143ff3c1cb0959": "1424953923781206.2",
};

test("numbers are written as RFC 8785 Appendix B has them", () => {
  for (const [bits, json] of Object.entries(NUMBERS))
    assert.equal(canonicalJson(Buffer.from(bits, "hex").readDoubleBE()), json, bits);
});

test("the order of members changes nothing, and what is written is the value", () => {
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
      const text = JSON.stringify(value);
      fc.pre(text.isWellFormed() && JSON.stringify(JSON.parse(text)) === text && !/\\ud[89a-f]/i.test(text));
      const canonical = canonicalJson(JSON.parse(text));
      assert.equal(canonicalJson(turned(JSON.parse(text))), canonical);
      assert.equal(canonicalJson(JSON.parse(canonical)), canonical);
      assert.deepEqual(JSON.parse(canonical), JSON.parse(text.replaceAll(/(?<![\w.])-0(?![\w.])/g, "0")));
    }),
  );
});

/** The same with the members of each object in another order. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, of]) => [key, turned(of)] as const)
      .toReversed(),
  );
}

test("what canonical JSON cannot hold is refused, and no value is quoted", () => {
  const wrong: [unknown, RegExp][] = [
    [Number.NaN, /finite/],
    [{ a: [Number.POSITIVE_INFINITY] }, /the value\.a\[0\]: expected a finite number/],
    ["\ud800", /surrogate/],
    [{ a: "x\udc00y" }, /the value\.a: .*surrogate/],
    [{ "\ud800": 1 }, /names of members/],
    [{ "</b>\u001b[2J": 1n }, /the value\.\(a member\): expected JSON, got a bigint/],
    [undefined, /got a undefined/],
    [{ a: undefined }, /the value\.a/],
    [new Array(1), /the value\[0\]/],
    [{ toJSON: () => 1 }, /got a function/],
    [new Date(0), /an object of a class/],
  ];
  for (const [value, message] of wrong)
    assert.throws(
      () => canonicalJson(value),
      (error) => error instanceof CanonicalError && message.test(error.message),
      String(message),
    );
});

test("a value may be nested so deep and no deeper", () => {
  const nested = (levels: number) => JSON.parse("[".repeat(levels) + "]".repeat(levels));
  assert.equal(canonicalJson(nested(MAX_CANONICAL_DEPTH)).length, 2 * MAX_CANONICAL_DEPTH);
  assert.throws(() => canonicalJson(nested(MAX_CANONICAL_DEPTH + 1)), /at most 64 levels/);
  assert.throws(() => canonicalJson(nested(100_000)), CanonicalError);
});

test("a member called __proto__ is one like any other", () => {
  assert.equal(canonicalJson(JSON.parse('{"b":1,"__proto__":{"a":1}}')), '{"__proto__":{"a":1},"b":1}');
});
