import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import { awsSettings } from "../../infra/local/aws.ts";
import { InvokeApi } from "../../infra/local/invoke-api.ts";
import { MAX_PAYLOAD_BYTES } from "../../infra/local/runtime-api.ts";

/** Functions are called by the client of AWS. */

const called: string[] = [];
let api: InvokeApi;
let client: LambdaClient;
before(async () => {
  api = await InvokeApi.listen({
    has: (name) => name === "cards" || name === "broken",
    async invoke(name, payload) {
      called.push(payload);
      if (name === "broken") return { ok: false, errorType: "Error", errorMessage: "it is broken" };
      return { ok: true, payload: JSON.stringify({ got: payload.length }) };
    },
  });
  client = new LambdaClient({ ...awsSettings(api.url), maxAttempts: 1 });
});
after(() => {
  client.destroy();
  api.close();
});

const invoke = (FunctionName: string, Payload: string) =>
  client.send(new InvokeCommand({ FunctionName, Payload }));
const text = (of: Uint8Array | undefined) => new TextDecoder().decode(of);
const post = (path: string, init: RequestInit = {}) =>
  fetch(`${api.url}${path}`, { method: "POST", ...init });
const CARDS = "/2015-03-31/functions/cards/invocations";

test("a function's answer is the answer, and its failure is told as Lambda tells it", async () => {
  const answer = await invoke("cards", '{"refresh":"all"}');
  assert.deepEqual([text(answer.Payload), answer.FunctionError], ['{"got":17}', undefined]);
  const failed = await invoke("broken", "{}");
  assert.deepEqual(JSON.parse(text(failed.Payload)), { errorType: "Error", errorMessage: "it is broken" });
  assert.equal(failed.FunctionError, "Unhandled");
});

test("a payload at the bound, and one past it", async () => {
  const of = (bytes: number) => post(CARDS, { body: " ".repeat(bytes) });
  assert.equal((await of(MAX_PAYLOAD_BYTES)).status, 200);
  assert.equal((await of(MAX_PAYLOAD_BYTES + 1)).status, 413);
});

test("what is no such request calls nothing: another function, another way, a page in a browser", async () => {
  called.length = 0;
  await assert.rejects(invoke("gone", "{}"), { name: "ResourceNotFoundException" });
  assert.equal((await post("/")).status, 404);
  assert.equal((await post("/2015-03-31/functions/%/invocations").catch(() => undefined))?.status, undefined);
  assert.equal((await fetch(`${api.url}${CARDS}`)).status, 404);
  const asynchronous = { "x-amz-invocation-type": "Event" };
  assert.equal((await post(CARDS, { headers: asynchronous })).status, 400);
  assert.equal((await post(CARDS, { headers: { origin: "http://localhost:3000" } })).status, 403);
  assert.deepEqual(called, []);
});
