import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { inspect } from "node:util";
import * as z from "zod";
import { folderVault, keyFolder } from "../../shared/cards/folder-vault.ts";
import { MAX_SUCCESSIONS } from "../../shared/cards/identity.ts";
import { keyVault } from "../../shared/cards/key-vault.ts";
import { chainOf, currentKey, ensureKey, type KeyVault, rotateKey } from "../../shared/cards/keys.ts";
import { secretVault } from "../../shared/cards/secret-vault.ts";
import { KeyError, SigningKey } from "../../shared/cards/signing-key.ts";
import { leadsTo } from "../../shared/cards/succession.ts";
import { SecretError } from "../../shared/secrets/secrets.ts";
import { startSecretsManager, type TestSecretsManager } from "../support/secrets-manager.ts";

const NOW = new Date("2026-08-01T12:00:00Z");
const LATER = new Date("2026-09-01T12:00:00Z");

const dataDir = mkdtempSync(join(tmpdir(), "sluice-keys-"));
let manager: TestSecretsManager;
before(async () => {
  manager = await startSecretsManager();
});
after(async () => {
  await manager.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

let uses = 0;
const newFolder = () => keyFolder(join(dataDir, String(++uses)));
function newSecret(): string {
  const name = `acme/signing-${++uses}`;
  manager.declare(name);
  return name;
}

const isKeyError =
  (code: string, ...texts: RegExp[]) =>
  (error: unknown) => {
    assert.ok(error instanceof KeyError);
    assert.equal(error.code, code);
    for (const text of texts) assert.match(error.message, text);
    return true;
  };

/** Both kinds of vault, each with several of its own at the same place. */
const KINDS: Readonly<Record<string, () => () => KeyVault>> = {
  "a folder": () => {
    const folder = newFolder();
    return () => folderVault(folder);
  },
  "a secret": () => {
    const name = newSecret();
    return () => secretVault(name, { fresh: true });
  },
};

for (const [kind, place] of Object.entries(KINDS))
  describe(`a signing key in ${kind}`, () => {
    test("is made once, whoever asks at the same time", async () => {
      const vault = place();
      assert.equal(await currentKey(vault()), undefined);
      await assert.rejects(rotateKey(vault(), NOW), isKeyError("key_missing"));
      const made = await Promise.all(Array.from({ length: 8 }, () => ensureKey(vault(), NOW)));
      assert.equal(new Set(made.map(({ did }) => did)).size, 1);
      const known = await currentKey(vault());
      assert.deepEqual([known?.did, known?.since, known?.successions], [made[0]?.did, NOW.toISOString(), []]);
      assert.equal((await ensureKey(vault(), LATER)).since, NOW.toISOString());
    });

    test("is rotated by one alone, and the old key says so", async () => {
      const vault = place();
      const first = await ensureKey(vault(), NOW);
      const tries = await Promise.allSettled(Array.from({ length: 4 }, () => rotateKey(vault(), LATER)));
      const done = tries.flatMap((of) => (of.status === "fulfilled" ? [of.value] : []));
      const current = await currentKey(vault());
      assert.ok(current);
      // Who comes when another is through rotates what that one has made.
      assert.ok(done.length >= 1);
      assert.equal(done.filter(({ old }) => old.did === first.did).length, 1);
      for (const of of tries) if (of.status === "rejected") isKeyError("key_changed")(of.reason);
      assert.notEqual(current.did, first.did);
      assert.equal(current.since, LATER.toISOString());
      assert.ok(await leadsTo(first.did, current.did, current.successions));
      const [step] = await chainOf(current);
      assert.deepEqual([step?.from, step?.at], [first.did, LATER.toISOString()]);
    });

    test("keeps the last statements alone", async () => {
      const vault = place();
      const dids = [(await ensureKey(vault(), NOW)).did];
      for (let i = 0; i <= MAX_SUCCESSIONS; i++) dids.push((await rotateKey(vault(), LATER)).key.did);
      const current = await currentKey(vault());
      assert.ok(current);
      assert.deepEqual(
        (await chainOf(current)).map(({ to }) => to),
        dids.slice(-MAX_SUCCESSIONS),
      );
      const [lost, kept] = dids;
      assert.ok(lost && kept);
      assert.equal(await leadsTo(lost, current.did, current.successions), false);
      assert.equal(await leadsTo(kept, current.did, current.successions), true);
    });
  });

test("in a folder only its owner can read it, and a rotated key is gone", async () => {
  const folder = newFolder();
  await ensureKey(folderVault(folder), NOW);
  const { old, key } = await rotateKey(folderVault(folder), LATER);
  assert.deepEqual(readdirSync(folder), ["2.json"]);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.equal(statSync(join(folder, "2.json")).mode & 0o777, 0o600);
  const { d } = z.object({ d: z.string() }).parse(old.key.export({ format: "jwk" }));
  assert.ok(!readFileSync(join(folder, "2.json"), "utf8").includes(d));
  // One that died before it could remove the old one.
  writeFileSync(join(folder, "1.json"), old.sealed());
  assert.equal((await currentKey(folderVault(folder)))?.did, key.did);
  await rotateKey(folderVault(folder), LATER);
  assert.deepEqual(readdirSync(folder), ["3.json"]);
});

test("a key that cannot be read is an error that holds nothing of it, and is never replaced", async () => {
  const folder = newFolder();
  const key = await ensureKey(folderVault(folder), NOW);
  const path = join(folder, "1.json");
  const kept = z.object({ jwk: z.looseObject({ d: z.string() }) }).loose();
  const whole = kept.parse(JSON.parse(key.sealed()));
  const other = kept.parse(JSON.parse(SigningKey.make(NOW).sealed()));
  const texts = [
    "",
    key.sealed().slice(0, -1),
    JSON.stringify({ ...whole, version: 2 }),
    JSON.stringify({ ...whole, jwk: { ...whole.jwk, d: other.jwk.d } }),
    JSON.stringify({ ...whole, since: "yesterday" }),
    JSON.stringify({ ...whole, successions: Array.from({ length: MAX_SUCCESSIONS + 1 }, () => "x") }),
    JSON.stringify({ ...whole, successions: ["x".repeat(2_049)] }),
  ];
  const withoutKey = (error: unknown) => {
    assert.ok(error instanceof Error);
    assert.ok(![whole.jwk.d, other.jwk.d].some((d) => inspect(error, { depth: 9 }).includes(d)));
    return isKeyError("key_unreadable", /the folder .*expected/)(error);
  };
  for (const text of texts) {
    writeFileSync(path, text);
    await assert.rejects(ensureKey(folderVault(folder), NOW), withoutKey);
    await assert.rejects(rotateKey(folderVault(folder), NOW), withoutKey);
    assert.equal(readFileSync(path, "utf8"), text);
  }
});

test("no way of printing a key shows what is private of it", async () => {
  const key = SigningKey.make(NOW);
  const { d } = z.object({ d: z.string() }).parse(key.key.export({ format: "jwk" }));
  assert.ok(key.sealed().includes(d));
  for (const shown of [
    JSON.stringify({ key }),
    inspect({ key }, { depth: 9, showHidden: true }),
    String(key),
  ])
    assert.ok(!shown.includes(d));
  assert.deepEqual(Object.keys(key).toSorted(), ["did", "since", "successions"]);
});

test("a secret that may not be read or written says so, and what to allow", async () => {
  const name = newSecret();
  manager.secrets.set(name, { error: "AccessDeniedException" });
  const denied = (action: string) => (error: unknown) => {
    assert.ok(error instanceof SecretError);
    assert.equal(error.code, "secret_denied");
    assert.ok(error.message.includes(`allow secretsmanager:${action}`));
    return true;
  };
  await assert.rejects(ensureKey(secretVault(name), NOW), denied("GetSecretValue"));
  await assert.rejects(secretVault(name).create("x"), denied("PutSecretValue"));
  const missing = secretVault("acme/nowhere");
  await assert.rejects(
    ensureKey(missing, NOW),
    (error) => error instanceof SecretError && error.code === "secret_missing",
  );
});

test("a function finds the key where the local host says, else where the stack does", async () => {
  const folder = newFolder();
  const name = newSecret();
  const both = { SIGNING_KEY_FOLDER: folder, SIGNING_KEY_SECRET: name };
  assert.match((await keyVault(both))?.label ?? "", /folder/);
  assert.equal((await keyVault({ SIGNING_KEY_SECRET: name }))?.label, `the secret ${name}`);
  assert.equal(await keyVault({}), undefined);
});
