import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, type TestContext, test } from "node:test";
import { connectNats, NatsError, NatsLink } from "../../shared/nats/index.ts";
import { readSecret, SecretError } from "../../shared/secrets/secrets.ts";
import { startNats } from "../support/nats-server.ts";
import { jwtOperator, nkeyUser, startConfiguredNats } from "../support/nats-users.ts";
import { startSecretsManager, type TestSecretsManager } from "../support/secrets-manager.ts";
import { until } from "../support/until.ts";

/** May be missing. */
const OPENSSL = "openssl";

let manager: TestSecretsManager;
let name = "";
let uses = 0;

before(async () => {
  manager = await startSecretsManager();
});
after(() => manager.stop());
// What was read is kept for as long as the process lives.
beforeEach(() => {
  name = `acme/nats-${++uses}`;
  manager.asked.length = 0;
});

const settings = (url: string) => ({ servers: [url], credentials: `secret:${name}`, name: "test" });

async function connects(url: string, text: string): Promise<void> {
  manager.secrets.set(name, { text });
  const nc = await connectNats(settings(url));
  await nc.flush();
  await nc.close();
}

function isNatsError(code: string, ...texts: RegExp[]) {
  return (error: unknown) => {
    assert.ok(error instanceof NatsError);
    assert.equal(error.code, code);
    for (const text of texts) assert.match(error.message, text);
    return true;
  };
}

test("a secret holds a token, user and password, an nkey seed or .creds, as a file does", async () => {
  const { publicKey, seed } = nkeyUser();
  const operator = await jwtOperator();
  const creds = await operator.creds("functions");
  const cases: [object, string[]][] = [
    [{ authorization: { token: "s3cret" } }, ["s3cret\n", '{"token":"s3cret"}']],
    [{ authorization: { user: "u", password: "p w" } }, ['{"user":"u","password":"p w"}']],
    [{ authorization: { users: [{ nkey: publicKey }] } }, [`${seed}\n`, JSON.stringify({ nkey: seed })]],
    [operator.config, [creds, creds.trimEnd(), creds.replaceAll("\n", "\r\n"), JSON.stringify({ creds })]],
  ];
  for (const [config, texts] of cases) {
    const server = await startConfiguredNats(config);
    for (const text of texts) {
      name = `acme/nats-${++uses}`;
      await connects(server.url, text);
    }
    await assert.rejects(connectNats({ ...settings(server.url), credentials: "none" }));
    await server.stop();
  }
});

interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly pem: string;
  readonly key: string;
}

/** A certificate for this machine that it has signed itself; nothing where openssl makes none. */
async function certificate(dir: string, id: string): Promise<Certificate | undefined> {
  const [certFile, keyFile] = [join(dir, `${id}.pem`), join(dir, `${id}-key.pem`)];
  const names = ["-subj", `/CN=${id}`, "-addext", "subjectAltName=IP:127.0.0.1"];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const keys = [...kind, "-keyout", keyFile, "-out", certFile, "-days", "2"];
  if (spawnSync(OPENSSL, ["req", "-x509", ...keys, ...names]).status !== 0) return undefined;
  return { certFile, keyFile, pem: await readFile(certFile, "utf8"), key: await readFile(keyFile, "utf8") };
}

/** Two of them, in a folder that goes with the test. */
async function twoCertificates(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), "sluice-tls-"));
  t.after(() => rm(dir, { recursive: true }));
  const [one, other] = [await certificate(dir, "one"), await certificate(dir, "other")];
  if (one !== undefined && other !== undefined) return { one, other };
  t.skip("openssl makes no certificate here");
  return undefined;
}

