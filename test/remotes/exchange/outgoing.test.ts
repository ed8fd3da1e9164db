import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { RequestCredentialError } from "../../../shared/http/index.ts";
import { type NonceMemory, verifyRequest } from "../../../shared/http/verify.ts";
import { remoteFetch } from "../../../shared/remotes/exchange/index.ts";
import { blast, extension, hitl, legacyServer, type SeenRequest, streamingServer } from "../servers/index.ts";
import { allOf, assertFails, message, never, TRACE, talk } from "./support.ts";

const current = await streamingServer();
const legacy = await legacyServer();
after(() => Promise.all([current.close(), legacy.close()]));

const lastCall = (requests: readonly SeenRequest[]) =>
  requests.findLast(({ method }) => method === "POST") ?? assert.fail("nothing was asked");

test("a message says who asks, by which trace, and for which skill, in its headers and in both metadata", async () => {
  for (const server of [current, legacy]) {
    const exchange = await talk(server, { remote: { headers: { "X-Team": "audit" } } });
    const sent = message("complete", { skill: "license_scan" });
    await allOf(await exchange.start(sent, never));
    const { headers } = lastCall(server.requests);
    assert.equal(headers["x-correlation-id"], TRACE.correlationId);
    assert.equal(headers["x-parent-id"], TRACE.parentId);
    assert.equal(headers.traceparent, TRACE.traceparent);
    assert.equal(headers["a2a-version"], exchange.protocol);
    assert.equal(headers["x-team"], "audit");
    const executed = server.executions.at(-1);
    const trace = {
      traceId: TRACE.correlationId,
      spanId: "b7ad6b7169203331",
      callerAgent: TRACE.caller,
      skill: "license_scan",
      hops: TRACE.hops,
    };
    assert.deepEqual(executed?.metadata, { skillHint: "license_scan", "a2a.trace": trace });
    assert.deepEqual(executed?.requestMetadata, {
      skillHint: "license_scan",
      correlationId: TRACE.correlationId,
      parentId: TRACE.parentId,
      "a2a.trace": trace,
    });
    assert.equal(executed?.messageId, sent.messageId);
    assert.equal(executed?.contextId, sent.contextId);
  }
});

test("nothing that a requester writes gets into metadata or headers", async () => {
  const exchange = await talk(current);
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(
        fc.oneof(fc.string(), fc.constantFrom("skillHint", "a2a.trace", "x-hitl-mode")),
        fc.jsonValue(),
      ),
      async (payload) => {
        const parts = [
          { text: "complete", metadata: { ...payload, mimeType: "text/plain" } },
          { data: payload, metadata: payload },
        ];
        await allOf(await exchange.start({ ...message(""), parts }, never));
        const executed = current.executions.at(-1);
        assert.deepEqual(Object.keys(executed?.metadata ?? {}), ["skillHint", "a2a.trace"]);
        assert.deepEqual(Object.keys(executed?.requestMetadata ?? {}), [
          "skillHint",
          "correlationId",
          "parentId",
          "a2a.trace",
        ]);
        assert.deepEqual(executed?.message.parts[0]?.metadata, { mimeType: "text/plain" });
      },
    ),
    { numRuns: 10 },
  );
});

test("parts of each kind arrive as they are", async () => {
  for (const server of [current, legacy]) {
    const exchange = await talk(server);
    const parts = [
      { text: "complete" },
      { raw: Buffer.from("bytes").toString("base64"), mediaType: "image/png", filename: "a.png" },
      { url: "https://example.com/x", mediaType: "text/html" },
      { data: { a: [1, null] } },
    ];
    await allOf(await exchange.start({ ...message(""), parts }, never));
    const arrived = server.executions.at(-1)?.message.parts ?? [];
    assert.deepEqual(
      arrived.map(({ content }) => content?.$case),
      ["text", "raw", "url", "data"],
    );
    assert.deepEqual(Buffer.from(arrived[1]?.content?.value), Buffer.from("bytes"));
    assert.deepEqual(
      arrived.map(({ mediaType, filename }) => [mediaType, filename]),
      [
        ["", ""],
        ["image/png", "a.png"],
        ["text/html", ""],
        ["", ""],
      ],
    );
    assert.deepEqual(arrived[3]?.content?.value, { a: [1, null] });
  }
  const exchange = await talk(current);
  await assertFails(exchange.start(message("", { parts: [] }), never), "invalid", { sent: false });
});

