import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { ROOT } from "../../infra/bundle.ts";
import { allowList, authorization, guardedFetch, requireOk } from "../../shared/http/index.ts";
import { MAX_REQUEST_BYTES } from "../../shared/http/limits.ts";
import { certificateFor } from "./support/certificate.ts";
import { refused, SECRET } from "./support/refused.ts";
import { serve, serveRaw } from "./support/servers.ts";

const certificate = certificateFor("agents.test");

test("it asks as fetch does: method, headers and body go, the connection's own headers are its own", async (t) => {
  const server = await serve(t, (_, response) => response.writeHead(201, "Made", { "x-a": "1" }).end("done"));
  const fetch = guardedFetch({ allow: allowList([server.origin]) });
  const answer = await fetch(`${server.origin}/a2a?x=1#part`, {
    method: "post",
    body: '{"a":1}',
    headers: {
      "content-type": "application/json",
      "X-Mine": "yes",
      host: "other.example",
      connection: "close, x",
    },
  });
  const { status, statusText, url, redirected } = answer;
  assert.deepEqual(
    { status, statusText, url, redirected },
    { status: 201, statusText: "Made", url: `${server.origin}/a2a?x=1`, redirected: false },
  );
  assert.equal(answer.headers.get("x-a"), "1");
  assert.equal(await answer.text(), "done");
  await fetch(new Request(server.origin, { method: "PUT", body: "x" })).then((got) => got.text());
  const [posted, put] = server.seen;
  assert.equal(posted?.method, "POST");
  assert.equal(posted?.path, "/a2a?x=1");
  assert.equal(posted?.body, '{"a":1}');
  assert.deepEqual(posted?.headers, {
    accept: "*/*",
    "accept-encoding": "gzip, deflate, br",
    connection: "close",
    "content-length": "7",
    "content-type": "application/json",
    host: `127.0.0.1:${server.port}`,
    "user-agent": "sluice",
    "x-mine": "yes",
  });
  assert.deepEqual([put?.method, put?.body], ["PUT", "x"]);
});

test("a fetch is wanted and this is one: the type says so", () => {
  const fetchImpl: typeof fetch = guardedFetch();
  assert.equal(typeof fetchImpl, "function");
});

test("the connection goes to the address that was checked, whatever the name says afterwards", async (t) => {
  const first = await serve(t, (_, response) => response.end("first"));
  const other = await serve(t, (_, response) => response.end("other"), {
    host: "127.0.0.2",
    port: first.port,
  });
  const answers = [["127.0.0.1"], ["127.0.0.2"], ["169.254.169.254"], ["1.1.1.1", "::ffff:127.0.0.1"]];
  const origin = `http://rebind.test:${first.port}`;
  const fetch = guardedFetch({ allow: allowList([origin]), resolve: async () => answers.shift() ?? [] });
  const bodies = [await fetch(origin), await fetch(origin)].map((answer) => answer.text());
  assert.deepEqual(await Promise.all(bodies), ["first", "other"]);
  assert.equal(answers.length, 2, "each request has asked once");
  await assert.rejects(fetch(origin), refused("private_address", { sent: false }));
  await assert.rejects(fetch(origin), refused("private_address", { sent: false }));
  await assert.rejects(fetch(origin), refused("unreachable", { sent: false }));
  assert.deepEqual([first.seen.length, other.seen.length], [1, 1]);
  assert.equal(first.seen[0]?.headers.host, `rebind.test:${first.port}`);
});

test("when an address does not answer, the next that was checked is tried", async (t) => {
  const server = await serve(t, (_, response) => response.end("here"));
  const origin = `http://two.test:${server.port}`;
  const resolve = async () => ["127.0.0.3", "127.0.0.1"];
  const answer = await guardedFetch({ allow: allowList([origin]), resolve })(origin);
  assert.equal(await answer.text(), "here");
});

test("over TLS the name is told and its certificate checked, though the address is connected to", async (t) => {
  if (certificate === undefined) return t.skip("openssl makes no certificate here");
  const server = await serve(t, (_, response) => response.end("hello"), { tls: certificate });
  const allow = allowList([
    server.origin,
    `https://other.test:${server.port}`,
    `https://127.0.0.1:${server.port}`,
  ]);
  const resolve = async () => ["127.0.0.1"];
  const fetch = guardedFetch({ allow, resolve, ca: certificate.cert });
  assert.equal(await (await fetch(server.origin)).text(), "hello");
  const [seen] = server.seen;
  assert.equal(seen?.servername, "agents.test");
  assert.equal(seen?.headers.host, `agents.test:${server.port}`);

  const mismatch = refused("unreachable", { code: "ERR_TLS_CERT_ALTNAME_INVALID", sent: false });
  await assert.rejects(fetch(`https://other.test:${server.port}/${SECRET}`), mismatch);
  await assert.rejects(fetch(`https://127.0.0.1:${server.port}/`), mismatch);
  const wary = guardedFetch({ allow, resolve });
  await assert.rejects(wary(server.origin), refused("unreachable", { code: "DEPTH_ZERO_SELF_SIGNED_CERT" }));
  assert.equal(server.seen.length, 1);
});

