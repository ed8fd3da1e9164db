import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { createSigner, createVerifier, httpbis } from "http-message-signatures";
import * as z from "zod";
import { signRequest } from "../../shared/http/sign.ts";
import { COMPONENTS, signatureBase, TAG } from "../../shared/http/signature.ts";
import {
  MAX_SIGNATURE_HEADER,
  MAX_SKEW_MS,
  SignatureError,
  type SignatureProblem,
  type SignedRequest,
  verifyRequest,
} from "../../shared/http/verify.ts";
import { DOCS } from "../docs/pages.ts";
import {
  isProblem,
  key,
  memory,
  NONCE,
  NOW,
  options,
  request,
  sign,
  signed,
  url,
} from "./support/signing.ts";

const vectors = z.array(
  z.object({
    method: z.string(),
    url: z.string(),
    body: z.string(),
    keyId: z.string(),
    secret: z.string(),
    created: z.int(),
    nonce: z.string(),
    base: z.array(z.string()),
    headers: z.record(z.string(), z.string()),
  }),
);

test("the vectors of the page are what is signed, and are believed", async () => {
  const page = readFileSync(join(DOCS, "hmac.md"), "utf8");
  const told = vectors.parse(JSON.parse(/```json\n(\[[^`]*)```/.exec(page)?.[1] ?? ""));
  assert.ok(told.length >= 2);
  for (const { method, url: at, body: text, keyId, secret, created, nonce, base, headers } of told) {
    const of = { method, url: new URL(at), body: new TextEncoder().encode(text) };
    const shared = new TextEncoder().encode(secret);
    const now = () => created * 1_000;
    assert.deepEqual(signRequest(of, { id: keyId, secret: shared }, { now, nonce: () => nonce }), headers);
    // As somebody would do it who has read the page alone.
    const mac = createHmac("sha256", secret).update(base.join("\n")).digest("base64");
    assert.equal(headers.signature, `sluice=:${mac}:`);
    const believed = await verifyRequest(
      { ...of, headers: new Headers(headers) },
      { keyOf: () => shared, nonces: memory(), now },
    );
    assert.deepEqual(believed, { keyId, created, nonce });
  }
});

test("the text that is signed is that of RFC 9421's own example with hmac-sha256 (B.2.5)", () => {
  const params = '("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"';
  const base = signatureBase(
    [
      ["date", "Tue, 20 Apr 2021 02:07:55 GMT"],
      ["@authority", "example.com"],
      ["content-type", "application/json"],
    ],
    params,
  );
  const shared = Buffer.from(
    "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==",
    "base64",
  );
  const mac = createHmac("sha256", shared).update(base).digest("base64");
  assert.equal(mac, "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=");
});

test("another implementation of RFC 9421 believes what is signed, and is believed", async () => {
  const secret = Buffer.from(key.secret);
  const ours = await httpbis.verifyMessage(
    {
      keyLookup: async () => ({ verify: createVerifier(secret, "hmac-sha256") }),
      requiredFields: [...COMPONENTS],
      notAfter: NOW / 1_000,
    },
    { method: request.method, url, headers: sign() },
  );
  assert.equal(ours, true);

  const { "content-digest": digest = "" } = sign();
  const theirs = await httpbis.signMessage(
    {
      key: createSigner(secret, "hmac-sha256", key.id),
      name: "other",
      fields: [...COMPONENTS].reverse(),
      params: ["tag", "alg", "keyid", "nonce", "created"],
      paramValues: { created: new Date(NOW), nonce: NONCE, tag: TAG },
    },
    { method: request.method, url, headers: { "content-digest": digest } },
  );
  const headers = z.record(z.string(), z.string()).parse(theirs.headers);
  await verifyRequest(signed(headers), options());
});

test("whatever is signed is believed once, and again not", async () => {
  const parts = fc.record({
    method: fc.constantFrom("GET", "POST", "DELETE"),
    url: fc.webUrl({ withQueryParameters: true, validSchemes: ["https"] }).map((text) => new URL(text)),
    body: fc.uint8Array(),
  });
  await fc.assert(
    fc.asyncProperty(parts, async (of) => {
      const headers = new Headers(signRequest(of, key));
      const { keyOf, nonces } = options();
      const { keyId } = await verifyRequest({ ...of, headers }, { keyOf, nonces });
      assert.equal(keyId, key.id);
      await assert.rejects(verifyRequest({ ...of, headers }, { keyOf, nonces }), isProblem("replayed"));
    }),
  );
});

test("a request that is another in anything that is signed is not believed, and its nonce is not remembered", async () => {
  const headers = sign();
  const { signature = "", "signature-input": input = "", "content-digest": digest = "" } = headers;
  const other = signRequest({ ...request, body: new Uint8Array([1]) }, key, {
    now: () => NOW,
    nonce: () => NONCE,
  });
  const changed: readonly (readonly [SignedRequest, SignatureProblem])[] = [
    [signed(headers, { method: "PUT" }), "mismatch"],
    [signed(headers, { url: new URL("https://other.example/a2a?stream=1&x=%2F") }), "mismatch"],
    [signed(headers, { url: new URL("https://agents.example:8443/a2a?stream=1&x=%2F") }), "mismatch"],
    [signed(headers, { url: new URL("https://agents.example/a2b?stream=1&x=%2F") }), "mismatch"],
    [signed(headers, { url: new URL("https://agents.example/a2a?stream=1&x=/") }), "mismatch"],
    [signed(headers, { url: new URL("https://agents.example/a2a") }), "mismatch"],
    [signed(headers, { body: new TextEncoder().encode('{"jsonrpc":"2.1"}') }), "digest"],
    [signed(headers, { body: new Uint8Array() }), "digest"],
    [signed({ ...headers, "content-digest": other["content-digest"] ?? "" }), "mismatch"],
    [
      signed({ ...headers, "content-digest": `${digest}, sha-256=:${Buffer.alloc(32).toString("base64")}:` }),
      "mismatch",
    ],
    [signed({ ...headers, signature: other.signature ?? "" }), "mismatch"],
    [
      signed({
        ...headers,
        "signature-input": input.replace(`created=${NOW / 1_000}`, `created=${NOW / 1_000 + 1}`),
      }),
      "mismatch",
    ],
    [signed({ ...headers, "signature-input": input.replace(NONCE, "BAECAwQFBgcICQoLDA0ODw") }), "mismatch"],
    [
      signed({
        ...headers,
        "signature-input": input.replace('"@method" "@authority"', '"@authority" "@method"'),
      }),
      "mismatch",
    ],
    [signed({ ...headers, "signature-input": input.replace(key.id, "acme-2027") }), "unknown_key"],
    [signed({ ...headers, signature: signature.replace("sluice", "other") }), "malformed"],
  ];
  for (const [of, problem] of changed) {
    const verifying = options();
    await assert.rejects(verifyRequest(of, verifying), isProblem(problem), JSON.stringify([...of.headers]));
    assert.equal(verifying.nonces.known.size, 0);
  }
});

test("what is missing or not of our profile is refused before a key is looked for", async () => {
  const headers = sign();
  const { signature = "", "signature-input": input = "" } = headers;
  const unsound: readonly (readonly [Record<string, string>, SignatureProblem])[] = [
    [{}, "missing"],
    [{ "signature-input": input }, "missing"],
    [{ signature }, "missing"],
    [{ ...headers, "signature-input": input.replace(TAG, "other") }, "missing"],
    [{ ...headers, "signature-input": `${input}, b=${input.slice(7)}` }, "malformed"],
    [{ ...headers, "signature-input": `sluice=1;tag="${TAG}"` }, "malformed"],
    [{ ...headers, "signature-input": "(" }, "malformed"],
    [{ ...headers, "signature-input": input.replace(' "content-digest"', "") }, "malformed"],
    [{ ...headers, "signature-input": input.replace('"@query"', '"@query" "@query"') }, "malformed"],
    [{ ...headers, "signature-input": input.replace('"@query"', '"@query" "date"') }, "malformed"],
    [{ ...headers, "signature-input": input.replace('"@method"', '"@method";req') }, "malformed"],
    [{ ...headers, "signature-input": input.replace("hmac-sha256", "none") }, "malformed"],
    [{ ...headers, "signature-input": input.replace(';alg="hmac-sha256"', "") }, "malformed"],
    [{ ...headers, "signature-input": input.replace(/;nonce="[^"]*"/, "") }, "malformed"],
    [{ ...headers, "signature-input": input.replace(/;created=\d+/, "") }, "malformed"],
    [{ ...headers, "signature-input": input.replace(/created=\d+/, "created=1.5") }, "malformed"],
    [{ ...headers, "signature-input": input.replace(/created=\d+/, "created=-1") }, "malformed"],
    [{ ...headers, "signature-input": input.replace(/created=(\d+)/, 'created="$1"') }, "malformed"],
    [{ ...headers, "signature-input": `${input};expires=1` }, "malformed"],
    [{ ...headers, signature: signature.slice(0, -2) }, "malformed"],
    [{ ...headers, signature: "sluice=:AAAA:" }, "malformed"],
    [{ ...headers, signature: 'sluice="x"' }, "malformed"],
  ];
  const keyOf = () => assert.fail("no key is looked for");
  for (const [given, problem] of unsound)
    await assert.rejects(
      verifyRequest(signed(given), { ...options(), keyOf }),
      isProblem(problem),
      JSON.stringify(given),
    );
  const { "content-digest": _, ...undigested } = headers;
  await assert.rejects(verifyRequest(signed(undigested), options()), isProblem("missing"));
});

test("any headers are a signature or a problem", async () => {
  const wild = fc.oneof(
    fc.string({ unit: "grapheme-ascii" }),
    fc.stringMatching(
      /^[a-z]{1,3}=\("@[a-z]{1,6}"\)(;[a-z]{1,4}=("[a-z]{0,3}"|[0-9]{1,3}|:[A-Za-z0-9+/=]{0,8}:|\?1|@1|%"%[0-9a-f]{2}")){0,4}$/,
    ),
    fc
      .constantFrom(...Object.values(sign()))
      .chain((text) => fc.nat(text.length).map((at) => `${text.slice(0, at)}${text.slice(at + 1)}`)),
  );
  await fc.assert(
    fc.asyncProperty(wild, wild, wild, async (input, signature, digest) => {
      const headers = new Headers({ "signature-input": input, signature, "content-digest": digest });
      await assert.rejects(verifyRequest({ ...request, headers }, options()), SignatureError);
    }),
    { numRuns: 500 },
  );
});

test("a request is believed for five minutes, on either side of the clock", async () => {
  for (const away of [-MAX_SKEW_MS, 0, MAX_SKEW_MS]) await verifyRequest(signed(sign()), options(NOW + away));
  for (const away of [-MAX_SKEW_MS - 1, MAX_SKEW_MS + 1])
    await assert.rejects(verifyRequest(signed(sign()), options(NOW + away)), isProblem("stale"));
});

test("a nonce is remembered until its request is stale, and for its key alone", async () => {
  const { keyOf, nonces, now } = options();
  await verifyRequest(signed(sign()), { keyOf, nonces, now });
  assert.deepEqual([...nonces.known], [[`${key.id} ${NONCE}`, NOW + MAX_SKEW_MS]]);
  const other = { ...key, id: "other" };
  const headers = signRequest(request, other, { now, nonce: () => NONCE });
  await verifyRequest(signed(headers), { keyOf: () => key.secret, nonces, now });
});

test("each field has a bound", async () => {
  const accepts = async (id: string, nonce: string) => {
    const headers = signRequest(request, { ...key, id }, { now: () => NOW, nonce: () => nonce });
    return verifyRequest(signed(headers), { ...options(), keyOf: () => key.secret });
  };
  for (const length of [22, 128]) await accepts(key.id, "n".repeat(length));
  for (const length of [21, 129])
    await assert.rejects(accepts(key.id, "n".repeat(length)), isProblem("malformed"));
  for (const nonce of [`${NONCE}=`, `${NONCE} `])
    await assert.rejects(accepts(key.id, nonce), isProblem("malformed"));
  await accepts("i".repeat(128), NONCE);
  for (const id of ["", "i".repeat(129), "a b", 'a"b', "ä"])
    assert.throws(() => signRequest(request, { ...key, id }), /expected a key id/);
  signRequest(request, { ...key, secret: key.secret.subarray(0, 32) });
  assert.throws(
    () => signRequest(request, { ...key, secret: key.secret.subarray(0, 31) }),
    /at least 32 bytes .*got 31$/,
  );

  for (const name of ["signature-input", "signature", "content-digest"]) {
    const headers = sign();
    const text = headers[name] ?? "";
    const padded = (length: number) =>
      signed({ ...headers, [name]: `${text}, pad="`.padEnd(length - 1, "x").concat('"') });
    const checked = name === "content-digest" ? isProblem("mismatch") : undefined;
    const atBound = verifyRequest(padded(MAX_SIGNATURE_HEADER), options());
    await (checked === undefined ? atBound : assert.rejects(atBound, checked));
    await assert.rejects(verifyRequest(padded(MAX_SIGNATURE_HEADER + 1), options()), isProblem("malformed"));
  }
});

test("no two requests have the same nonce", () => {
  const nonces = Array.from({ length: 100 }, () => signRequest(request, key)["signature-input"]);
  assert.equal(new Set(nonces).size, nonces.length);
});
