import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MAX_CARD_BYTES } from "../../shared/remotes/card.ts";
import { cardBase, fetchCard } from "../../shared/remotes/fetch-card.ts";
import { MAX_FRESH_SEC, validatorsOf } from "../../shared/remotes/freshness.ts";
import { type Answers, CURRENT, currentCard, json, LEGACY, legacyCard, server, URL_OF } from "./support.ts";

const NOW = Date.UTC(2030, 0, 1);
const now = () => NOW;

function fetching(answers: Answers, over: Partial<Parameters<typeof fetchCard>[0]> = {}) {
  const { send, asked } = server(answers);
  return { asked, found: fetchCard({ url: URL_OF, send, now, ...over }) };
}

test("a card is looked for beside a trailing /a2a", () => {
  for (const [url, base] of [
    ["https://a.example/a2a", "https://a.example"],
    ["https://a.example/a2a/", "https://a.example"],
    ["https://a.example/x/a2a", "https://a.example/x"],
    ["https://a.example/ma2a", "https://a.example/ma2a"],
    ["https://a.example", "https://a.example"],
    ["https://a.example/", "https://a.example"],
  ] as const)
    assert.equal(cardBase(url), base);
});

test("the card of today is asked for first, with the operator's headers beside ours", async () => {
  const { asked, found } = fetching(
    { [CURRENT]: json(currentCard(), { etag: '"v1"', "cache-control": "public, max-age=60" }) },
    { headers: { "A2A-Extensions": "urn:x", Accept: "text/html" } },
  );
  const fetched = await found;
  assert.equal(fetched.kind, "card");
  assert.ok(fetched.kind === "card");
  assert.equal(fetched.card.name, "Auditor");
  assert.deepEqual(
    [fetched.path, fetched.etag, fetched.freshUntil],
    ["/.well-known/agent-card.json", '"v1"', NOW + 60_000],
  );
  assert.deepEqual(asked, [
    { url: CURRENT, headers: { "a2a-extensions": "urn:x", accept: "application/json" } },
  ]);
});

test("the card of before is found where the other is not, or is none", async () => {
  for (const first of [undefined, json({ name: 7 }), () => Promise.reject(new Error("refused"))]) {
    const answers = { [LEGACY]: json(legacyCard()), ...(first && { [CURRENT]: first }) };
    const { asked, found } = fetching(answers);
    const fetched = await found;
    assert.ok(fetched.kind === "card");
    assert.equal(fetched.card.protocol, "0.3");
    assert.equal(asked.length, 2);
  }
});

test("both failures are told together", async () => {
  const { found } = fetching({
    [CURRENT]: () => Promise.reject(new Error("auditor.example.com: there was no connection")),
    [LEGACY]: () => new Response("<html>hunter2", { status: 200 }),
  });
  assert.deepEqual(await found, {
    kind: "failed",
    reason:
      "/.well-known/agent-card.json: auditor.example.com: there was no connection; /.well-known/agent.json: card: expected JSON",
  });
});

test("a card that is known is asked for on condition, where it was found", async () => {
  const unchanged = (headers: Record<string, string>) =>
    headers["if-none-match"] === '"v1"'
      ? new Response(null, { status: 304, headers: { "cache-control": "max-age=10" } })
      : new Response(JSON.stringify(currentCard()), { status: 200 });
  const known = { path: "/.well-known/agent-card.json", etag: '"v1"' };
  assert.deepEqual(await fetching({ [CURRENT]: unchanged }, { known }).found, {
    kind: "unchanged",
    path: known.path,
    etag: '"v1"',
    freshUntil: NOW + 10_000,
  });
  const elsewhere = fetching(
    { [CURRENT]: unchanged },
    { known: { ...known, path: "/.well-known/agent.json" } },
  );
  assert.equal((await elsewhere.found).kind, "card", "its name is no other path's");
  assert.equal(elsewhere.asked[0]?.headers["if-none-match"], undefined);
  const lying = fetching({ [CURRENT]: () => new Response(null, { status: 304 }) });
  assert.match(JSON.stringify(await lying.found), /agent-card\.json: expected status 200, got 304/);
});

test("a body is read only up to its bound", async () => {
  let pulled = 0;
  const endless = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          pulled++;
          controller.enqueue(new Uint8Array(65_536).fill(32));
        },
      }),
    );
  const { found } = fetching({ [CURRENT]: endless });
  assert.match(JSON.stringify(await found), /agent-card\.json: card: expected at most 262144 bytes/);
  assert.ok(pulled <= MAX_CARD_BYTES / 65_536 + 3);
});

test("a server that does not answer is given up once for both paths, and the caller may end it before", async () => {
  const silent = (_: string, { signal }: { signal: AbortSignal }) =>
    new Promise<Response>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  assert.deepEqual(await fetchCard({ url: URL_OF, send: silent, now, timeoutMs: 20 }), {
    kind: "failed",
    reason: "/.well-known/agent-card.json: no answer within 20 ms",
  });
  const ended = new AbortController();
  const found = fetchCard({ url: URL_OF, send: silent, now, signal: ended.signal });
  ended.abort(new Error("enough"));
  await assert.rejects(found, /enough/);
});

test("how long a card holds", () => {
  const secondsOf = (headers: Record<string, string>) =>
    (validatorsOf(new Headers(headers), NOW).freshUntil - NOW) / 1_000;
  for (const [headers, expected] of [
    [{}, 0],
    [{ "cache-control": "max-age=60" }, 60],
    [{ "cache-control": 'Public, Max-Age="60"' }, 60],
    [{ "cache-control": "max-age=60", age: "20" }, 40],
    [{ "cache-control": "max-age=60", age: "90" }, 0],
    [{ "cache-control": "max-age=60, no-cache" }, 0],
    [{ "cache-control": "no-store,max-age=60" }, 0],
    [{ "cache-control": "max-age=-1" }, 0],
    [{ "cache-control": "s-maxage=60" }, 0],
    [{ "cache-control": `max-age=${MAX_FRESH_SEC}` }, MAX_FRESH_SEC],
    [{ "cache-control": `max-age=${MAX_FRESH_SEC + 1}` }, MAX_FRESH_SEC],
    [{ "cache-control": "max-age=99999999999999999999999" }, MAX_FRESH_SEC],
  ] as const)
    assert.equal(secondsOf(headers), expected, JSON.stringify(headers));
  const etagOf = (etag: string) => validatorsOf(new Headers({ etag }), NOW).etag;
  assert.deepEqual(['"a"', 'W/"a"', "a", '"a', `"${"a".repeat(254)}"`, `"${"a".repeat(255)}"`].map(etagOf), [
    '"a"',
    'W/"a"',
    undefined,
    undefined,
    `"${"a".repeat(254)}"`,
    undefined,
  ]);
  const visible = fc.stringMatching(/^[\x21-\x7E]{0,40}$/);
  fc.assert(
    fc.property(visible, visible, visible, (control, age, etag) => {
      const { freshUntil } = validatorsOf(new Headers({ "cache-control": control, age, etag }), NOW);
      assert.ok(freshUntil >= NOW && freshUntil <= NOW + MAX_FRESH_SEC * 1_000);
    }),
  );
});