test("a secret may also hold whom to trust, and the certificate that a server asks for", async (t) => {
  const made = await twoCertificates(t);
  if (made === undefined) return;
  const { certFile, keyFile, pem, key } = made.one;
  const server = await startConfiguredNats({
    tls: { cert_file: certFile, key_file: keyFile, ca_file: certFile, verify: true },
    authorization: { token: "s3cret" },
  });
  t.after(() => server.stop());
  await connects(server.url, JSON.stringify({ token: "s3cret", ca: pem, cert: pem, key }));
  name = `acme/nats-${++uses}`;
  const wary = connects(server.url, JSON.stringify({ token: "s3cret", cert: pem, key }));
  await assert.rejects(wary, isNatsError("nats_unreachable", /certificate/));
});

test("certificates in a secret are replaced as credentials are: it is read again when one side does not take them", async (t) => {
  const made = await twoCertificates(t);
  if (made === undefined) return;
  const { one, other } = made;
  // What the server shows, and whose certificates it takes.
  const tls = (shown: Certificate, takes: Certificate) => ({
    tls: { cert_file: shown.certFile, key_file: shown.keyFile, ca_file: takes.certFile, verify: true },
  });
  const text = (ca: Certificate, { pem, key }: Certificate) => JSON.stringify({ ca: ca.pem, cert: pem, key });
  for (const [config, replaced] of [
    [tls(other, one), text(other, one)],
    [tls(one, other), text(one, other)],
  ] as const) {
    name = `acme/nats-${++uses}`;
    const [before, after] = [await startConfiguredNats(tls(one, one)), await startConfiguredNats(config)];
    t.after(() => Promise.all([before.stop(), after.stop()]));
    await connects(before.url, text(one, one));
    manager.secrets.set(name, { text: replaced });
    manager.asked.length = 0;
    await (await connectNats(settings(after.url))).close();
    assert.deepEqual(manager.asked, [name]);
  }
});

test("certificates that are damaged, or a key of another, are told as such, and not quoted", async (t) => {
  const made = await twoCertificates(t);
  if (made === undefined) return;
  const { one, other } = made;
  const cut = (pem: string) => pem.replace(/\n[^-]{40}/, "\n");
  const own = { cert: one.pem, key: one.key };
  for (const wrong of [
    { token: "t", ca: cut(one.pem) },
    { ...own, cert: cut(one.pem) },
    { ...own, key: cut(one.key) },
    { ...own, key: other.key },
  ]) {
    name = `acme/nats-${++uses}`;
    manager.secrets.set(name, { text: JSON.stringify(wrong) });
    const expected = isNatsError("nats_credentials", /(ca|ca, cert or key) in it is damaged/);
    await assert.rejects(connectNats(settings("tls://127.0.0.1:1")), expected);
  }
});

test("a secret that was made from a file is read as its text", async () => {
  const server = await startNats(["--auth", "s3cret"]);
  manager.secrets.set(name, { bytes: Buffer.from("s3cret\n") });
  await (await connectNats(settings(server.url))).close();
  await server.stop();
});

test("a secret is asked for once, and again when its credentials are refused: it was replaced meanwhile", async () => {
  const server = await startConfiguredNats({ authorization: { token: "first" } });
  await connects(server.url, "first");
  await connects(server.url, "first");
  assert.deepEqual(manager.asked, [name]);

  manager.secrets.set(name, { text: "second" });
  await connectNats(settings(server.url)).then((nc) => nc.close());
  assert.deepEqual(manager.asked, [name], "what was read still serves");

  await server.reconfigure({ authorization: { token: "second" } });
  await until("the new token counts", () =>
    connectNats({ ...settings(server.url), credentials: "none" }).then(
      () => false,
      () => true,
    ),
  );
  await connectNats(settings(server.url)).then((nc) => nc.close());
  assert.deepEqual(manager.asked, [name, name]);
  await server.stop();
});

