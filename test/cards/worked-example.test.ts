import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as z from "zod";
import { canonicalJson } from "../../shared/cards/canonical.ts";
import { readDidKey } from "../../shared/cards/did-key.ts";
import { signedPart } from "../../shared/cards/presence.ts";
import { signCard } from "../../shared/cards/signing.ts";
import { SigningKey } from "../../shared/cards/signing-key.ts";
import { readSuccession, stateSuccession } from "../../shared/cards/succession.ts";
import { verifyCard } from "../../shared/cards/verifying.ts";
import { DOCS } from "../docs/pages.ts";
import { cardOf } from "./card.ts";

/** docs/cards-signing.md: the blocks of its worked example. */
const page = readFileSync(join(DOCS, "cards-signing.md"), "utf8");
const blocks = (kind: string) =>
  Array.from(page.matchAll(new RegExp(`\`\`\`${kind}\n([^]*?)\n\`\`\``, "g")), ([, text = ""]) => text);
const [cardText = ""] = blocks("json");
const [line = "", statement = ""] = blocks("text");
const [code = ""] = blocks("js");

const AT = "2026-08-01T12:00:00.000Z";
const base64url = (hex: string) => Buffer.from(hex, "hex").toString("base64url");
/** RFC 8032 §7.1: secret and public key. */
const keyOf = (d: string, x: string) => {
  const jwk = { kty: "OKP", crv: "Ed25519", d: base64url(d), x: base64url(x) };
  return SigningKey.open(JSON.stringify({ version: 1, jwk, since: AT, successions: [] }), "RFC 8032");
};
const first = keyOf(
  "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
  "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
);
const second = keyOf(
  "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
  "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
);
const card = z
  .looseObject({ signatures: z.tuple([z.object({ protected: z.string(), signature: z.string() })]) })
  .parse(JSON.parse(cardText));

test("the card is valid, its signed text is the line, and our signer gives the same", async () => {
  assert.ok(page.includes(`test 1, whose secret everybody knows: \`${first.did}\``));
  const verdict = await verifyCard(card, { did: first.did });
  assert.equal(verdict.state, "valid");
  assert.equal(canonicalJson(signedPart(card)), line);
  const skills = [{ slug: "task", name: "Answer", description: "Answers a question", tags: ["faq"] }];
  assert.deepEqual(await signCard(cardOf({ identity: first }, { skills }), first), card);
});

test("the recipe verifies it", async () => {
  const module = z
    .object({ isSigned: z.custom<(line: string, signature: object, x: string) => unknown>() })
    .parse(await import(`data:text/javascript,${encodeURIComponent(`${code}\nexport { isSigned };`)}`));
  const [signature] = card.signatures;
  const x = readDidKey(first.did)?.jwk.x ?? "";
  assert.equal(module.isSigned(line, signature, x), true);
  assert.equal(module.isSigned(line.replace("Support", "Another"), signature, x), false);
});

test("the statement says that the second key follows the first", async () => {
  assert.deepEqual(await readSuccession(statement), { from: first.did, to: second.did, at: AT });
  assert.equal(await stateSuccession(first, second.did, new Date(AT)), statement);
});
