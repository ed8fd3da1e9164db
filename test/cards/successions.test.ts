import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CompactSign } from "jose";
import { canonicalJson } from "../../shared/cards/canonical.ts";
import { keyUrl } from "../../shared/cards/did-key.ts";
import { signCard } from "../../shared/cards/signing.ts";
import { SigningKey } from "../../shared/cards/signing-key.ts";
import { stateSuccession } from "../../shared/cards/succession.ts";
import { verifyCard } from "../../shared/cards/verifying.ts";
import { cardOf } from "./card.ts";
import { assertValid, key, NOW, other, sent, signed } from "./signed.ts";

describe("another key than the pinned one", () => {
  const pinned = { did: key.did };

  test("is refused, and named for the operator", async () => {
    assert.deepEqual(await verifyCard(await signed(other), pinned), {
      state: "changed",
      kid: keyUrl(other.did),
      pinned: key.did,
      offered: other.did,
    });
  });

  test("is taken when the pinned key has said that it follows, over several steps too", async () => {
    const middle = SigningKey.make(NOW);
    const chain = [
      await stateSuccession(key, middle.did, NOW),
      await stateSuccession(middle, other.did, NOW),
    ];
    const verdict = await verifyCard(await signed(other.after(chain)), pinned);
    assertValid(verdict, {
      kid: keyUrl(other.did),
      key: other.did,
      succeeded: key.did,
    });
    // Whoever has followed is not led back: an old card, sent again, counts no more.
    const old = await verifyCard(await signed(key), { did: other.did });
    assert.equal(old.state, "changed");
    const late = await verifyCard(await signed(other.after(chain)), { did: middle.did });
    assert.equal(late.state, "valid");
  });

  test("is refused when the statement is another's, of another, altered, or missing a step", async () => {
    const middle = SigningKey.make(NOW);
    const good = await stateSuccession(key, other.did, NOW);
    const [header, payload, signature] = good.split(".");
    const forged = Buffer.from(canonicalJson({ from: key.did, to: other.did, at: NOW.toISOString() }));
    const by = (typ: string) => ({ alg: "EdDSA", kid: keyUrl(key.did), typ });
    const compact = (of: SigningKey, typ: string) =>
      new CompactSign(forged).setProtectedHeader(by(typ)).sign(of.key);
    const chains: string[][] = [
      [await stateSuccession(other, other.did, NOW)],
      [await stateSuccession(key, middle.did, NOW)],
      [await stateSuccession(middle, other.did, NOW)],
      [`${header}.${Buffer.from("{}").toString("base64url")}.${signature}`],
      [`${header}.${payload}.${signature}.`],
      [`${header}.${payload}`],
      [await compact(other, "sluice-key-succession")],
      [await compact(key, "JOSE")],
      [`${good}${"A".repeat(2_048)}`],
      ["", "..", "a.b.c"],
      Array.from({ length: 9 }, () => good),
    ];
    for (const [i, chain] of chains.entries()) {
      const identity = { did: other.did, since: other.since, successions: chain };
      const card = sent(await signCard(cardOf({ identity }), other));
      assert.equal((await verifyCard(card, pinned)).state, "changed", String(i));
    }
    const identity = {
      did: other.did,
      since: other.since,
      successions: [await compact(key, "sluice-key-succession")],
    };
    const card = sent(await signCard(cardOf({ identity }), other));
    assert.equal((await verifyCard(card, pinned)).state, "valid", "made by another implementation");
  });
});
