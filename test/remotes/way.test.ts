import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import type { RemoteConfig } from "../../shared/config/remotes.ts";
import { allowList } from "../../shared/http/index.ts";
import {
  type CredentialSources,
  credentialSources,
  RemoteCredentialsError,
} from "../../shared/remotes/credentials.ts";
import { openWay } from "../../shared/remotes/way.ts";
import { waysTo } from "../../shared/remotes/ways.ts";
import { REREAD_MS, sparingSecrets } from "../../shared/secrets/sparing.ts";
import { startSecretsManager, type TestSecretsManager } from "../support/secrets-manager.ts";
import { type HttpServer, sendJson, serveHttp } from "./servers/http.ts";

/** A credential that is rotated while it is in use. */

const folder = mkdtempSync(join(tmpdir(), "sluice-way-"));
const file = join(folder, "token");
/** What the agent takes, and how it refuses the rest. */
let taken = "";
let refusal = 401;
let server: HttpServer;
before(async () => {
  server = await serveHttp(async ({ headers }, response) =>
    headers.authorization === `Bearer ${taken}`
      ? sendJson(response, {})
      : sendJson(response, { no: "not you" }, refusal),
  );
});
after(async () => {
  rmSync(folder, { recursive: true });
  await server?.close();
});
beforeEach(() => {
  taken = "one";
  refusal = 401;
  writeFileSync(file, "one\n");
  server.requests.length = 0;
});

function remote(credentials = `file:${file}`): RemoteConfig {
  const url = `${server.origin}/a2a`;
  const auth = { scheme: "bearer" as const, credentials };
  return {
    name: "a",
    url,
    headers: {},
    streaming: false,
    external: false,
    skills: [],
    subscribesTo: [],
    auth,
  };
}

const rotate = (to: string) => {
  taken = to;
  writeFileSync(file, `${to}\n`);
};
const asked = () => server.requests.map(({ headers, body }) => [headers.authorization, body]);

async function open(of = remote(), sources: CredentialSources = credentialSources({})) {
  const fetch = await openWay(of, { sources, allow: allowList([server.origin]) });
  return async (body: RequestInit["body"] = "text", as: "url" | "request" = "url") => {
    const init: RequestInit = { method: "POST", body, duplex: "half" };
    const answer =
      as === "url" ? await fetch(of.url, init) : await fetch(new Request(of.url, init), undefined);
    await answer.arrayBuffer();
    return answer.status;
  };
}

test("who is refused reads the credential anew, and sends the same once more if it is another", async () => {
  for (const [as, status] of [
    ["url", 401],
    ["request", 401],
    ["url", 403],
  ] as const) {
    rotate("one");
    refusal = status;
    const ask = await open();
    assert.equal(await ask(), 200);
    rotate("two");
    server.requests.length = 0;
    assert.equal(await ask("the body", as), 200);
    assert.deepEqual(asked(), [
      ["Bearer one", "the body"],
      ["Bearer two", "the body"],
    ]);
    assert.equal(await ask(), 200);
    assert.equal(server.requests.length, 3, "the new one is gone on with");
  }
});

test("many at a time that are refused come through, each by one more request", async () => {
  const ask = await open();
  rotate("two");
  assert.deepEqual(await Promise.all([ask("a"), ask("b"), ask("c")]), [200, 200, 200]);
  assert.equal(server.requests.length, 6);
});

test("it is once more and no more: not with the same one, not without any, not of a stream", async () => {
  const ask = await open();
  taken = "elsewhere";
  assert.equal(await ask(), 401);
  assert.equal(server.requests.length, 1, "it is the same");
  rotate("two");
  taken = "elsewhere";
  assert.equal(await ask(), 401);
  assert.equal(server.requests.length, 3, "another that is refused as well");
  writeFileSync(file, "");
  assert.equal(await ask(), 401);
  assert.equal(server.requests.length, 4, "there is none");
  rotate("three");
  assert.equal(await ask(ReadableStream.from([Buffer.from("once")])), 401);
  assert.equal(server.requests.length, 5);
});

test("a file that is emptied or removed is an error before the next exchange, not the one that was", async () => {
  await open();
  writeFileSync(file, "\n");
  await assert.rejects(open(), RemoteCredentialsError);
  rmSync(file);
  await assert.rejects(open(), RemoteCredentialsError);
  assert.equal(server.requests.length, 0);
});

test("a secret is used as it is kept until it is refused; cards are asked for in the same way", async () => {
  const reads: boolean[] = [];
  const sources = {
    ...credentialSources({}),
    secret: async (_: string, { fresh }: { fresh: boolean }) => {
      reads.push(fresh);
      return fresh ? "two" : "one";
    },
  };
  const of = remote("secret:token");
  const outbound = { allow: [server.origin] };
  const { sendTo } = await waysTo([of], { outbound, sources, correlationId: "run-1" });
  const card = async () => {
    const answer = await sendTo(of)(of.url, { headers: {}, signal: AbortSignal.timeout(60_000) });
    await answer.arrayBuffer();
    return answer.status;
  };
  assert.equal(await card(), 200);
  assert.deepEqual(reads, [false]);
  taken = "two";
  assert.equal(await card(), 200);
  assert.deepEqual(reads, [false, true]);
});

describe("a secret of Secrets Manager", () => {
  let manager: TestSecretsManager;
  let now = 0;
  let of: RemoteConfig;
  let sources: CredentialSources;
  const put = (text: string) => manager.secrets.set("a/token", { text });
  before(async () => {
    manager = await startSecretsManager();
  });
  after(() => manager?.stop());

  test("is read anew once in a while, however often the agent refuses it; then a new one is there", async () => {
    of = remote("secret:a/token");
    sources = { ...credentialSources({}), secret: sparingSecrets(() => now) };
    put("one");
    taken = "two";
    for (let tasks = 0; tasks < 5; tasks++) assert.equal(await (await open(of, sources))(), 401);
    assert.equal(manager.asked.length, 2, "first, and once more as it was refused");
    put("two");
    now += REREAD_MS - 1;
    assert.equal(await (await open(of, sources))(), 401);
    assert.equal(manager.asked.length, 2);
    now += 1;
    const asks = await Promise.all([1, 2, 3].map(() => open(of, sources)));
    assert.deepEqual(await Promise.all(asks.map((ask) => ask())), [200, 200, 200]);
    assert.equal(manager.asked.length, 3, "those refused at the same time share it");
    assert.equal(await (await open(of, sources))(), 200);
    assert.equal(manager.asked.length, 3);
  });

  test("that was not refused lately is read anew at once; a time that it cannot be read counts alike", async () => {
    now += REREAD_MS;
    put("three");
    taken = "three";
    assert.equal(await (await open(of, sources))(), 200);
    manager.asked.length = 0;
    now += REREAD_MS;
    taken = "four";
    manager.secrets.set("a/token", { error: "AccessDeniedException" });
    for (let tasks = 0; tasks < 3; tasks++) assert.equal(await (await open(of, sources))(), 401);
    assert.equal(manager.asked.length, 1);
  });

  test("is read so by whoever goes to a remote agent in this sandbox", async () => {
    manager.secrets.set("b/token", { text: "one" });
    manager.asked.length = 0;
    for (let exchanges = 0; exchanges < 3; exchanges++)
      assert.equal(await credentialSources({}).secret("b/token", { fresh: true }), "one");
    assert.equal(manager.asked.length, 1);
  });
});
