import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { DISCOVER_SUBJECT, MAX_ANSWERS_A_SECOND, offerCards } from "../../../functions/bridge/cards.ts";
import { ensurePeersBucket } from "../../../shared/cards/bucket.ts";
import type { OwnCard } from "../../../shared/cards/own.ts";
import { connectNats } from "../../../shared/nats/index.ts";
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

const cards = (): OwnCard[] =>
  ["acme-support", "acme-other"].map((runtime) => ({
    runtime,
    version: "1",
    bytes: new TextEncoder().encode(runtime),
  }));
const timing = (scale: number) => ({ cards, telemetry: quiet, timing: { scale } });

/** Asks so often at once, and gives what is answered until nothing more comes. */
async function ask(times: number): Promise<string[]> {
  const answers: string[] = [];
  const inbox = `_INBOX.${crypto.randomUUID()}`;
  const heard = peer.subscribe(inbox, { callback: (_, message: Msg) => void answers.push(message.string()) });
  for (let n = 0; n < times; n++) peer.publish(DISCOVER_SUBJECT, "peer-card-request", { reply: inbox });
  await peer.flush();
  // The bridge has had the questions, and the peer the answers.
  for (let n = 0; n < 2; n++) {
    await nc.flush();
    await peer.flush();
  }
  heard.unsubscribe();
  // Where nobody listens the server says so, in an empty message.
  return answers.filter((text) => text !== "");
}

test("whoever asks is answered with a message for each card, by each bridge that listens", async () => {
  const first = offerCards(nc, timing(1));
  await nc.flush();
  assert.deepEqual(await ask(1), ["acme-support", "acme-other"]);
  const second = offerCards(nc, timing(1));
  await nc.flush();
  assert.equal((await ask(1)).length, 4);
  first[Symbol.dispose]();
  second[Symbol.dispose]();
  await nc.flush();
  assert.deepEqual(await ask(1), []);
});

test("as many questions are answered in a second as may be, and not one more", async () => {
  for (const times of [MAX_ANSWERS_A_SECOND, MAX_ANSWERS_A_SECOND + 1]) {
    using _ = offerCards(nc, timing(1));
    await nc.flush();
    assert.equal((await ask(times)).length, 2 * MAX_ANSWERS_A_SECOND);
  }
});

test("the cards are renewed within the run, and not after it", async () => {
  const bucket = await ensurePeersBucket(peer);
  offerCards(nc, timing(1_000))[Symbol.dispose]();
  using _ = offerCards(nc, timing(100));
  await until("they are there", async () => {
    const found = await Promise.all(cards().map(({ runtime }) => bucket.get(runtime)));
    return found.every((of) => of !== undefined);
  });
  // That of the run that had ended would have come first.
  assert.equal((await bucket.get("acme-support"))?.revision, 1);
});
