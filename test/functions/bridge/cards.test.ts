import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import * as z from "zod";
import { DISCOVER_SUBJECT, MAX_ANSWERS_A_SECOND, offerCards } from "../../../functions/bridge/cards.ts";
import { ensurePeersBucket, type PeersBucket, type StoredCard } from "../../../shared/cards/bucket.ts";
import { CARD_TTL_MS } from "../../../shared/cards/bucket-facts.ts";
import { encodeRecord } from "../../../shared/cards/fit.ts";
import { cardRecord } from "../../../shared/cards/record.ts";
import { renewedRecord } from "../../../shared/cards/renewed.ts";
import { recordFaults } from "../../../shared/cards/validate.ts";
import { connectNats } from "../../../shared/nats/index.ts";
import { hosted } from "../../cards/support.ts";
import { startNats, type TestNats } from "../../support/nats-server.ts";
import { until } from "../../support/until.ts";
import { quiet } from "./support/bench.ts";

let nats: TestNats;
let nc: NatsConnection;
let peer: NatsConnection;
before(async () => {
  nats = await startNats();
  const connected = (name: string) => connectNats({ servers: [nats.url], credentials: "none", name });
  [nc, peer] = await Promise.all([connected("bridge"), connected("peer")]);
});
after(async () => {
  await Promise.all([nc.close(), peer.close()]);
  await nats.stop();
});

const NOW = Date.UTC(2030, 0, 1);
const RUNTIMES = ["acme-support", "acme-other"];
const INSTANCE = "sluice-acme";
const offer = (scale: number) =>
  offerCards(nc, {
    runtimes: [...RUNTIMES, "acme-hidden"],
    instance: INSTANCE,
    telemetry: quiet,
    timing: { scale },
    now: () => NOW,
  });

/** A record as the function `cards` has put it, three minutes before it is renewed. */
function recordOf(runtime: string): Uint8Array {
  const of = { deployment: "acme", servers: [], instance: INSTANCE, now: NOW - CARD_TTL_MS };
  return encodeRecord(cardRecord(hosted(runtime.slice("acme-".length)), of));
}

let bucket: PeersBucket;
beforeEach(async () => {
  bucket = await ensurePeersBucket(peer);
  for (const runtime of RUNTIMES) await bucket.put(runtime, recordOf(runtime));
});
afterEach(async () => {
  await (await jetstreamManager(peer)).streams.delete("KV_A2A_PEERS");
});

const instanced = z.object({ agentId: z.string() });

/** Asks so often at once, and gives who is told until so many messages have come, and what is on its way has. */
async function ask(times: number, expected: number): Promise<string[]> {
  const answers: string[] = [];
  const inbox = `_INBOX.${crypto.randomUUID()}`;
  const heard = peer.subscribe(inbox, { callback: (_, message: Msg) => void answers.push(message.string()) });
  for (let n = 0; n < times; n++) peer.publish(DISCOVER_SUBJECT, "peer-card-request", { reply: inbox });
  await peer.flush();
  // Where nobody listens the server says so, in an empty message.
  const told = () => answers.filter((text) => text !== "");
  await until("they are answered", () => told().length >= expected, { seen: told });
  for (let n = 0; n < 2; n++) {
    await nc.flush();
    await peer.flush();
  }
  heard.unsubscribe();
  return told().map((text) => instanced.parse(JSON.parse(text)).agentId);
}

test("whoever asks is answered with a message for each card that is there, by each bridge that listens", async () => {
  const first = offer(1);
  await nc.flush();
  assert.deepEqual(await ask(1, 2), RUNTIMES);
  const second = offer(1);
  await nc.flush();
  assert.equal((await ask(1, 4)).length, 4);
  first[Symbol.dispose]();
  second[Symbol.dispose]();
  await nc.flush();
  assert.deepEqual(await ask(1, 0), []);
});

test("as many questions are answered in a second as may be, and not one more", async () => {
  for (const times of [MAX_ANSWERS_A_SECOND, MAX_ANSWERS_A_SECOND + 1]) {
    using _ = offer(1);
    await nc.flush();
    assert.equal((await ask(times, 2 * MAX_ANSWERS_A_SECOND)).length, 2 * MAX_ANSWERS_A_SECOND);
  }
});

test("a card that is taken away, or another's, is told to nobody", async () => {
  await bucket.remove("acme-other", (await bucket.get("acme-other")) ?? assert.fail("no card"));
  await bucket.put("acme-hidden", new TextEncoder().encode('{"instanceId":"sluice-acme--dev"}'));
  using _ = offer(1);
  await nc.flush();
  assert.deepEqual(await ask(1, 1), ["acme-support"]);
});

test("the cards are renewed within the run, and not after it", async () => {
  offer(1_000)[Symbol.dispose]();
  using _ = offer(100);
  const shown = async (runtime: string) => (await bucket.get(runtime)) ?? assert.fail("no card");
  const first = (await shown("acme-support")).revision;
  await until("they are put again", async () => {
    const found = await Promise.all(RUNTIMES.map(shown));
    return found.every(({ bytes }) => times.parse(JSON.parse(Buffer.from(bytes).toString())).at === NOW);
  });
  for (const runtime of RUNTIMES) {
    const { bytes, revision } = await shown(runtime);
    assert.deepEqual(recordFaults(runtime, bytes), []);
    // That of the run that had ended would have come first.
    assert.ok(revision < first + 4);
  }
});

test("a card that is taken away, or put anew, while it is renewed stays as it is", async () => {
  for (const change of [
    async (seen: StoredCard) => bucket.remove("acme-support", seen),
    async () => bucket.put("acme-support", new TextEncoder().encode("{}")),
  ]) {
    await bucket.put("acme-support", recordOf("acme-support"));
    const seen = (await bucket.get("acme-support")) ?? assert.fail("no card");
    await change(seen);
    assert.equal(await bucket.replace("acme-support", renewedRecord(seen.bytes, NOW), seen), false);
    assert.notEqual((await bucket.get("acme-support"))?.bytes.length, seen.bytes.length);
  }
});

const times = z
  .object({ publishedAt: z.string(), expiresAt: z.string() })
  .transform(({ publishedAt, expiresAt }) => {
    assert.equal(Date.parse(expiresAt) - Date.parse(publishedAt), CARD_TTL_MS);
    return { at: Date.parse(publishedAt) };
  });
