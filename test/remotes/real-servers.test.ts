import assert from "node:assert/strict";
import { createServer, type Server, type ServerResponse } from "node:http";
import { after, test } from "node:test";
import * as z from "zod";
import { fetchCard } from "../../shared/remotes/fetch-card.ts";
import { currentCard } from "./support.ts";

const servers: Server[] = [];
after(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

/** A server of HTTP that answers each request for a card so; how many there were. */
async function serving(answer: (response: ServerResponse, ifNoneMatch: string | undefined) => void) {
  let requests = 0;
  const server = createServer(({ headers }, response) => {
    requests++;
    answer(response, headers["if-none-match"]);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = z.object({ port: z.number() }).parse(server.address());
  return { url: `http://127.0.0.1:${port}/a2a`, requests: () => requests };
}

// The guarded client's part of this contract is `fetch`'s; it refuses this machine.
const asked = (url: string, over: Partial<Parameters<typeof fetchCard>[0]> = {}) =>
  fetchCard({ url, send: fetch, now: () => 0, ...over });

test("a card over HTTP, and that it has not changed", async () => {
  const { url, requests } = await serving((response, ifNoneMatch) => {
    response.setHeader("etag", '"7"');
    if (ifNoneMatch === '"7"') response.writeHead(304).end();
    else response.end(JSON.stringify(currentCard()));
  });
  const first = await asked(url);
  assert.ok(first.kind === "card");
  assert.equal(first.card.interfaces[0]?.url, url, "whatever address the card names");
  const second = await asked(url, { known: first });
  assert.equal(second.kind, "unchanged");
  assert.equal(requests(), 2);
});

test("slow, huge, looping and dead servers each end in both reasons, or in one when time is up", async () => {
  const dripping = await serving((response) => {
    response.write("{");
    const drip = setInterval(() => response.write(" "), 5);
    response.on("close", () => clearInterval(drip));
  });
  assert.deepEqual(await asked(dripping.url, { timeoutMs: 80 }), {
    kind: "failed",
    reason: "/.well-known/agent-card.json: no answer within 80 ms",
  });

  const huge = await serving((response) => {
    const more = () => {
      while (!response.destroyed && response.write(" ".repeat(65_536)));
    };
    response.on("drain", more);
    more();
  });
  assert.deepEqual(await asked(huge.url), {
    kind: "failed",
    reason:
      "/.well-known/agent-card.json: card: expected at most 262144 bytes; /.well-known/agent.json: card: expected at most 262144 bytes",
  });

  const looping = await serving((response) =>
    response.writeHead(302, { location: "/.well-known/agent-card.json" }).end(),
  );
  const reasons = /^\/\.well-known\/agent-card\.json: .+; \/\.well-known\/agent\.json: .+$/;
  const looped = await asked(looping.url);
  assert.ok(looped.kind === "failed");
  assert.match(looped.reason, reasons);

  const dead = await asked("http://127.0.0.1:1/a2a");
  assert.ok(dead.kind === "failed");
  assert.match(dead.reason, reasons);
});
