import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { parseCredentials } from "../../shared/nats/credentials.ts";
import { connectNats, ensureStreams, NatsError, NatsLink, publishOnStream } from "../../shared/nats/index.ts";
import { startNats } from "../support/nats-server.ts";
import { startSilentProxy } from "../support/silent-proxy.ts";
import { until } from "../support/until.ts";

const SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";

function isNatsError(code: string, text: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof NatsError);
    assert.equal(error.code, code);
    assert.match(error.message, text);
    return true;
  };
}

test("nobody at the address is a clear error", async () => {
  const server = await startNats();
  await server.stop();
  const settings = { servers: [server.url], credentials: "none", name: "test" };
  const expected = isNatsError("nats_unreachable", new RegExp(`${server.url} cannot be reached`));
  await assert.rejects(connectNats(settings), expected);
  await assert.rejects(new NatsLink(() => settings).get(), expected);
});

test("a server that takes connections and says nothing, or no more, keeps none of them", async () => {
  const open = new Set<Socket>();
  const info =
    '{"server_id":"S","version":"2.10.0","proto":1,"headers":true,"max_payload":1024,"tls_required":true}';
  const urls = [];
  const servers = [];
  for (const [scheme, greeting] of [
    ["nats", ""],
    ["tls", `INFO ${info}\r\n`],
  ] as const) {
    const server = createServer((socket) => {
      open.add(socket.resume().once("error", () => {}));
      socket.once("close", () => open.delete(socket));
      socket.write(greeting);
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    servers.push(server);
    const { port } = server.address() as AddressInfo;
    urls.push(`${scheme}://127.0.0.1:${port}`);
  }
  const expected = isNatsError("nats_unreachable", /cannot be reached \(timeout\)/);
  await Promise.all(
    urls.map(async (url) =>
      assert.rejects(connectNats({ servers: [url], credentials: "none", name: "test" }), expected),
    ),
  );
  await until("no connection is open", () => open.size === 0, { withinMs: 10_000 });
  for (const server of servers) server.close();
});

test("replies come to inboxes that carry the client's name", async () => {
  const server = await startNats();
  const nc = await connectNats({ servers: [server.url], credentials: "none", name: "sluice acme.x" });
  const seen = new Promise<string | undefined>((resolve) => {
    nc.subscribe("ask", { callback: (_, message) => resolve(message.reply) });
  });
  nc.request("ask", "", { timeout: 500 }).catch(() => undefined);
  assert.match((await seen) ?? "", /^_INBOX_sluice-acme\.x\./);
  await nc.close();
  await server.stop();
});

test("a token, and a user with a password, come from a file and are refused when wrong", async () => {
  const dir = await mkdtemp(join(tmpdir(), "sluice-creds-"));
  const file = async (text: string) => {
    const path = join(dir, "login");
    await writeFile(path, text);
    return `file:${path}`;
  };
  const cases: [string[], string, string][] = [
    [["--auth", "s3cret"], "s3cret\n", "wrong"],
    [["--user", "u", "--pass", "p w"], '{"user":"u","password":"p w"}', '{"user":"u","password":"x"}'],
  ];
  for (const [args, right, wrong] of cases) {
    const server = await startNats(args);
    const settings = { servers: [server.url], name: "test" };
    const nc = await connectNats({ ...settings, credentials: await file(right) });
    await nc.flush();
    await nc.close();
    const refused = isNatsError("nats_refused", /refused the credentials/);
    await assert.rejects(connectNats({ ...settings, credentials: await file(wrong) }), refused);
    await assert.rejects(connectNats({ ...settings, credentials: "none" }), refused);
    await server.stop();
  }
  await rm(dir, { recursive: true });
});

test("a credentials file is read for what it is, and never quoted", () => {
  assert.deepEqual(Object.keys(parseCredentials(SEED, "f")), ["authenticator"]);
  assert.deepEqual(parseCredentials(" abc \n", "f"), { token: "abc" });
  assert.deepEqual(parseCredentials('{"user":"u","password":"p"}', "f"), { user: "u", pass: "p" });
  const creds = `-----BEGIN NATS USER JWT-----\nx\n------END NATS USER JWT------\n-----BEGIN USER NKEY SEED-----\n${SEED}\n------END USER NKEY SEED------`;
  assert.deepEqual(Object.keys(parseCredentials(creds, "f")), ["authenticator"]);
  for (const wrong of ["", "two words", '{"user":"u"}', '{"user":"u","password":"p","more":1}', "{"])
    assert.throws(
      () => parseCredentials(wrong, "file:/f"),
      isNatsError("nats_credentials", /file:\/f.*expected/),
    );
});

test("credentials that cannot be used say why", async () => {
  const settings = { servers: ["nats://127.0.0.1:1"], name: "test" };
  const fails = (credentials: string, text: RegExp) =>
    assert.rejects(connectNats({ ...settings, credentials }), isNatsError("nats_credentials", text));
  await fails("file:/no/such", /\/no\/such: cannot be read/);
  await fails("password", /expected none, file:PATH/);
});

test("a link keeps one connection, replaces it when it is dead, and survives a restart", async () => {
  const server = await startNats();
  let now = 0;
  const link = new NatsLink(
    () => ({ servers: [server.url], credentials: "none", name: "test" }),
    () => now,
  );
  const [first, same] = await Promise.all([link.get(), link.get()]);
  assert.equal(first, same);
  now += 60_000;
  assert.equal(await link.get(), first);

  await first.close();
  const second = await link.get();
  assert.notEqual(second, first);

  await server.kill();
  now += 60_000;
  await assert.rejects(link.get(), isNatsError("nats_unreachable", /cannot be reached/));
  await server.restart();
  const third = await link.get();
  await third.flush();
  await link.close();
  assert.equal(third.isClosed(), true);
  await link.close();
  await server.stop();
});

test("a connection that is silent, not closed, is replaced after a pause", async () => {
  let silent = false;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    if (!silent)
      socket.write('INFO {"server_id":"x","version":"2.10.0","proto":1,"max_payload":1048576}\r\n');
    socket.on("data", (data) => {
      if (!silent && data.toString().includes("PING")) socket.write("PONG\r\n");
    });
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  let now = 0;
  const settings = { servers: [`nats://127.0.0.1:${port}`], credentials: "none", name: "test" };
  const link = new NatsLink(
    () => settings,
    () => now,
  );
  const first = await link.get();
  silent = true;
  now += 60_000;
  await assert.rejects(link.get(), isNatsError("nats_unreachable", /cannot be reached/));
  assert.equal(first.isClosed(), true);
  silent = false;
  assert.notEqual(await link.get(), first);
  await link.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});

test("a thawed sandbox whose connection has died without a word publishes on a new one, after one probe", async () => {
  const server = await startNats();
  const proxy = await startSilentProxy(server.url);
  let now = 0;
  const link = new NatsLink(
    () => ({ servers: [proxy.url], credentials: "none", name: "test" }),
    () => now,
  );
  const first = await link.get();
  await ensureStreams(await jetstreamManager(first));
  const publish = async (msgId: string) =>
    publishOnStream(await link.get(), { subject: "a2a.v1.event.a.b.task_1.status", msgId, body: "{}" });
  await publish("1");

  proxy.silence();
  now += 5_000;
  assert.equal(await link.get(), first, "no doubt yet");
  now += 5_001;
  await Promise.all([publish("2"), publish("3")]);
  assert.equal(proxy.made, 2);
  assert.notEqual(await link.get(), first);
  assert.equal(first.isClosed(), true);
  await until("its socket is closed as well", () => proxy.open === 1);
  const { state } = await (await jetstreamManager(await link.get())).streams.info("A2A_EVENTS");
  assert.equal(state.messages, 3);

  now += 60_000;
  await publish("4");
  assert.equal(proxy.made, 2, "one that lives is kept");
  await link.close();
  await proxy.stop();
  await server.stop();
});
