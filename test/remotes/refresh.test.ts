import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { didOf, keyUrl } from "../../shared/cards/did-key.ts";
import type { HttpFacts, Standing } from "../../shared/cards/peer-facts.ts";
import { httpFacts } from "../../shared/cards/peer-schemas.ts";
import {
  type KnownRemote,
  type RefreshOptions,
  refreshRemote,
  withAcceptedKey,
} from "../../shared/remotes/refresh.ts";
import { verifyRemoteCard } from "../../shared/remotes/verify.ts";
import { key, signedAs } from "../cards/signed.ts";
import { type Answers, CURRENT, currentCard, json, server, URL_OF } from "./support.ts";

const START = Date.UTC(2030, 0, 1);
const REMOTE = { name: "auditor", url: URL_OF, headers: {}, skills: [{ name: "filed" }] };

/** An agent that is refreshed again and again, as it is then known. */
function refreshed() {
  let at = START;
  let known: KnownRemote = {};
  return {
    known: () => known,
    wait: (ms: number) => {
      at += ms;
    },
    /** What is known is from before it was told of a card whether all of it could be read. */
    age: () => {
      assert.ok(known.facts);
      const stored = JSON.parse(JSON.stringify(known.facts.value));
      assert.deepEqual(httpFacts().parse(stored), stored, "what is stored is read as it is");
      delete stored.card.extensions.unread;
      known = { ...known, facts: { ...known.facts, value: httpFacts().parse(stored) } };
    },
    accept: (key: string) => {
      assert.ok(known.facts);
      known = { ...known, facts: { ...known.facts, value: withAcceptedKey(known.facts.value, key) } };
    },
    async refresh(answers: Answers, over: Partial<RefreshOptions> & { url?: string } = {}) {
      const { send, asked } = server(answers);
      const remote = { ...REMOTE, url: over.url ?? REMOTE.url };
      const result = await refreshRemote(remote, known, { send, now: () => at, ...over });
      const { facts, version, standing } = result;
      known = { standing, facts: facts ? { version: version + 1, value: facts } : known.facts };
      return { ...result, asked };
    },
  };
}

const standing = (of: { standing: Standing }) => of.standing;

test("skills come and go with the card, and those of the file are neither added nor removed", async () => {
  const agent = refreshed();
  const skills = (...ids: string[]) => ({
    [CURRENT]: json(currentCard({ skills: ids.map((id) => ({ id })) })),
  });
  const first = await agent.refresh(skills("a", "b", "filed"));
  assert.deepEqual([first.outcome, first.added, first.removed], ["updated", ["a", "b"], []]);
  const second = await agent.refresh(skills("b", "c"));
  assert.deepEqual([second.outcome, second.added, second.removed], ["updated", ["c"], ["a"]]);
  const third = await agent.refresh(skills("b", "c"));
  assert.deepEqual(
    [third.outcome, third.added, third.removed, third.facts],
    ["unchanged", [], [], undefined],
  );
  assert.equal(agent.known().facts?.value.firstSeen, START);
});

test("a card that is fresh is not asked for, unless somebody wants it now", async () => {
  const agent = refreshed();
  const answers = { [CURRENT]: json(currentCard(), { "cache-control": "max-age=60" }) };
  await agent.refresh(answers);
  agent.wait(59_999);
  const fresh = await agent.refresh(answers);
  assert.deepEqual([fresh.outcome, fresh.asked.length], ["fresh", 0]);
  assert.equal((await agent.refresh(answers, { force: true })).asked.length, 1);
  agent.wait(60_000);
  assert.deepEqual((await agent.refresh(answers)).outcome, "unchanged");
});

test("a failed refresh keeps the last good card, and says since when", async () => {
  const agent = refreshed();
  await agent.refresh({ [CURRENT]: json(currentCard()) });
  agent.wait(600_000);
  const failed = await agent.refresh({});
  assert.equal(failed.outcome, "failed");
  assert.equal(failed.facts, undefined);
  const reason =
    "/.well-known/agent-card.json: expected status 200, got 404; /.well-known/agent.json: expected status 200, got 404";
  assert.deepEqual(standing(failed), {
    id: "auditor",
    seen: START,
    failures: 1,
    failingSince: START + 600_000,
    reason,
  });
  agent.wait(600_000);
  const again = await agent.refresh({});
  assert.equal(
    again.warning,
    `remote agent auditor: its card cannot be refreshed (2 in a row, since 2030-01-01T00:10:00.000Z), its card of 2030-01-01T00:00:00.000Z is kept: ${reason}`,
  );
  assert.equal(standing(again).failingSince, START + 600_000);
  const good = await agent.refresh({ [CURRENT]: json(currentCard()) });
  assert.deepEqual(
    [good.outcome, standing(good)],
    ["unchanged", { id: "auditor", seen: START + 1_200_000, failures: 0 }],
  );
  assert.match((await refreshed().refresh({})).warning ?? "", /, no card of it is known: /);
});

test("at another address it is another agent", async () => {
  const agent = refreshed();
  await agent.refresh({ [CURRENT]: json(currentCard(), { etag: '"1"', "cache-control": "max-age=600" }) });
  const url = "https://other.example.com/a2a";
  const other = "https://other.example.com/.well-known/agent-card.json";
  const moved = await agent.refresh({ [other]: json(currentCard()) }, { url });
  assert.deepEqual([moved.outcome, moved.version, moved.added], ["updated", 1, ["audit"]]);
  assert.equal(moved.asked[0]?.headers["if-none-match"], undefined);
  assert.equal(moved.facts?.card.interfaces[0]?.url, url);
});