test("extensions of the card that we understand are named, and told what they ask for", async () => {
  const server = await streamingServer({
    card: {
      skills: ["deploy"],
      extensions: [
        hitl({ deploy: { mode: "veto", vetoTtlMs: 120_000 } }),
        blast({ deploy: { radius: "public" } }),
        extension("cost-v1"),
        extension("confidence-v1"),
        extension("worldstate-delta-v1"),
        { uri: "https://example.com/unknown" },
      ],
    },
  });
  const exchange = await talk(server, {
    remote: { headers: { "A2A-Extensions": "https://example.com/own" } },
  });
  await allOf(await exchange.start(message("complete", { skill: "deploy" }), never));
  const base = "https://proto-labs.ai/a2a/ext/";
  assert.deepEqual(lastCall(server.requests).headers["a2a-extensions"]?.split(", "), [
    "https://example.com/own",
    ...["hitl-mode-v1", "blast-v1", "cost-v1", "confidence-v1", "worldstate-delta-v1"].map((of) => base + of),
  ]);
  const { "a2a.trace": _, ...told } = server.executions.at(-1)?.requestMetadata ?? {};
  assert.deepEqual(told, {
    skillHint: "deploy",
    correlationId: TRACE.correlationId,
    parentId: TRACE.parentId,
    "x-cost-skill": "deploy",
    "x-confidence-skill": "deploy",
    "x-effect-domain-skill": "deploy",
    "x-blast-radius": "public",
    "x-hitl-mode": "veto",
    "x-hitl-veto-ttl-ms": 120_000,
  });
  const held = { mode: "gated", radius: "fleet" } as const;
  await allOf(await exchange.start(message("complete", { skill: "deploy", held }), never));
  const { requestMetadata } = server.executions.at(-1) ?? assert.fail();
  assert.equal(requestMetadata["x-hitl-mode"], "gated", "how it was held, not what the card declares");
  assert.equal(requestMetadata["x-blast-radius"], "fleet");
  assert.ok(!("x-hitl-veto-ttl-ms" in requestMetadata));
  await server.close();
});

test("an agent that requires an extension is asked if we, or the operator's headers, have it", async () => {
  const uri = "https://example.com/must";
  const server = await streamingServer({ card: { extensions: [{ uri, required: true }] } });
  const without = await talk(server);
  await assertFails(without.start(message("complete"), never), "unsupported", { sent: false });
  assert.equal(server.executions.length, 0);
  const having = await talk(server, { remote: { headers: { "a2a-extensions": uri } } });
  await allOf(await having.start(message("complete"), never));
  await server.setCard({ extensions: [extension("trace-v1", true)] });
  await allOf(await (await talk(server)).start(message("complete"), never));
  assert.equal(server.executions.length, 2);
  await server.close();
});

const KEY = "0123456789abcdef0123456789abcdef";
const nonces: NonceMemory = { remember: async () => true };

test("who we are is told by each scheme, and a request without it is refused by the agent", async () => {
  let authorize = async (_: SeenRequest) => false;
  const server = await streamingServer({ authorize: (request) => authorize(request) });
  const asked = async (scheme: "apiKey" | "bearer" | "hmac", credential: string) => {
    const exchange = await talk(server, {
      remote: { auth: { scheme, credentials: "env:X" } },
      credential,
    });
    await allOf(await exchange.start(message("complete"), never));
  };
  authorize = async ({ headers }) => headers["x-api-key"] === "key-1";
  await asked("apiKey", " key-1\n");
  authorize = async ({ headers }) => headers.authorization === "Bearer token-1";
  await asked("bearer", "token-1");
  authorize = async ({ method, path, headers, body }) => {
    const url = new URL(path, server.origin);
    const request = { method, url, body: Buffer.from(body), headers: new Headers(headers) };
    const keyOf = (id: string) => (id === "acme-2026" ? Buffer.from(KEY) : undefined);
    return (await verifyRequest(request, { keyOf, nonces })).keyId === "acme-2026";
  };
  await asked("hmac", `acme-2026 ${KEY}\n`);
  assert.equal(server.executions.length, 3);

  authorize = async () => false;
  const error = await assertFails(asked("bearer", "SECRET"), "refused", { sent: false });
  assert.equal(error.status, 401);
  assert.equal(error.retryable, false);
  await server.close();
});

test("nothing is sent as nobody's in place of a credential that is missing or no good", () => {
  const url = "https://auditor.example.com/a2a";
  for (const [scheme, credential] of [
    ["bearer", undefined],
    ["apiKey", ""],
    ["apiKey", " \n"],
    ["bearer", "SECRET two"],
    ["hmac", KEY],
    ["hmac", `id SECRET${KEY} more`],
    ["hmac", "id SECRET-too-short"],
  ] as const)
    assert.throws(
      () => remoteFetch({ url, auth: { scheme, credentials: "env:X" } }, credential),
      (error) => error instanceof RequestCredentialError && !error.message.includes("SECRET"),
    );
});

test("the agent is asked at the operator's URL, whatever address its card names, and by a card of another not at all", async () => {
  const exchange = await talk(current);
  await allOf(await exchange.start(message("complete"), never));
  assert.equal(lastCall(current.requests).path, "/a2a");
  // The card's is http://127.0.0.1:9/elsewhere, which nothing allows.
  const elsewhere = await talk({ url: `${current.origin}/other`, origin: current.origin }, { card: false });
  const error = await assertFails(elsewhere.start(message("complete"), never), "invalid", { sent: false });
  assert.equal(error.status, 404);
});
