import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import {
  connectNats,
  eventsConsumer,
  NatsError,
  NatsLink,
  tasksConsumer,
} from "../../../shared/nats/index.ts";
import { startNats } from "../../support/nats-server.ts";
import { startConfiguredNats } from "../../support/nats-users.ts";
import { Bench, clientFor, plain, quiet, until } from "./support/bench.ts";

let bench: Bench;
before(async () => {
  bench = await Bench.start();
});
after(() => bench.stop());
beforeEach(() => bench.next());

test("what SQS does not take is given back with a delay, and comes again", async () => {
  let refusing = true;
  const proxy = await listen((request, response) => {
    if (refusing && request.headers["x-amz-target"] === "AmazonSQS.SendMessageBatch") {
      response.statusCode = 503;
      response.end("{}");
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => void relay(request, Buffer.concat(chunks), response));
  });
  const through = clientFor(portOf(proxy));
  await bench.prepare();
  await bench.publish(3);
  const run = bench.begin({ sqs: through });
  await until("given back", async () => (await bench.consumer()).num_redelivered > 0);
  refusing = false;
  await until("all", () => new Set(bench.queued().map((message) => message.seq)).size === 3);
  const { forwarded: count, givenBack } = await run.end();
  assert.ok(count >= 3 && givenBack >= 3);
  assert.ok(bench.queued().some((message) => message.deliveries > 1));
  through.destroy();
  proxy.closeAllConnections();
  proxy.close();
});

test("with SQS out of reach a run ends in time and everything is still there", async () => {
  await bench.prepare();
  await bench.publish(5);
  const run = await bench.run(1_500, { sqs: clientFor(1) });
  assert.equal(run.forwarded, 0);
  assert.equal(bench.queued().length, 0);
  const again = bench.begin();
  await until("all", () => bench.queued().length === 5);
  assert.equal((await again.end()).forwarded, 5);
});

test("NATS down at the start is a clear error", async () => {
  const other = await startNats();
  await other.stop();
  const lost = new NatsLink(() => ({ servers: [other.url], credentials: "none", name: "bridge" }));
  await assert.rejects(
    bench.run(3_000, { link: lost }),
    (error) => error instanceof NatsError && error.code === "nats_unreachable",
  );
});

test("a server without JetStream is a clear error; one agent's trouble is not another's", async () => {
  const jsm = await jetstreamManager(bench.nc);
  const [bad, good] = [bench.runtime, `${bench.runtime}-good`];
  await bench.prepare();
  await jsm.consumers.delete("A2A_TASKS", tasksConsumer(bad));
  await jsm.consumers.add("A2A_TASKS", { durable_name: tasksConsumer(bad), deliver_subject: "elsewhere" });
  await bench.publish(2, "{}", good);
  const run = bench.begin({ settings: bench.settings([plain(bad), plain(good)]) });
  await until("the other's", () => bench.queued().length === 2);
  assert.equal((await run.end()).forwarded, 2);
  await assert.rejects(
    bench.run(2_000),
    (error) => error instanceof NatsError && error.code === "nats_jetstream",
  );
});

test("an agent whose events cannot be had is given its tasks, and that is said", async () => {
  const jsm = await jetstreamManager(bench.nc);
  await bench.prepare();
  const own = `${bench.runtime}-boss`;
  await jsm.consumers.add("A2A_EVENTS", { durable_name: eventsConsumer(own), deliver_subject: "elsewhere" });
  await bench.publish(2, "{}", own);
  const errors: unknown[] = [];
  const run = bench.begin({
    telemetry: { ...quiet, error: (message) => void errors.push(message) },
    settings: bench.settings([{ runtime: own, delegates: true }]),
  });
  await until("its tasks", () => bench.queued().length === 2);
  assert.equal((await run.end()).forwarded, 2);
  assert.deepEqual(errors, ["a runtime does not hear of what it hands on"]);
});

test("a stream that is not there and may not be made is named, and so is what else is not allowed", async (t) => {
  const user = (name: string, publish: readonly string[]) => ({
    ...{ user: name, password: name },
    permissions: { publish, subscribe: ["_INBOX_bridge.>"] },
  });
  const other = await startConfiguredNats({
    authorization: { users: [user("looks", ["$JS.API.STREAM.INFO.*"]), user("none", ["x"])] },
  });
  t.after(() => other.stop());
  const says = async (name: string, words: RegExp) => {
    const login = join(mkdtempSync(join(tmpdir(), "sluice-bridge-")), name);
    writeFileSync(login, JSON.stringify({ user: name, password: name }));
    const link = new NatsLink(() => ({ servers: [other.url], credentials: `file:${login}`, name: "bridge" }));
    t.after(() => link.close());
    await assert.rejects(bench.begin({ link }).end(), (error) => {
      assert.ok(error instanceof NatsError && error.code === "nats_jetstream");
      assert.match(error.message, words);
      return true;
    });
  };
  await says(
    "looks",
    /^the stream A2A_[A-Z]+ does not exist, and this user may not make it; make it as docs/,
  );
  await says("none", /publish on "\$JS\.API\.STREAM\.INFO\.A2A_[A-Z]+"; give it what .\/sluice nats-perm/);
});

test("NATS going down during a run is a clear error at its end; coming back, the run goes on", async (t) => {
  const other = await startNats();
  t.after(() => other.stop());
  const link = new NatsLink(() => ({ servers: [other.url], credentials: "none", name: "bridge" }));
  t.after(() => link.close());
  const peer = await connectNats({ servers: [other.url], credentials: "none", name: "peer" });
  t.after(() => peer.close());
  const run = bench.begin({ link });
  const publish = (id: string) => jetstream(peer).publish(`a2a.v1.task.peer.${bench.runtime}.${id}`, "{}");
  // What is forwarded shows that the run pulls, and asks nothing more of the server.
  await until("the run has made the streams", () =>
    publish("m0").then(
      () => true,
      () => false,
    ),
  );
  await until("the run pulls", () => bench.queued().length === 1);
  await other.restart();
  const connected = () =>
    until("connected again", () =>
      peer.flush().then(
        () => true,
        () => false,
      ),
    );
  await connected();
  await publish("m1");
  await until("forwarded", () => bench.queued().length === 2);
  await other.kill();
  await until("the run has lost it", () => !link.connected);
  await assert.rejects(run.end(), (error) => error instanceof NatsError && error.code === "nats_lost");
  await other.restart();
  await connected();
  const again = bench.begin({ link });
  await publish("m2");
  await until("forwarded by the next run", () => bench.queued().length === 3);
  assert.equal((await again.end()).givenBack, 0);
});

function listen(listener: (request: IncomingMessage, response: ServerResponse) => void): Promise<Server> {
  const proxy = createServer(listener);
  return new Promise((resolve) => proxy.listen(0, "127.0.0.1", () => resolve(proxy)));
}

function portOf(server: Server): number {
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return address.port;
}

async function relay(request: IncomingMessage, body: Buffer, response: ServerResponse): Promise<void> {
  const { host: _, connection: __, "content-length": ___, expect: ____, ...rest } = request.headers;
  const headers = Object.entries(rest).flatMap(([name, value]): [string, string][] =>
    typeof value === "string" ? [[name, value]] : [],
  );
  const answer = await fetch(`http://127.0.0.1:${bench.sqs.port}${request.url}`, {
    method: "POST",
    headers,
    body: new Uint8Array(body),
  });
  response.writeHead(answer.status, { "content-type": "application/x-amz-json-1.0" });
  response.end(Buffer.from(await answer.arrayBuffer()));
}
