import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { type AgentCardsDeps, keepAgentCards } from "../../../functions/cards/agent-cards.ts";
import { dynamoNotes, SIGNED } from "../../../shared/cards/dynamodb-notes.ts";
import { readLedger, readSigned } from "../../../shared/cards/dynamodb-signed.ts";
import { folderVault } from "../../../shared/cards/folder-vault.ts";
import { currentKey, type KeyVault, rotateKey } from "../../../shared/cards/keys.ts";
import { secretVault } from "../../../shared/cards/secret-vault.ts";
import { verifyCard } from "../../../shared/cards/verifying.ts";
import type { HostedAgent } from "../../../shared/config/deployment.ts";
import { readItems } from "../../../shared/tasks/dynamodb-batch.ts";
import { hosted } from "../../cards/support.ts";
import { startSecretsManager, type TestSecretsManager } from "../../support/secrets-manager.ts";
import { startTable } from "../../support/table.ts";

/** The signed cards over a real table, with the key in a folder, as on one machine, or in a secret. */

const NOW = Date.UTC(2030, 0, 1);
const dir = mkdtempSync(join(tmpdir(), "sluice-agent-cards-"));
let manager: TestSecretsManager;
let table: Awaited<ReturnType<typeof startTable>>;
before(async () => {
  [table, manager] = await Promise.all([startTable(), startSecretsManager()]);
});
after(async () => {
  await table.stop();
  await manager.stop();
  rmSync(dir, { recursive: true });
});

let uses = 0;
let vault: KeyVault = folderVault(join(dir, "first"));
const told = new Map<string, number>();
const said: string[] = [];
const telemetry = {
  debug() {},
  info: (message: string) => void said.push(message),
  warn() {},
  error: (message: string) => void said.push(message),
  count: (name: string) => void told.set(name, (told.get(name) ?? 0) + 1),
  measure() {},
};
afterEach(async () => {
  vault = folderVault(join(dir, String(++uses)));
  told.clear();
  said.length = 0;
  await run([]);
});

const deps = (over: Partial<AgentCardsDeps> = {}): AgentCardsDeps => ({
  vault: async () => vault,
  access: table.access,
  deployment: { nats: { servers: [], credentials: "none" } },
  servers: ["tls://nats.example:4222"],
  telemetry,
  now: () => NOW,
  ...over,
});
const signed = async () => (await dynamoNotes(table.access).read([])).signed;
const ledger = async () => readLedger(await signed());
/** A run that has found these agents, and what is signed by then. */
async function run(agents: readonly HostedAgent[], over: Partial<AgentCardsDeps> = {}): Promise<void> {
  await keepAgentCards(deps(over), { agents, signed: await signed() });
}
const kept = (runtime: string) => readSigned(table.access, runtime);
async function verdict(runtime: string, pinned?: Parameters<typeof verifyCard>[1]) {
  return await verifyCard(JSON.parse((await kept(runtime))?.card ?? "null"), pinned);
}
const didNow = async () => (await currentKey(vault))?.did ?? assert.fail("no key");

/** Lets a run end at a write to the table, before that is made or before its answer is heard. */
async function dyingAt(write: number, when: "before" | "after", run: () => Promise<void>): Promise<void> {
  const { middlewareStack } = table.access.client;
  let writes = 0;
  middlewareStack.add(
    (next, { commandName = "" }) =>
      async (args) => {
        const dies = commandName.startsWith("TransactWrite") && ++writes === write;
        if (dies && when === "before") throw new Error("killed");
        const answer = await next(args);
        if (dies) throw new Error("killed");
        return answer;
      },
    { step: "initialize", name: "death" },
  );
  try {
    await run();
  } finally {
    middlewareStack.remove("death");
  }
}

const [support, other] = [hosted("support"), hosted("other")];
const many = Array.from({ length: 12 }, (_, i) => hosted(`a${i}`));

test("each agent's card is kept, signed by the deployment's key, which is made for the first", async () => {
  assert.equal(await currentKey(vault), undefined);
  await run([support, other]);
  const did = await didNow();
  for (const { runtime } of [support, other]) {
    const found = await verdict(runtime, { did });
    assert.equal(found.state === "valid" && found.key, did);
    assert.equal((await kept(runtime))?.signedAt, NOW);
  }
  assert.equal((await ledger())?.did, did);
});

test("what has not changed is neither signed nor written again", async () => {
  await run([support, other]);
  const before = await ledger();
  const card = await kept(support.runtime);
  await dyingAt(1, "before", () => run([support, other], { now: () => NOW + 60_000 }));
  assert.deepEqual([await ledger(), await kept(support.runtime)], [before, card]);
  await run([support, { ...other, version: "2.0.0" }], { now: () => NOW + 60_000 });
  assert.equal((await ledger())?.version, (before?.version ?? 0) + 1);
  assert.deepEqual(await kept(support.runtime), card);
  assert.equal((await kept(other.runtime))?.signedAt, NOW + 60_000);
});

