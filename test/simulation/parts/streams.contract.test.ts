import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { ack, ackSubjectOf, connectNats, nak, readLastOn, term } from "../../../shared/nats/index.ts";
import { countOn } from "../../../shared/nats/stream-reads.ts";
import { startNats } from "../../support/nats-server.ts";
import { Choices } from "../choices.ts";
import { Scheduler } from "../scheduler.ts";
import { type Delivered, SimulatedStreams } from "./streams.ts";

/** Long enough for a machine that has other things to do, and no bound of anything. */
const SOON_MS = 10_000;
const ACK_WAIT_MS = 1_000;
/** The shortest window in which a stream knows a message again, and one that outlasts the test. */
const WINDOWS = { short: 100, long: 120_000 } as const;

type Given = Pick<Delivered, "subject" | "ackSubject" | "deliveries">;

/** Streams `short` and `long`, the second with a consumer of all its messages: in truth, or simulated. */
interface Streams {
  publish(subject: string, msgId: string): Promise<{ seq: number; duplicate: boolean }>;
  lastOn(subject: string): Promise<string | undefined>;
  countOn(subject: string): Promise<number>;
  /** The next delivery; nothing when none comes for so long. */
  next(withinMs: number): Promise<Given | undefined>;
  ack(subject: string): Promise<unknown>;
  nak(subject: string, delayMs: number): Promise<unknown>;
  term(subject: string): Promise<unknown>;
  pass(ms: number): Promise<void>;
}

function simulated(): Streams {
  const scheduler = new Scheduler(Choices.replay([]), Date.UTC(2030, 0, 1));
  const { clock } = scheduler;
  const streams = new SimulatedStreams(scheduler);
  for (const name of ["short", "long"] as const)
    streams.addStream({ name, prefix: `${name}.`, duplicateMs: WINDOWS[name] });
  const given: Given[] = [];
  streams.addConsumer({
    stream: "long",
    name: "all",
    filter: () => true,
    ackWaitMs: ACK_WAIT_MS,
    deliver: (message) => given.push(message),
  });
  return {
    publish: async (subject, msgId) => streams.publish({ subject, msgId, body: "" }),
    countOn: async (subject) => streams.countOn(subject.split(".")[0] ?? "", subject),
    lastOn: async (subject) => streams.lastOn(subject.split(".")[0] ?? "", subject)?.subject,
    async next(withinMs) {
      const end = clock.now() + withinMs;
      while (given.length === 0 && clock.now() < end) clock.move(end);
      return given.shift();
    },
    ack: async (subject) => streams.acknowledge(subject, "+ACK"),
    nak: async (subject, ms) => streams.acknowledge(subject, `-NAK {"delay":${ms * 1_000_000}}`),
    term: async (subject) => streams.acknowledge(subject, "+TERM no good"),
    async pass(ms) {
      for (const end = clock.now() + ms; clock.now() < end; ) clock.move(end);
    },
  };
}

const server = await startNats();
const nc = await connectNats({ servers: [server.url], credentials: "none", name: "contract" });
after(async () => {
  await nc.close();
  await server.stop();
});

async function real(): Promise<Streams> {
  const jsm = await jetstreamManager(nc);
  const js = jetstream(nc);
  for (const name of ["short", "long"] as const)
    await jsm.streams.add({ name, subjects: [`${name}.>`], duplicate_window: nanos(WINDOWS[name]) });
  const settings = { ack_policy: AckPolicy.Explicit, ack_wait: nanos(ACK_WAIT_MS), max_deliver: -1 };
  await jsm.consumers.add("long", { durable_name: "all", ...settings });
  const consumer = await js.consumers.get("long", "all");
  return {
    publish: (subject, msgId) => js.publish(subject, "", { msgID: msgId }),
    countOn: (subject) => countOn(jsm, subject.split(".")[0] ?? "", subject),
    lastOn: async (subject) => (await readLastOn(jsm, subject.split(".")[0] ?? "", subject))?.subject,
    async next(withinMs) {
      const message = await consumer.next({ expires: withinMs });
      if (message === null) return undefined;
      const { subject, info } = message;
      return { subject, ackSubject: ackSubjectOf(message), deliveries: info.deliveryCount };
    },
    ack: (subject) => ack(nc, subject),
    nak: (subject, ms) => nak(nc, subject, ms),
    term: (subject) => term(nc, subject, "no good"),
    pass: (ms) => wait(ms),
  };
}

/** The next delivery, which must come. */
async function given(streams: Streams): Promise<Given> {
  const message = await streams.next(SOON_MS);
  assert.ok(message);
  return message;
}

for (const [name, open] of [
  ["simulated", simulated],
  ["nats-server", real],
] as const)
  describe(`streams: ${name}`, async () => {
    const streams = await open();

    test("a message id is known again within the stream's window, and not after", async () => {
      const first = await streams.publish("long.known", "1");
      assert.deepEqual([first.seq, first.duplicate], [1, false]);
      const again = await streams.publish("long.known", "1");
      assert.deepEqual([again.seq, again.duplicate], [1, true]);
      assert.equal((await streams.publish("short.known", "1")).seq, 1, "each stream knows its own");
      await streams.ack((await given(streams)).ackSubject);
      await streams.pass(10 * WINDOWS.short);
      const later = await streams.publish("short.known", "1");
      assert.deepEqual([later.seq, later.duplicate], [2, false]);
    });

    test("the last message on a subject, or on all whose last token differs", async () => {
      for (const subject of ["short.a.one", "short.a.two", "short.b.one", "short.a.c.d"])
        await streams.publish(subject, subject);
      assert.equal(await streams.lastOn("short.a.one"), "short.a.one");
      assert.equal(await streams.lastOn("short.a.*"), "short.a.two");
      assert.equal(await streams.lastOn("short.c.*"), undefined);
      await streams.publish("short.a.two", "another");
      assert.deepEqual([await streams.countOn("short.a.two"), await streams.countOn("short.c.one")], [2, 0]);
    });

    test("what is not acknowledged comes again, and any of its deliveries settles it", async () => {
      await streams.publish("long.again", "2");
      const first = await given(streams);
      const second = await given(streams);
      assert.deepEqual([first.subject, first.deliveries], ["long.again", 1]);
      assert.deepEqual([second.subject, second.deliveries], ["long.again", 2]);
      await streams.ack(first.ackSubject);
      await streams.ack(second.ackSubject);
      assert.equal(await streams.next(2 * ACK_WAIT_MS), undefined);
    });

    test("what is given back comes again, also by an earlier delivery", async () => {
      await streams.publish("long.back", "3");
      const first = await given(streams);
      await streams.nak(first.ackSubject, 10);
      assert.equal((await given(streams)).deliveries, 2);
      await streams.nak(first.ackSubject, 10);
      const third = await given(streams);
      assert.equal(third.deliveries, 3);
      await streams.ack(third.ackSubject);
      await streams.nak(first.ackSubject, 10);
      assert.equal(await streams.next(2 * ACK_WAIT_MS), undefined, "what is settled stays so");
    });

    test("what is terminated does not come again", async () => {
      await streams.publish("long.no", "4");
      await streams.term((await given(streams)).ackSubject);
      assert.equal(await streams.next(2 * ACK_WAIT_MS), undefined);
    });
  });