test("a link whose credentials are replaced while it is open goes on with the new ones", async () => {
  const server = await startConfiguredNats({ authorization: { user: "u", password: "first" } });
  manager.secrets.set(name, { text: '{"user":"u","password":"first"}' });
  const link = new NatsLink(() => settings(server.url));
  const first = await link.get();
  await first.flush();

  manager.secrets.set(name, { text: '{"user":"u","password":"second"}' });
  await server.reconfigure({ authorization: { user: "u", password: "second" } });
  await until("the server has thrown it out", () => !link.connected);
  const second = await link.get();
  await second.flush();
  assert.notEqual(second, first);
  assert.deepEqual(manager.asked, [name, name]);
  await link.close();
  await server.stop();
});

test("credentials that are refused twice are an error that names the secret and nothing of it", async () => {
  const server = await startNats(["--auth", "s3cret"]);
  manager.secrets.set(name, { text: "hunter2" });
  await assert.rejects(connectNats(settings(server.url)), (error: unknown) => {
    isNatsError("nats_refused", /refused the credentials/, new RegExp(`check the secret ${name}`))(error);
    assert.ok(error instanceof Error && !`${error.stack}${error.cause}`.includes("hunter2"));
    return true;
  });
  assert.deepEqual(manager.asked, [name, name]);
  await server.stop();
});

test("what is wrong with a secret is said, and what to do", async () => {
  const fails = async (error: string, ...texts: RegExp[]) => {
    name = `acme/nats-${++uses}`;
    if (error !== "") manager.secrets.set(name, { error });
    const expected = isNatsError("nats_credentials", new RegExp(`secret ${name}: `), ...texts);
    await assert.rejects(connectNats(settings("nats://127.0.0.1:1")), expected);
  };
  await fails("", /has none of this name/);
  await fails("InvalidRequestException", /no value to be read .*; restore it/);
  await fails("AccessDeniedException", /may not be read .*; allow secretsmanager:GetSecretValue/);
  await fails("DecryptionFailure", /cannot be decrypted .*; allow kms:Decrypt/);
  await fails("InternalServiceError", /cannot be asked/);
});

test("a secret that holds no credentials is an error that does not quote it", async () => {
  const { seed } = nkeyUser();
  const creds = await (await jwtOperator()).creds("functions");
  const texts = [
    "two hunter2",
    '{"user":"hunter2"}',
    '{"hunter2":1}',
    `{"token":"hunter2","nkey":"${seed}"}`,
    '{"token":"hunter2","cert":"-----BEGIN CERTIFICATE-----"}',
    `SU${"A".repeat(56)}`,
    creds.replace(/SU[A-Z2-7]{56}/, "hunter2"),
  ];
  for (const text of texts) {
    name = `acme/nats-${++uses}`;
    manager.secrets.set(name, { text });
    await assert.rejects(connectNats(settings("nats://127.0.0.1:1")), (error: unknown) => {
      isNatsError("nats_credentials", new RegExp(`secret:${name}: |secret ${name}: `))(error);
      assert.ok(error instanceof Error && !`${error.stack}${error.cause}`.includes("hunter2"));
      return true;
    });
  }
});

test("a secret that cannot be read says why by a code", async () => {
  const fails = (code: string) =>
    assert.rejects(readSecret(name), (error) => error instanceof SecretError && error.code === code);
  await fails("secret_missing");
  manager.secrets.set(name, { error: "AccessDeniedException" });
  await fails("secret_denied");
  manager.secrets.set(name, { error: "InternalServiceError" });
  await fails("secret_unreachable");
  manager.secrets.set(name, { bytes: Uint8Array.of(0xff) });
  await fails("secret_unreadable");
  manager.secrets.set(name, { text: "" });
  await fails("secret_unreadable");
  manager.secrets.set(name, { text: "value" });
  assert.equal(await readSecret(name, { fresh: true }), "value");
  manager.secrets.set(name, { text: "other" });
  assert.deepEqual(await Promise.all([readSecret(name), readSecret(name)]), ["value", "value"]);
  assert.equal(await readSecret(name, { fresh: true }), "other");
});