test("an agent that is taken out, disabled or no longer to be found has no card", async () => {
  const as = (policy: Partial<HostedAgent["policy"]>) => ({
    ...other,
    policy: { ...other.policy, ...policy },
  });
  for (const agents of [
    [support],
    [support, as({ enabled: false })],
    [support, as({ discoverable: false })],
  ]) {
    await run([support, other]);
    await run(agents);
    assert.equal(await kept(other.runtime), undefined);
    assert.notEqual(await kept(support.runtime), undefined);
    assert.deepEqual(Object.keys((await ledger())?.digests ?? {}), [support.runtime]);
  }
});

test("after a rotation all are signed by the new key, which their readers follow to", async () => {
  await run([support]);
  const { old, key } = await rotateKey(vault, new Date(NOW + 1));
  await run([support]);
  assert.deepEqual(await verdict(support.runtime, { did: old.did }), {
    ...(await verdict(support.runtime, { did: key.did })),
    succeeded: old.did,
  });
});

test("a key that is kept in memory signs no more once another has signed by its successor", async () => {
  const name = `acme/signing-${uses}`;
  manager.declare(name);
  vault = secretVault(name, { fresh: true });
  const inMemory = { vault: async (fresh: boolean) => secretVault(name, { fresh }) };
  await run([support], inMemory);
  const { old, key } = await rotateKey(vault, new Date(NOW + 1));
  // What another process has read does not come into this one's memory.
  const stale = { read: async () => old.sealed(), create: vault.create, replace: vault.replace, label: "x" };
  const sandbox = { vault: async (fresh: boolean) => (fresh ? vault : stale) };
  await run([{ ...support, version: "1.1.0" }], sandbox);
  assert.equal((await ledger())?.did, old.did, "nobody has seen the new one yet");
  await run([support]);
  await run([{ ...support, version: "1.2.0" }], sandbox);
  assert.equal((await ledger())?.did, key.did);
  assert.equal((await verdict(support.runtime, { did: key.did })).state, "valid");
});

test("of two runs at once one makes the key and writes the cards, and the other leaves them", async () => {
  const name = `acme/signing-${uses}`;
  manager.declare(name);
  vault = secretVault(name, { fresh: true });
  const found = { agents: [support, other], signed: await signed() };
  await Promise.all(Array.from({ length: 3 }, () => keepAgentCards(deps(), found)));
  const did = await didNow();
  assert.equal((await ledger())?.did, did);
  for (const { runtime } of [support, other]) assert.equal((await verdict(runtime, { did })).state, "valid");
  assert.deepEqual(
    said,
    Array.from({ length: 2 }, () => "another run has signed the cards meanwhile"),
  );
});

test("a run that dies between the key and its cards, or at any write of them, is made up for by the next", async () => {
  for (const [write, when] of [
    [1, "before"],
    [1, "after"],
    [2, "before"],
    [2, "after"],
  ] as const) {
    vault = folderVault(join(dir, `dying-${write}-${when}`));
    await assert.rejects(
      dyingAt(write, when, () => run(many)),
      /killed/,
    );
    const did = await didNow();
    // What is there is whole: each card that is noted is there, and none that is not.
    const digests = (await ledger())?.digests ?? {};
    for (const { runtime } of many) assert.equal((await kept(runtime))?.digest, digests[runtime]);
    await run(many);
    assert.equal(await didNow(), did);
    for (const { runtime } of many) assert.equal((await verdict(runtime, { did })).state, "valid");
    await run([]);
    const items = await readItems(
      table.access,
      many.map(({ runtime }) => ({ pk: SIGNED.pk, sk: `agent#${runtime}` })),
    );
    assert.deepEqual(items, []);
  }
});

test("a card that cannot be signed is told of, and keeps no other back", async () => {
  const skills = Array.from({ length: 128 }, (_, i) => ({
    slug: `s${i}`,
    name: "x",
    description: "ﷺ".repeat(1_024),
    tags: [],
  }));
  await run([{ ...support, skills }, other]);
  assert.equal(await kept(support.runtime), undefined);
  assert.notEqual(await kept(other.runtime), undefined);
  assert.deepEqual([said, told.get("CardsWithheld")], [["a card cannot be signed"], 1]);
});

test("where no key is told of nothing is signed", async () => {
  await run([]);
  const before = await ledger();
  await run([support], { vault: async () => undefined });
  assert.deepEqual(await ledger(), before);
  assert.equal(await kept(support.runtime), undefined);
});
