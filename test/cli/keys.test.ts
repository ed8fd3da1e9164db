import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import * as z from "zod";
import { CliError, EXIT } from "../../cli/errors.ts";
import { readHome } from "../../cli/home.ts";
import { openVault, said } from "../../cli/keys/open.ts";
import { folderVault, keyFolder } from "../../shared/cards/folder-vault.ts";
import { chainOf, currentKey, ensureKey } from "../../shared/cards/keys.ts";
import { secretVault } from "../../shared/cards/secret-vault.ts";
import { SigningKey } from "../../shared/cards/signing-key.ts";
import { type PlayedAws, playAws } from "../support/aws.ts";
import { startSecretsManager, type TestSecretsManager } from "../support/secrets-manager.ts";
import { onTerminal, skip } from "./on-terminal.ts";
import { run } from "./run.ts";

const NOW = new Date("2026-08-01T12:00:00Z");
const STACK = "sluice-acme";
const SECRET = "arn:aws:secretsmanager:us-east-1:000000000000:secret:SigningKey-AbCdEf";

/** The folder of an operator, where a local host runs. */
const cwd = mkdtempSync(join(tmpdir(), "sluice-keys-"));
const dataDir = join(cwd, ".sluice");
const local = folderVault(keyFolder(dataDir));
const deployed = secretVault(SECRET, { fresh: true });
let aws: PlayedAws;
let manager: TestSecretsManager;
before(async () => {
  const nobody = "http://127.0.0.1:1";
  mkdirSync(dataDir);
  writeFileSync(join(cwd, "agents.yaml"), "deployment: acme\n");
  writeFileSync(
    join(dataDir, "host.json"),
    JSON.stringify({
      ...{ pid: process.pid, dataDir, nats: "nats://127.0.0.1:1", dynamodb: nobody, s3: nobody, sqs: nobody },
      ...{ table: "tasks", bucket: "values", outputs: {} },
    }),
  );
  aws = await playAws({ dynamodb: nobody, sqs: nobody });
  aws.played.stacks[STACK] = {
    outputs: { TableName: "tasks", BucketName: "values", SigningKeySecret: SECRET },
  };
  aws.played.stacks["sluice-old"] = { outputs: { TableName: "tasks", BucketName: "values" } };
  manager = await startSecretsManager();
});
after(async () => {
  await manager?.stop();
  await aws?.[Symbol.asyncDispose]();
  rmSync(cwd, { recursive: true, force: true });
});

const sluice = (...args: string[]) =>
  run(["keys", ...args], { cwd, env: { ...aws.env, AWS_ENDPOINT_URL_SECRETS_MANAGER: manager.url } });
const told = async (...args: string[]) => {
  const { code, stderr, json } = await sluice(...args, "--json");
  assert.equal(code, 0, stderr);
  return z.tuple([z.looseObject({ did: z.string() })]).parse(json())[0];
};

test("without a key there is nothing to show, and none to replace", async () => {
  const shown = await sluice("show");
  assert.deepEqual([shown.code, shown.stdout], [0, ""]);
  assert.match(shown.stderr, /no signing key yet/);
  const rotated = await sluice("rotate", "--yes");
  assert.equal(rotated.code, 1);
  assert.match(rotated.stderr, /holds no signing key: it is made when the first card is signed/);
});

test("shows the local host's key, and replaces it", async () => {
  const first = await ensureKey(local, NOW);
  assert.deepEqual(await told("show"), { did: first.did, since: NOW.toISOString(), successions: [] });
  const refused = await sluice("rotate");
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /without a terminal --yes is required/);
  assert.equal((await currentKey(local))?.did, first.did);

  const { did, previous } = await told("rotate", "--yes");
  const key = await currentKey(local);
  assert.ok(key);
  assert.deepEqual([did, previous], [key.did, first.did]);
  assert.equal((await chainOf(key))[0]?.from, first.did);
  const { stdout, stderr } = await sluice("show");
  assert.match(
    stdout,
    new RegExp(`^${did}\n  in use since .*\n  follows ${first.did}, which said so on .*\n$`),
  );
  const [file = ""] = readdirSync(keyFolder(dataDir));
  const { d } = z
    .object({ jwk: z.object({ d: z.string() }) })
    .parse(JSON.parse(readFileSync(join(keyFolder(dataDir), file), "utf8"))).jwk;
  assert.ok(!`${stdout}${stderr}`.includes(d));
});

test("asks a person first, and takes no for an answer", { skip }, async () => {
  const key = await ensureKey(local, NOW);
  for (const [answer, code, same] of [["no", 1, true] as const, ["yes", 0, false] as const]) {
    const terminal = onTerminal("keys rotate", cwd);
    terminal.type(`${answer}\n`);
    assert.equal(await terminal.exitCode(), code, terminal.shown());
    assert.match(terminal.shown(), /Replace the signing key did:key:z6Mk/);
    assert.equal((await currentKey(local))?.did === key.did, same);
  }
});

test("shows and replaces a deployed stack's, in its secret", async () => {
  manager.declare(SECRET);
  const first = await ensureKey(deployed, NOW);
  const { did } = await told("rotate", "--yes", "--stack", STACK);
  assert.equal((await currentKey(deployed))?.did, did);
  const { successions } = await told("show", "--stack", STACK);
  assert.deepEqual(z.array(z.looseObject({ from: z.string() })).parse(successions)[0]?.from, first.did);
});

test("says what is wrong with a key, a secret or a stack", async () => {
  Object.assign(process.env, aws.env, { AWS_ENDPOINT_URL_SECRETS_MANAGER: manager.url });
  const keyOf = async (stack: string) => said(currentKey(await openVault({}, stack)));
  const is = (exitCode: number, message: RegExp) => (error: unknown) => {
    assert.ok(error instanceof CliError);
    assert.equal(error.exitCode, exitCode);
    assert.match(error.message, message);
    return true;
  };
  manager.secrets.set(SECRET, { text: SigningKey.make(NOW).sealed().slice(1) });
  await assert.rejects(keyOf(STACK), is(EXIT.failed, /expected what Sluice keeps there/));
  manager.secrets.set(SECRET, { error: "AccessDeniedException" });
  await assert.rejects(keyOf(STACK), is(EXIT.unreachable, /allow secretsmanager:GetSecretValue/));
  await assert.rejects(keyOf("sluice-old"), is(EXIT.failed, /no output SigningKeySecret/));
  const file = join(cwd, "none");
  writeFileSync(file, "");
  await assert.rejects(
    said(currentKey(folderVault(file))),
    is(
      EXIT.failed,
      /^the folder of the signing key cannot be read or written: ENOTDIR: .*; the key is as it was$/,
    ),
  );
  rmSync(file);
  const { stack } = readHome(cwd);
  assert.ok(stack);
  const { dataDir: _, ...older } = stack;
  await assert.rejects(openVault({ stack: older }), is(EXIT.failed, /data folder/));
});
