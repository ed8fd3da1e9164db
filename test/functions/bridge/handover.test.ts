import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { DeleteMessageBatchCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { startFauxqs } from "fauxqs";
import { type BridgeRun, runBridge } from "../../../functions/bridge/bridge.ts";
import { awsSettings } from "../../../infra/local/aws.ts";
import { timing } from "../../../shared/config/timing.ts";
import { ack, connectNats, ensureConsumers, ensureStreams, NatsLink } from "../../../shared/nats/index.ts";
import { type Forwarded, forwarded } from "../../../shared/tasks/messages.ts";
import { startNats, type TestNats } from "../../support/nats-server.ts";
import { type ConfiguredNats, startConfiguredNats } from "../../support/nats-users.ts";
import { until } from "../../support/until.ts";

const quiet = { debug() {}, info() {}, warn() {}, error() {}, count() {}, measure() {} };
const RUNTIME = { runtime: "acme-support", delegates: false };
/** Long enough for every acknowledgement; what was not acknowledged comes again after it. */
const TIMING = { ...timing(100), marginMs: 400, ackWaitMs: 8_000 };

/** A broker, a queue, and the bridge between them. */
async function scene(t: TestContext, server: TestNats, credentials = "none") {
  const sqs = await startFauxqs({ port: 0, logger: false });
  for (const kind of ["tasks", "controls", "events"]) sqs.createQueue(kind);
  const client = new SQSClient(awsSettings(`http://127.0.0.1:${sqs.port}`));
  const queueUrl = (kind: string) => `http://127.0.0.1:${sqs.port}/000000000000/${kind}`;
  const nc = await connectNats({ servers: [server.url], credentials, name: "peer" });
  const jsm = await jetstreamManager(nc);
  await ensureStreams(jsm);
  await ensureConsumers(jsm, RUNTIME, TIMING);
  const stop = new AbortController();
  t.after(async () => {
    stop.abort();
    await nc.close();
    await server.stop();
    client.destroy();
    await sqs.stop();
  });
  return {
    nc,
    client,
    /** Ends what has been started; the test's end does so at the latest. */
    stop,
    tasksQueueUrl: queueUrl("tasks"),
    /** A run of the function in a sandbox of its own; once all is stopped it ends sooner. */
    async run(ms: number): Promise<BridgeRun> {
      let end = Date.now() + ms;
      stop.signal.addEventListener("abort", () => {
        end = Math.min(end, Date.now() + TIMING.marginMs);
      });
      const link = new NatsLink(() => ({ servers: [server.url], credentials, name: "bridge" }));
      const urls = { controlsQueueUrl: queueUrl("controls"), eventsQueueUrl: queueUrl("events") };
      try {
        return await runBridge({
          link,
          sqs: client,
          telemetry: quiet,
          timing: TIMING,
          instance: "sluice-acme",
          settings: { ...urls, tasksQueueUrl: queueUrl("tasks"), runtimes: [RUNTIME], bound: 1_000 },
          remainingMs: () => end - Date.now(),
          stop: stop.signal,
        });
      } finally {
        await link.close();
      }
    },
  };
}

type Scene = Awaited<ReturnType<typeof scene>>;

/** Starts a run every so often, each longer than that, until it is stopped; gives how all of them ended. */
function schedule({ run, stop: { signal: stop } }: Scene, everyMs: number, runMs: number) {
  const runs: Promise<BridgeRun | Error>[] = [];
  return (async () => {
    while (!stop.aborted) {
      runs.push(run(runMs).catch((error) => (error instanceof Error ? error : new Error(String(error)))));
      await sleep(everyMs, undefined, { signal: stop }).catch(() => undefined);
    }
    return Promise.all(runs);
  })();
}

/**
 * Takes what arrives in the queue and acknowledges it, as `admit` does: what cannot be confirmed comes again.
 *
 * @param acks whether it acknowledges, asked for each message; else it takes them in as an `admit` that dies
 */
function settleAll(
  { client, tasksQueueUrl: QueueUrl, nc, stop: { signal: stop } }: Scene,
  acks: () => boolean = () => true,
) {
  const got: Forwarded[] = [];
  const confirmed = new Set<number>();
  const settle = async (message: Forwarded) => {
    got.push(message);
    if (acks() && (await ack(nc, message.ackSubject, 1_000))) confirmed.add(message.seq);
  };
  const ended = (async () => {
    while (!stop.aborted) {
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }),
      );
      await Promise.all(Messages.map(({ Body = "" }) => settle(forwarded().parse(JSON.parse(Body)))));
      const Entries = Messages.map(({ ReceiptHandle }, i) => ({ Id: String(i), ReceiptHandle }));
      if (Entries.length > 0) await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
      else await sleep(10);
    }
  })();
  return { got, confirmed, ended };
}

