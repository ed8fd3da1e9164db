import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_CREDENTIAL } from "../../shared/http/authorization.ts";
import { authorization, type RequestCredential, RequestCredentialError } from "../../shared/http/index.ts";
import { verifyRequest } from "../../shared/http/verify.ts";
import { SECRET } from "./support/refused.ts";

const origin = "https://agents.example";
const request = { method: "POST", url: new URL(`${origin}/a2a`), body: new Uint8Array([1, 2]) };
const headersOf = (credential: RequestCredential) => authorization(origin, credential).headers(request);

test("each scheme says who we are in its own header; white space around a credential is not part of it", async () => {
  assert.deepEqual(await headersOf({ scheme: "apiKey", key: ` ${SECRET}\n` }), { "x-api-key": SECRET });
  assert.deepEqual(await headersOf({ scheme: "bearer", token: `${SECRET}\r\n` }), {
    authorization: `Bearer ${SECRET}`,
  });
  const secret = SECRET.repeat(6);
  const headers = await headersOf({ scheme: "hmac", keyId: "k1", secret: `${secret}\n` });
  const { keyId } = await verifyRequest(
    { ...request, headers: new Headers(headers) },
    { keyOf: () => new TextEncoder().encode(secret), nonces: { remember: async () => true } },
  );
  assert.equal(keyId, "k1");
});

test("a credential that cannot be sent is an error at once, and is not quoted", async () => {
  const unfit: RequestCredential[] = [
    { scheme: "hmac", keyId: "k1", secret: SECRET },
    { scheme: "hmac", keyId: "", secret: SECRET.repeat(6) },
    { scheme: "hmac", keyId: `${SECRET} x`, secret: SECRET.repeat(6) },
  ];
  for (const text of [
    "",
    " \n",
    `${SECRET}\r\nx: y`,
    `${SECRET} x`,
    `${SECRET}ä`,
    `${SECRET}\0`,
    "x".repeat(MAX_CREDENTIAL + 1),
  ])
    unfit.push({ scheme: "apiKey", key: text }, { scheme: "bearer", token: text });
  for (const credential of unfit)
    assert.throws(
      () => authorization(origin, credential),
      (error) => error instanceof RequestCredentialError && !error.message.includes(SECRET),
    );
  await headersOf({ scheme: "apiKey", key: "x".repeat(MAX_CREDENTIAL) });
});
