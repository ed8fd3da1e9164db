import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { exchange } from "../../shared/http/connection.ts";
import {
  allowList,
  authorization,
  checkUrl,
  guardedFetch,
  NOTHING_ALLOWED,
} from "../../shared/http/index.ts";
import { MAX_REDIRECTS } from "../../shared/http/limits.ts";
import { checkCrossing, checkRedirect } from "../../shared/http/redirects.ts";
import { refused, SECRET } from "./support/refused.ts";
import { serve } from "./support/servers.ts";

/** A server that leads from `/?to=PLACE&status=STATUS` to the place, and else answers. */
const leading = (t: TestContext, host = "127.0.0.1") =>
  serve(
    t,
    ({ url }, response) => {
      const { searchParams } = new URL(url ?? "", "http://x");
      const to = searchParams.get("to");
      if (to === null) return void response.end("here");
      response.writeHead(Number(searchParams.get("status") ?? 302), { location: to }).end(SECRET);
    },
    { host },
  );
const from = (origin: string, to: string, status = 302) =>
  `${origin}/?${new URLSearchParams({ to, status: String(status) })}`;

test("a redirect is followed, and the answer says where it came from", async (t) => {
  const server = await leading(t);
  const fetch = guardedFetch({ allow: allowList([server.origin]) });
  for (const status of [301, 302, 303, 307, 308]) {
    const answer = await fetch(from(server.origin, "/next?x#y", status));
    assert.equal(await answer.text(), "here");
    assert.deepEqual([answer.url, answer.redirected], [`${server.origin}/next?x`, true]);
  }
  for (const status of [300, 304])
    assert.equal((await fetch(from(server.origin, "/next", status))).status, status);
});

test("a redirect to what is not public is refused, however it is spelled", async (t) => {
  const server = await leading(t);
  const fetch = guardedFetch({ allow: allowList([server.origin]), resolve: async () => ["10.0.0.1"] });
  for (const to of [
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://169.254.169.254/latest/meta-data",
    "https://[64:ff9b::a00:1]/",
    "https://private.example/",
    "//10.0.0.1/",
  ])
    await assert.rejects(
      fetch(from(server.origin, to.startsWith("//") ? `https:${to}` : to)),
      refused("private_address", { sent: true }),
      to,
    );
  for (const to of [
    "http://127.0.0.1:9001/2018-06-01/runtime/invocation/next",
    "http://169.254.170.2/",
    "file:///etc/passwd",
    "data:text/plain,x",
    `https://${SECRET}@a.example/`,
    "https://a.example:22/",
    "//127.0.0.1:1/",
  ])
    await assert.rejects(fetch(from(server.origin, to)), refused("not_allowed", { sent: true }), to);
  await assert.rejects(fetch(from(server.origin, `https://[${SECRET}`)), refused("redirect", { sent: true }));
});

test("three redirects are followed, and one more is not; a loop ends so too", async (t) => {
  const server = await leading(t);
  const fetch = guardedFetch({ allow: allowList([server.origin]) });
  const chain = (length: number) =>
    Array.from({ length }).reduce<string>((to) => from(server.origin, to), `${server.origin}/end`);
  assert.equal(await (await fetch(chain(MAX_REDIRECTS))).text(), "here");
  server.seen.length = 0;
  await assert.rejects(fetch(chain(MAX_REDIRECTS + 1)), refused("redirect", { sent: true }));
  assert.equal(server.seen.length, MAX_REDIRECTS + 1);

  const loop = await serve(t, (_, response) => response.writeHead(302, { location: "/" }).end());
  const looping = guardedFetch({ allow: allowList([loop.origin]) });
  await assert.rejects(looping(loop.origin), refused("redirect"));
  assert.equal(loop.seen.length, MAX_REDIRECTS + 1);
});

test("fetch's own words for redirects are kept to", async (t) => {
  const server = await leading(t);
  const fetch = guardedFetch({ allow: allowList([server.origin]) });
  const answer = await fetch(from(server.origin, "/next"), { redirect: "manual" });
  assert.deepEqual([answer.status, answer.headers.get("location")], [302, "/next"]);
  await assert.rejects(fetch(from(server.origin, "/next"), { redirect: "error" }), refused("redirect"));
});

