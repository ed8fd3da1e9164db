import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { LocalStack } from "../../cli/home.ts";
import { confirmationKey, confirmationSecret } from "../../cli/policy/key.ts";
import { startSecretsManager } from "../support/secrets-manager.ts";

const folder = mkdtempSync(join(tmpdir(), "sluice-key-"));
const manager = await startSecretsManager();
after(async () => {
  await manager.stop();
  rmSync(folder, { recursive: true });
});

const outputs = { TableName: "t", BucketName: "b" };
const url = "http://127.0.0.1:1";
const local: LocalStack = {
  ...{ pid: 1, dynamodb: url, s3: url, table: "t", bucket: "b", outputs: {}, timeScale: 1 },
  dataDir: folder,
};
const onThisMachine = { label: "the local host", outputs, local };
const inAws = (name: string) => ({ label: name, outputs, deployed: { name, status: "CREATE_COMPLETE" } });

test("a local host's key is made once, in a file that only its owner may read", async () => {
  const keys = await Promise.all([1, 2, 3].map(() => confirmationKey(onThisMachine)));
  assert.deepEqual(new Set(keys.map((key) => Buffer.from(key).toString("hex"))).size, 1);
  assert.equal(keys[0]?.length, 32);
  assert.deepEqual(readdirSync(folder), ["confirmation.key"]);
  const path = join(folder, "confirmation.key");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  chmodSync(path, 0o640);
  await assert.rejects(confirmationKey(onThisMachine), /only its owner may read/);
  chmodSync(path, 0o600);
  writeFileSync(path, "short");
  await assert.rejects(confirmationKey(onThisMachine), /expected 32 bytes as base64url/);
});

test("a stack's key is a secret of its own, made when it is first needed", async () => {
  const key = await confirmationKey(inAws("sluice-acme"));
  assert.equal(key.length, 32);
  assert.deepEqual([...manager.secrets.keys()], ["sluice/sluice-acme/confirmation"]);
  assert.deepEqual(await confirmationKey(inAws("sluice-acme")), key);
  const other = await confirmationKey(inAws("sluice-other"));
  assert.notDeepEqual(other, key);
});

test("a key that may not be read is an error, and not made anew", async () => {
  manager.secrets.set(confirmationSecret("sluice-shut"), { error: "AccessDeniedException" });
  await assert.rejects(confirmationKey(inAws("sluice-shut")), /allow secretsmanager:GetSecretValue on it/);
});