/** Publishes a task until the stream has it, as a peer does that wants nothing lost. */
async function publish(nc: NatsConnection, id: string): Promise<void> {
  const subject = `a2a.v1.task.peer.${RUNTIME.runtime}.${id}`;
  const options = { msgID: subject, timeout: 1_000 };
  const js = jetstream(nc);
  await until("it is on the stream", () => js.publish(subject, "{}", options).then(...succeeded));
}

const succeeded = [() => true, () => false] as const;

/** Publishes so many tasks. */
async function publishAll(
  { nc }: Scene,
  count: number,
  each: (sent: number) => Promise<void>,
): Promise<void> {
  for (let i = 0; i < count; i++) {
    await publish(nc, `m${i}`);
    await each(i);
  }
}

/** The sequences that arrived more than once. */
function twice(got: readonly Forwarded[]): number[] {
  const count = Map.groupBy(got, ({ seq }) => seq);
  return [...count].flatMap(([seq, copies]) => (copies.length > 1 ? [seq] : []));
}

async function allSettled(of: Scene, count: number, confirmed: ReadonlySet<number>): Promise<void> {
  await until("all are acknowledged", () => confirmed.size === count, { seen: () => confirmed.size });
  const { num_pending, num_ack_pending } = await (await jetstreamManager(of.nc)).consumers.info(
    "A2A_TASKS",
    `a2a_tasks_${RUNTIME.runtime}`,
  );
  assert.deepEqual({ num_pending, num_ack_pending }, { num_pending: 0, num_ack_pending: 0 });
}

test("runs that follow each other, two or three at a time, lose nothing under load and carry nothing twice", async (t) => {
  const of = await scene(t, await startNats());
  const settling = settleAll(of);
  const runs = schedule(of, 700, 1_800);
  const COUNT = 600;
  await publishAll(of, COUNT, () => sleep(3));
  await allSettled(of, COUNT, settling.confirmed);
  of.stop.abort();
  const ended = await runs;
  await settling.ended;
  const done = ended.flatMap((run) => (run instanceof Error ? [] : [run]));
  assert.equal(done.length, ended.length);
  assert.ok(done.length >= 3, `there were ${done.length} runs`);
  const givenBack = done.reduce((sum, run) => sum + run.givenBack, 0);
  // What was given back was not carried, as far as its run knows; the queue may have it all the same.
  assert.ok(twice(settling.got).length <= givenBack, `${twice(settling.got)} came twice`);
});

test("a broker that is killed and away for 30 s loses nothing, and gives out again only what was not acknowledged", async (t) => {
  const server = await startNats();
  const of = await scene(t, server);
  let acks = true;
  const settling = settleAll(of, () => acks);
  // Several runs follow each other while there is no broker.
  const runs = schedule(of, 3_000, 7_000);
  const [ACKED, UNACKED, COUNT] = [200, 250, 450];
  const before = new Set<number>();
  await publishAll(of, COUNT, async (sent) => {
    await sleep(3);
    if (sent + 1 === ACKED) {
      await until("these are acknowledged", () => settling.confirmed.size === ACKED);
      acks = false;
      // A server writes down what was acknowledged a moment later (nats-server: consumerFileStore, flushLoop).
      await sleep(1_000);
    }
    if (sent + 1 !== UNACKED) return;
    await until("some are under way", () => settling.got.length > ACKED);
    for (const seq of settling.confirmed) before.add(seq);
    await server.kill("SIGKILL");
    await sleep(30_000);
    acks = true;
    await server.restart();
  });
  await allSettled(of, COUNT, settling.confirmed);
  of.stop.abort();
  await runs;
  await settling.ended;
  const again = twice(settling.got);
  assert.deepEqual(
    { acknowledged: again.filter((seq) => before.has(seq)), later: again.filter((seq) => seq > UNACKED) },
    { acknowledged: [], later: [] },
    "only what was under way when the broker went",
  );
  assert.ok(again.length > 0 && again.length <= UNACKED - ACKED, `${again.length} came again`);
});

test("a run whose credentials are replaced goes on with the new ones", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "sluice-handover-"));
  t.after(() => rm(dir, { recursive: true }));
  const login = join(dir, "login");
  await writeFile(login, "first");
  const token = (name: string) => ({ authorization: { token: name } });
  const server: ConfiguredNats = await startConfiguredNats(token("first"));
  const of = await scene(t, server, `file:${login}`);
  const settling = settleAll(of);
  const run = of.run(8_000);
  await publish(of.nc, "before");
  await until("it is carried", () => settling.got.length === 1);
  await writeFile(login, "second");
  await server.reconfigure(token("second"));
  await until("the peer is thrown out as well", () => of.nc.isClosed());
  const peer = await connectNats({ servers: [server.url], credentials: `file:${login}`, name: "peer" });
  await publish(peer, "after");
  await until("another is carried by the same run", () => settling.got.length === 2);
  await peer.close();
  of.stop.abort();
  await settling.ended;
  await run;
});
