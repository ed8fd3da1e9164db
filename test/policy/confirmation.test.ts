import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type Confirmed,
  digestOf,
  signToken,
  TOKEN_LIFE_MS,
  TokenError,
  verifyToken,
} from "../../shared/policy/confirmation.ts";

const KEY = Buffer.alloc(32, 7);
const NOW = 1_900_000_000_000;
const OF: Confirmed = {
  agent: "acme-support",
  operator: "eve",
  change: "chg_0123456789abcdef",
  digest: digestOf({ fields: { enabled: false } }),
};
const TOKEN = signToken(KEY, OF, NOW);

/** Why a token is refused, or that it is not. */
function verdict(token: string, of = OF, now = NOW, key: Uint8Array = KEY): string {
  try {
    verifyToken(key, token, of, now);
    return "good";
  } catch (error) {
    assert.ok(error instanceof TokenError, String(error));
    // A few letters may stand in any sentence.
    assert.ok(token.length < 16 || !error.message.includes(token));
    return error.code;
  }
}

test("a token is good for ten minutes, at the bound and one past it", () => {
  assert.equal(verdict(TOKEN), "good");
  assert.equal(verdict(TOKEN, OF, NOW + TOKEN_LIFE_MS - 1), "good");
  assert.equal(verdict(TOKEN, OF, NOW + TOKEN_LIFE_MS), "token_expired");
});

test("a token of another agent, operator or change is foreign", () => {
  for (const other of [{ agent: "acme-exec" }, { operator: "adam" }, { change: "chg_0000000000000000" }])
    assert.equal(verdict(TOKEN, { ...OF, ...other }), "token_foreign");
});

test("a change that is not the one that was shown, or another key: altered", () => {
  assert.equal(verdict(TOKEN, { ...OF, digest: digestOf({}) }), "token_altered");
  assert.equal(verdict(TOKEN, OF, NOW, Buffer.alloc(32, 8)), "token_altered");
});

test("any alteration of a token is refused", () => {
  const characters = fc.constantFrom(...TOKEN.replace(".", ""), ".", "=", "*", "é");
  const place = fc.nat({ max: TOKEN.length });
  const altered = fc.oneof(
    fc.tuple(place, characters).map(([at, one]) => TOKEN.slice(0, at) + one + TOKEN.slice(at + 1)),
    fc.tuple(place, characters).map(([at, one]) => TOKEN.slice(0, at) + one + TOKEN.slice(at)),
    fc
      .tuple(place, fc.integer({ min: 1, max: 9 }))
      .map(([at, n]) => TOKEN.slice(0, at) + TOKEN.slice(at + n)),
    fc.string(),
    fc.constantFrom("", ".", `${TOKEN}.`, `.${TOKEN}`, `${TOKEN}=`, ` ${TOKEN}`),
  );
  fc.assert(
    fc.property(altered, (token) => {
      fc.pre(token !== TOKEN);
      assert.equal(verdict(token), "token_altered");
    }),
    { numRuns: 500 },
  );
});

test("what is said with another's signature is refused, whatever it is", () => {
  const text = fc.string();
  fc.assert(
    fc.property(fc.record({ agent: text, operator: text, change: text, digest: text }), text, (of, key) => {
      const made = signToken(Buffer.from(key), of, NOW);
      assert.equal(verdict(made, of, NOW), "token_altered");
      const [payload] = made.split(".");
      const [, mac] = TOKEN.split(".");
      assert.equal(verdict(`${payload}.${mac}`, of), "token_altered");
    }),
  );
});

test("the digest of a value does not hang on the order of its keys, and changes with all else", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      const turned = Object.fromEntries(Object.entries(value).reverse());
      assert.equal(digestOf(turned), digestOf(value));
    }),
  );
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
      const same = digestOf(one) === digestOf(other);
      fc.pre(!same || JSON.stringify(one) !== JSON.stringify(other));
      assert.equal(same, false);
    }),
  );
});
