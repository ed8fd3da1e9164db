import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_REASON, probeRemote } from "../../shared/remotes/probe.ts";
import { CURRENT, currentCard, json, LEGACY, server, URL_OF } from "./support.ts";

test("an agent is reachable that answers anything but an error of its own, and it is told how soon", async () => {
  let at = 1_000;
  const late = (status: number) => () => {
    at += 40;
    return new Response("x", { status });
  };
  const probed = (answers: Parameters<typeof server>[0], path?: string) =>
    probeRemote({ url: URL_OF, send: server(answers).send, now: () => at, path });
  assert.deepEqual(await probed({ [CURRENT]: late(200) }), { at: 1_000, reachable: true, latencyMs: 40 });
  assert.deepEqual(await probed({}), { at: 1_040, reachable: true, latencyMs: 0 });
  assert.deepEqual(await probed({ [LEGACY]: late(503) }, "/.well-known/agent.json"), {
    at: 1_040,
    reachable: false,
    latencyMs: 40,
    error: "it answers with status 503",
  });
  const broken = await probed({ [CURRENT]: () => Promise.reject(new Error("x".repeat(MAX_REASON + 1))) });
  assert.deepEqual([broken.reachable, broken.error?.length], [false, MAX_REASON]);
  assert.equal((await probed({ [CURRENT]: json(currentCard()) })).reachable, true);
});

test("one that does not answer in time is not reachable", async () => {
  const send = (_: string, { signal }: { signal: AbortSignal }) =>
    new Promise<Response>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const { reachable, error } = await probeRemote({ url: URL_OF, send, now: () => 0, timeoutMs: 10 });
  assert.deepEqual([reachable, error], [false, "no answer within 10 ms"]);
});