test("a card that was read when slips were not looked at as a whole is read anew, fresh or not", async () => {
  const agent = refreshed();
  const slip = { uri: "https://proto-labs.ai/a2a/ext/hitl-mode-v1", params: { skills: [] } };
  const body = currentCard({ capabilities: { extensions: [slip] } });
  const answers = { [CURRENT]: json(body, { etag: '"1"', "cache-control": "max-age=600" }) };
  await agent.refresh(answers);
  assert.equal((await agent.refresh(answers)).outcome, "fresh");
  agent.age();
  const anew = await agent.refresh(answers);
  assert.deepEqual([anew.outcome, anew.asked[0]?.headers["if-none-match"]], ["updated", undefined]);
  assert.deepEqual(anew.facts?.card.extensions.unread, ["hitl-mode-v1"]);
});

test("a signature by a key that cannot be known counts as none while no key is pinned, and is refused after that", async () => {
  const agent = refreshed();
  const verify = verifyRemoteCard;
  const signature = () => agent.known().facts?.value.signature;
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const { x = "" } = publicKey.export({ format: "jwk" });
  const did = didOf({ kty: "OKP", crv: "Ed25519", x });
  const signedWith = async (header: object) => ({
    [CURRENT]: json(await signedAs(currentCard(), { alg: "EdDSA", typ: "JOSE", ...header }, privateKey)),
  });
  const unknown = await signedWith({ kid: "key-1", jku: "https://auditor.example.com/jwks.json" });

  const first = await agent.refresh(unknown, { verify });
  assert.deepEqual([first.outcome, first.added, signature()], ["updated", ["audit"], { state: "unsigned" }]);
  assert.match(first.facts?.notes[0] ?? "", /its signature is by a key .* counts as not signed/);

  const forged = await agent.refresh(await signedWith({ kid: keyUrl(key.did) }), { verify });
  assert.match(forged.warning ?? "", /counts for nothing: signature_wrong/);

  const good = await signedWith({ kid: keyUrl(did) });
  assert.equal((await agent.refresh(good, { verify })).outcome, "updated");
  assert.equal(signature()?.key, did);
  const after = await agent.refresh(unknown, { verify });
  assert.match(after.warning ?? "", /counts for nothing: key_unknown/);
  assert.equal(signature()?.key, did);
});

test("a key is pinned by the first good signature, and another is refused until it is accepted", async () => {
  const agent = refreshed();
  const verify: NonNullable<RefreshOptions["verify"]> = async (card, pinned) => {
    const { version: key } = card as { version: string };
    if (key === "none")
      return pinned ? { state: "invalid", reason: "signature_missing" } : { state: "unsigned" };
    if (pinned !== undefined && pinned.key !== key) return { state: "changed", offered: key };
    return { state: "valid", kid: `${key}#1`, key };
  };
  const signedBy = (key: string) => ({ [CURRENT]: json(currentCard({ version: key, description: key })) });
  const signature = () => agent.known().facts?.value.signature;

  await agent.refresh(signedBy("did:key:one"), { verify });
  assert.deepEqual(signature(), { state: "valid", key: "did:key:one", kid: "did:key:one#1" });
  const changed = await agent.refresh(signedBy("did:key:two"), { verify });
  assert.equal(changed.outcome, "failed");
  assert.match(changed.warning ?? "", /signed by another key than before, which an operator must accept/);
  assert.equal(standing(changed).offeredKey, "did:key:two");
  assert.equal(agent.known().facts?.value.card.description, "did:key:one");
  const unsigned = await agent.refresh(signedBy("none"), { verify });
  assert.match(unsigned.warning ?? "", /its signature counts for nothing: signature_missing/);
  agent.accept("did:key:two");
  const accepted = await agent.refresh(signedBy("did:key:two"), { verify });
  assert.equal(accepted.outcome, "updated");
  assert.equal(standing(accepted).offeredKey, undefined);
  assert.deepEqual(signature(), { state: "valid", key: "did:key:two", kid: "did:key:two#1" });

  const plain = refreshed();
  await plain.refresh(signedBy("none"), { verify });
  assert.deepEqual(plain.known().facts?.value.signature, { state: "unsigned" });
});

test("facts with an accepted key are asked for anew", () => {
  const facts = { etag: '"1"', signature: { state: "valid", key: "a", kid: "b" } } as HttpFacts;
  assert.deepEqual(withAcceptedKey(facts, "c"), { signature: { state: "unverified", key: "c" } });
});

test("of a signed card only what was signed is taken", async () => {
  const agent = refreshed();
  const answers = { [CURRENT]: json(currentCard({ name: "Whoever", securitySchemes: {} })) };
  const verdict = (card: unknown) => async () => ({
    state: "valid" as const,
    kid: "k",
    key: "did:key:z",
    card,
  });
  const good = await agent.refresh(answers, { verify: verdict(currentCard({ name: "Signed" })) });
  assert.deepEqual([good.outcome, good.facts?.card.name], ["updated", "Signed"]);
  const bad = await agent.refresh(answers, { verify: verdict({ name: "Signed" }) });
  assert.equal(bad.outcome, "failed");
  assert.match(
    bad.warning ?? "",
    /agent-card\.json: what of it is signed is no card: card\.supportedInterfaces/,
  );
});