test("neither a proxy of the environment nor a switch that trusts everybody changes anything", async (t) => {
  if (certificate === undefined) return t.skip("openssl makes no certificate here");
  const server = await serve(t, (_, response) => response.end("hello"), { tls: certificate });
  const plain = await serve(t, (_, response) => response.end("hello"));
  const proxy = await serve(t, (_, response) => response.end("proxy"));
  const script = `
    import { allowList, guardedFetch } from ${JSON.stringify(pathToFileURL(join(ROOT, "shared/http/index.ts")).href)};
    const fetch = guardedFetch({
      allow: allowList(${JSON.stringify([server.origin, plain.origin])}),
      resolve: async () => ["127.0.0.1"],
    });
    console.log(await (await fetch(${JSON.stringify(plain.origin)})).text());
    await fetch(${JSON.stringify(server.origin)}).catch((error) => console.log(error.reason, error.code));`;
  const env = {
    ...process.env,
    NODE_USE_ENV_PROXY: "1",
    HTTP_PROXY: proxy.origin,
    HTTPS_PROXY: proxy.origin,
    NODE_TLS_REJECT_UNAUTHORIZED: "0",
  };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
    env,
  });
  assert.equal(stdout, "hello\nunreachable DEPTH_ZERO_SELF_SIGNED_CERT\n");
  assert.equal(proxy.seen.length, 0);
});

test("credentials go to their origin, over whatever a caller has set, and a request to another is refused", async (t) => {
  const [home, other] = [await serve(t, (_, response) => response.end()), await serve(t, (_, r) => r.end())];
  const fetch = guardedFetch({
    allow: allowList([home.origin, other.origin]),
    authorization: authorization(home.origin, { scheme: "bearer", token: `${SECRET}\n` }),
  });
  await fetch(home.origin, { headers: { authorization: "Bearer mine" } });
  assert.equal(home.seen[0]?.headers.authorization, `Bearer ${SECRET}`);
  await assert.rejects(fetch(other.origin), refused("not_allowed", { sent: false }));
  assert.equal(other.seen.length, 0);
});

test("what HTTP does not allow is refused without being quoted", async () => {
  const fetch = guardedFetch({ resolve: async () => ["1.1.1.1"] });
  const url = "https://a.example/";
  for (const init of [
    { headers: { "x-key": `${SECRET}\r\nx: y` } },
    { headers: { [`${SECRET} x`]: "y" } },
    { method: `${SECRET} X` },
    { method: "CONNECT" },
    { body: SECRET },
  ])
    await assert.rejects(fetch(url, init), refused("not_allowed", { sent: false }));
});

test("a request's body has a bound", async (t) => {
  const server = await serve(t, (_, response) => response.end());
  const fetch = guardedFetch({ allow: allowList([server.origin]) });
  const body = new Uint8Array(MAX_REQUEST_BYTES + 1);
  await fetch(server.origin, { method: "POST", body: body.subarray(1) });
  assert.equal(server.seen[0]?.headers["content-length"], String(MAX_REQUEST_BYTES));
  await assert.rejects(fetch(server.origin, { method: "POST", body }), refused("too_large", { sent: false }));
});

test("what cannot be reached says so by a code, and that nothing was sent", async (t) => {
  const server = await serve(t, () => {});
  const closed = await serve(t, () => {}, { host: "127.0.0.4" });
  const origin = `http://127.0.0.5:${closed.port}`;
  const fetch = guardedFetch({ allow: allowList([origin, "gone.example"]) });
  await assert.rejects(
    fetch(`${origin}/${SECRET}?${SECRET}`, { method: "POST", body: SECRET, headers: { "x-key": SECRET } }),
    refused("unreachable", { code: "ECONNREFUSED", host: `127.0.0.5:${closed.port}`, sent: false }),
  );
  const resolve = async () => Promise.reject(Object.assign(new Error(SECRET), { code: "ENOTFOUND" }));
  await assert.rejects(
    guardedFetch({ resolve })("https://gone.example/"),
    refused("unreachable", { code: "ENOTFOUND", sent: false }),
  );
  assert.equal(server.seen.length, 0);
});

test("what breaks after it was connected to may have seen the request", async (t) => {
  const fetchOf = (origin: string) => guardedFetch({ allow: allowList([origin]) })(origin);
  const speak = [
    "",
    `hello ${SECRET}\r\n\r\n`,
    `HTTP/1.1 200 OK\r\nx y: ${SECRET}\r\n\r\n`,
    `HTTP/1.1 999 ${SECRET}\r\ncontent-length: 0\r\n\r\n`,
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
  ];
  for (const words of speak) {
    const server = await serveRaw(t, (socket) => socket.end(words));
    await assert.rejects(fetchOf(server.origin), refused("broken", { sent: true }), words);
  }
});

test("a caller ends a request by its own signal, with its own reason", async (t) => {
  const server = await serve(t, (request, response) => {
    if (request.url === "/slow") controller.abort(reason);
    else response.write("begun");
  });
  const fetch = guardedFetch({ allow: allowList([server.origin]) });
  let controller = new AbortController();
  const reason = new Error("no longer wanted");
  await assert.rejects(fetch(`${server.origin}/slow`, { signal: controller.signal }), (e) => e === reason);
  await assert.rejects(fetch(server.origin, { signal: controller.signal }), (e) => e === reason);
  controller = new AbortController();
  const answer = await fetch(new Request(server.origin, { signal: controller.signal }));
  controller.abort(reason);
  await assert.rejects(answer.text(), (error) => error instanceof Error);
});

test("an answer without success is an error when one asks for success", async (t) => {
  const server = await serve(t, ({ url }, response) => response.writeHead(Number(url?.slice(1))).end(SECRET));
  const fetch = guardedFetch({ allow: allowList([server.origin]), accepts: ["application/json"] });
  for (const status of [304, 400, 404, 500, 503])
    await assert.rejects(
      requireOk(await fetch(`${server.origin}/${status}`)),
      refused("status", { status, host: `127.0.0.1:${server.port}`, sent: true }),
    );
  const answer = await fetch(`${server.origin}/204`);
  assert.equal(await requireOk(answer), answer);
});
