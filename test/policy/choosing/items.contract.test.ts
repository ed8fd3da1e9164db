import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, describe, test } from "node:test";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { circuit } from "../../../shared/policy/choosing/circuit.ts";
import { dynamoItems } from "../../../shared/policy/choosing/dynamodb-items.ts";
import { OutcomeBook, outcomes } from "../../../shared/policy/choosing/outcomes.ts";
import { memoryItems } from "../../../shared/testing/memory-items.ts";
import { simulatedAccess } from "../../support/simulated-store.ts";
import { startTable } from "../../support/table.ts";

const table = await startTable();
after(() => table.stop());
const EXPIRES = 2_000_000_000_001;
const OPEN = { era: 1, failures: 0, until: 1_900_000_000_000.5 };
const CLOSED = { era: 2, failures: 3 };

const simulated = simulatedAccess();
for (const [name, open, other] of [
  ["memory", () => memoryItems<typeof CLOSED>(), () => memoryItems<typeof CLOSED>()],
  [
    "a simulated table",
    () => dynamoItems(simulated, "circuit", circuit),
    () => dynamoItems(simulated, "refusals", circuit),
  ],
  [
    "DynamoDB",
    () => dynamoItems(table.access, "circuit", circuit),
    () => dynamoItems(table.access, "refusals", circuit),
  ],
] as const)
  describe(`items over ${name}`, () => {
    const items = open();
    const agent = `acme-${randomBytes(6).toString("hex")}`;
    const write = (value: typeof CLOSED, over?: string) =>
      items.write(agent, value, { over, expiresAt: EXPIRES });

    test("an item is put once where there was none, then over what was read and nothing else", async () => {
      assert.equal(await items.read(agent), undefined);
      assert.equal(await write(CLOSED, "an item that is gone"), false);
      assert.equal(await write(OPEN), true);
      assert.equal(await write(CLOSED), false);
      const first = await items.read(agent);
      assert.deepEqual(first?.value, OPEN);
      assert.equal(await write(CLOSED, first?.version), true);
      assert.equal(await write(OPEN, first?.version), false);
      const second = await items.read(agent);
      assert.deepEqual(second?.value, CLOSED);
      assert.notEqual(second?.version, first?.version);
    });

    test("many are read at once, each once, those of another kind not", async () => {
      const far = Array.from({ length: 120 }, (_, i) => `${agent}-${i}`);
      await items.write(`${agent}-7`, OPEN, { over: undefined, expiresAt: EXPIRES });
      const found = await items.readAll([agent, ...far, agent]);
      assert.deepEqual(
        found,
        new Map([
          [agent, CLOSED],
          [`${agent}-7`, OPEN],
        ]),
      );
      assert.equal((await items.readAll([])).size, 0);
      assert.equal((await other().readAll([agent])).size, 0);
      assert.equal(await other().read(agent), undefined);
    });
  });

test("an item of the table is where docs/table.md says, and expires", async () => {
  const book = new OutcomeBook({
    store: dynamoItems(table.access, "outcomes", outcomes),
    now: () => 1_900_000_000_000,
  });
  await book.note("acme-bob", { good: false });
  const key = { TableName: "tasks", Key: { pk: "choosing#outcomes#acme-bob", sk: "choosing" } };
  const { Item } = await table.access.client.send(new GetCommand(key));
  assert.equal(Item?.expiresAt, 1_900_086_400);
  assert.deepEqual(Item?.value, { at: 1_900_000_000_000, good: 0, bad: 1, costUsd: 0 });
});

test("a write whose answer is lost and which is sent again is not taken for another's", async () => {
  const lossy = {
    ...table.access,
    client: Object.assign(Object.create(table.access.client), {
      async send(command: never) {
        await table.access.client.send(command);
        return await table.access.client.send(command);
      },
    }),
  };
  const items = dynamoItems(lossy, "circuit", circuit);
  assert.equal(await items.write("acme-lost", CLOSED, { over: undefined, expiresAt: EXPIRES }), true);
  const read = await items.read("acme-lost");
  assert.equal(await items.write("acme-lost", OPEN, { over: read?.version, expiresAt: EXPIRES }), true);
});