test("another origin is told nothing of who we are, nor is the first one after it", async (t) => {
  const [home, other] = [await leading(t), await leading(t, "127.0.0.2")];
  const fetch = guardedFetch({
    allow: allowList([home.origin, other.origin]),
    authorization: authorization(home.origin, { scheme: "apiKey", key: SECRET }),
  });
  const headers = {
    accept: "application/json",
    authorization: `Basic ${SECRET}`,
    cookie: SECRET,
    "x-any": SECRET,
    "a2a-version": "1.0",
  };
  const back = from(other.origin, from(home.origin, "/end"));
  await (await fetch(from(home.origin, back), { headers })).text();
  const [first, again, last] = home.seen;
  const [away] = other.seen;
  assert.deepEqual(
    [first?.headers["x-api-key"], first?.headers["x-any"], first?.headers.cookie],
    [SECRET, SECRET, SECRET],
  );
  for (const seen of [away, again, last]) {
    assert.ok(!JSON.stringify(seen?.headers).includes(SECRET));
    assert.deepEqual([seen?.headers.accept, seen?.headers["a2a-version"]], ["application/json", "1.0"]);
  }
  const within = await leading(t);
  const staying = guardedFetch({
    allow: allowList([within.origin]),
    authorization: authorization(within.origin, { scheme: "apiKey", key: SECRET }),
  });
  await (await staying(from(within.origin, "/end"))).text();
  assert.deepEqual(
    within.seen.map((seen) => seen.headers["x-api-key"]),
    [SECRET, SECRET],
  );
});

test("a signed request is signed anew for each hop", async (t) => {
  const server = await leading(t);
  const secret = SECRET.repeat(8);
  const fetch = guardedFetch({
    allow: allowList([server.origin]),
    authorization: authorization(server.origin, { scheme: "hmac", keyId: "k", secret }),
  });
  await (await fetch(from(server.origin, "/end"))).text();
  assert.equal(new Set(server.seen.map((seen) => seen.headers.signature)).size, 2);
});

test("a request with a body stays within its origin, and stays what it is", async (t) => {
  const [home, other] = [await leading(t), await leading(t, "127.0.0.2")];
  const fetch = guardedFetch({ allow: allowList([home.origin, other.origin]) });
  const post = { method: "POST", body: SECRET };
  for (const status of [307, 308]) {
    home.seen.length = 0;
    assert.equal(await (await fetch(from(home.origin, "/end", status), post)).text(), "here");
    assert.deepEqual(
      home.seen.map(({ method, body }) => [method, body]),
      [
        ["POST", SECRET],
        ["POST", SECRET],
      ],
    );
    await assert.rejects(fetch(from(home.origin, other.origin, status), post), refused("redirect"));
  }
  for (const status of [301, 302, 303])
    await assert.rejects(fetch(from(home.origin, "/end", status), post), refused("redirect", { sent: true }));
  assert.equal(other.seen.length, 0);
});

test("nobody leads from https to http, or from outside to what the list allows inside", () => {
  const allow = allowList(["http://a.example", "10.0.0.0/8"]);
  const at = (url: string) => checkUrl(url, allow);
  const [secure, plain] = [at("https://a.example"), at("http://a.example")];
  assert.throws(() => checkRedirect(secure, plain, 302, "GET"), refused("redirect"));
  checkRedirect(plain, secure, 302, "GET");
  checkRedirect(plain, plain, 302, "GET");

  const place = (inside: boolean) => ({
    ...checkUrl("https://b.example", NOTHING_ALLOWED),
    addresses: [],
    inside,
  });
  assert.throws(() => checkCrossing(place(false), place(true)), refused("redirect"));
  checkCrossing(place(true), place(true));
  checkCrossing(place(true), place(false));
  checkCrossing(place(false), place(false));
});

test("who is asked on the internet does not lead us inside, and does within the internet", async (t) => {
  const server = await leading(t);
  const inside = await leading(t, "127.0.0.2");
  // Only the last of the way is another: no test asks the internet.
  const over: typeof exchange = (place, message, options) => {
    assert.ok(place.inside || place.addresses.includes("1.1.1.1"));
    const url = new URL(place.url.pathname + place.url.search, place.inside ? inside.origin : server.origin);
    return exchange({ ...place, url, addresses: [url.hostname] }, message, options);
  };
  const resolve = async (host: string) => [host === "inside.example" ? "127.0.0.2" : "1.1.1.1"];
  const fetch = guardedFetch({ allow: allowList(["inside.example"]), resolve }, over);
  const outside = "https://outside.example";
  assert.equal(await (await fetch(from(outside, "https://other.example/"))).text(), "here");
  assert.equal(await (await fetch("https://inside.example/")).text(), "here");
  assert.equal(await (await fetch(from("https://inside.example", outside))).text(), "here");
  inside.seen.length = 0;
  await assert.rejects(
    fetch(from(outside, "https://inside.example/")),
    refused("redirect", { host: "outside.example", sent: true }),
  );
  await assert.rejects(fetch(from(outside, "http://other.example/")), refused("not_allowed"));
  assert.equal(inside.seen.length, 0);
});
